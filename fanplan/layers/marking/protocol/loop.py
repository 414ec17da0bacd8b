"""The event loop: packets on links that lose some, and timers, until nothing is under way.

What was not acknowledged is sent again; what changed since is not.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from fanplan.core.errors import CheckError
from fanplan.layers.marking.protocol.messages import HELLO, Key, MarkingClient, message_kind, weight
from fanplan.layers.marking.protocol.node import NodeRules, ProtocolNode
from fanplan.layers.marking.protocol.node_layer import CLIENT, WAKE, LocalView, NodeClock
from fanplan.layers.marking.protocol.routing import Routing

Role = Literal["publisher", "subscriber"]

LONGEST = 100_000
"""Events for each node before a network must have come to rest."""

PATIENCE = 3.0
"""A packet is sent again after this many latencies, and a millisecond for links without one."""


class ProtocolLoop:
    """Nodes and links under one clock. Time is in milliseconds.

    Events at the same time are handled together: first all that arrives, then the work of the
    nodes that it concerns, in the order of their numbers. So a run has one course.
    ``sent`` counts messages by kind, ``moved`` is when a node last learned something new.
    """

    def __init__(self, rules: NodeRules, loss: float, seed: int) -> None:
        self.loss, self.rng = loss, np.random.default_rng(seed)
        self.now = self.moved = 0.0
        self.sent: Counter[str] = Counter()
        self.elections = 0
        self.parts: list[int] = []
        self.queue: list[tuple[float, int, Callable[[], None]]] = []
        self.order = 0
        self.dirty: dict[int, set[str]] = {}
        self.links = both_directions(rules.routing)
        self.nodes = [ProtocolNode(local, rules) for local in locals_of(rules.routing, self)]

    # ---- what happens from outside

    def join(self, client: MarkingClient, role: Role) -> None:
        self.clients(client.node, role)[client.name] = client
        self.notice(client.node, CLIENT)

    def leave(self, client: MarkingClient, role: Role) -> None:
        del self.clients(client.node, role)[client.name]
        self.notice(client.node, CLIENT)

    def clients(self, node: int, role: Role) -> dict[int, MarkingClient]:
        local = self.nodes[node].local
        return local.published if role == "publisher" else local.subscribed

    def restart(self, node: int) -> None:
        """A node loses all that it was told; its neighbours tell it again when it says so."""
        self.nodes[node].restart()
        self.notice(node, CLIENT)
        for neighbour in self.nodes[node].local.sending:
            link = self.links[node, neighbour]
            self.sent["hello"] += 1
            self.transmit(link, link.restart(self.now))

    def after(self, delay_ms: float, act: Callable[[], None]) -> None:
        self.at(self.now + delay_ms, act)

    def at(self, time_ms: float, act: Callable[[], None]) -> None:
        self.order += 1
        heapq.heappush(self.queue, (time_ms, self.order, act))

    def rest(self) -> None:
        """Go on until no packet is under way, none waits for an answer and no node waits."""
        last = self.order + LONGEST * len(self.nodes)
        self.work()
        while self.queue:
            self.now = self.queue[0][0]
            while self.queue and self.queue[0][0] == self.now:
                heapq.heappop(self.queue)[2]()
            self.work()
            if self.order > last:
                raise CheckError("the network does not come to rest. Simulate less loss")

    def state(self) -> Counter[str]:
        """What nodes keep of what they were told, by the kind of message that told it."""
        kept: Counter[str] = Counter()
        for node in self.nodes:
            for key, value in node.heard.all():
                kept[message_kind(key, None, value)] += weight(key, value)
        return kept

    # ---- what nodes ask for

    def wake(self, node: int, time_ms: float) -> None:
        self.at(time_ms, lambda: self.notice(node, WAKE))

    def elected(self) -> None:
        self.elections += 1

    def solved(self, links: int) -> None:
        self.parts.append(links)

    # ---- between nodes

    def notice(self, node: int, kind: str) -> None:
        self.dirty.setdefault(node, set()).add(kind)

    def work(self) -> None:
        dirty, self.dirty = self.dirty, {}
        for node, kinds in sorted(dirty.items()):
            told: dict[int, dict[Key, Any]] = {}
            for neighbour, entries in self.nodes[node].work(kinds):
                told.setdefault(neighbour, {}).update(entries)
            for neighbour, entries in told.items():
                self.tell(self.links[node, neighbour], entries)

    def tell(self, link: LossyLink, entries: dict[Key, Any]) -> None:
        for key, value in entries.items():
            old = link.told.get(key)
            self.sent[message_kind(key, old, value)] += 1 if old else weight(key, value)
        self.transmit(link, link.tell(entries))

    def lost(self) -> bool:
        return self.loss > 0 and self.rng.random() < self.loss

    def transmit(self, link: LossyLink, packet: Packet) -> None:
        if not self.lost():
            self.after(link.latency_ms, lambda: self.arrive(packet))
        if self.loss:
            self.after(link.timeout_ms, lambda: self.retry(link, packet))

    def retry(self, link: LossyLink, packet: Packet) -> None:
        """Send again what a packet had, unless it is known to have come or was sent again."""
        if packet.birth == link.birth and packet.number in link.open.values():
            again = link.again(packet.number)
            for key, value in again.entries.items():
                self.sent["resend"] += weight(key, value)
            self.transmit(link, again)

    def arrive(self, packet: Packet) -> None:
        back = self.links[packet.receiver, packet.sender]
        if self.loss:
            self.sent["acknowledge"] += 1
            if not self.lost():
                link = self.links[packet.sender, packet.receiver]
                answer = packet.birth, packet.number
                self.after(back.latency_ms, lambda: link.acknowledged(*answer))
        node = self.nodes[packet.receiver]
        # Of a neighbour not met yet: has it lost what this node told it since its own start?
        known = node.births.setdefault(packet.sender, min(packet.birth, back.birth))
        if packet.birth > known:
            self.meet_anew(node, packet, back)
        if packet.birth >= known:
            for key, value in packet.entries.items():
                if node.heard.put(packet.sender, key, value):
                    self.notice(packet.receiver, key[0])
                    self.moved = self.now

    def meet_anew(self, node: ProtocolNode, packet: Packet, back: LossyLink) -> None:
        """A neighbour restarted: what it had told is void, and it must be told everything."""
        node.births[packet.sender] = packet.birth
        for kind in node.heard.forget(packet.sender):
            self.notice(packet.receiver, kind)
        everything = back.everything()
        for key, value in everything.entries.items():
            self.sent[message_kind(key, None, value)] += weight(key, value)
        self.transmit(back, everything)


def both_directions(routing: Routing) -> dict[tuple[int, int], LossyLink]:
    """Both directions of each link of the network."""
    return {
        ends: LossyLink(*ends, float(latency))
        for a, b, latency, _ in routing.wires()
        for ends in ((a, b), (b, a))
    }


def locals_of(routing: Routing, clock: NodeClock) -> list[LocalView]:
    """What each node knows by itself."""
    network = routing.network
    storing = np.zeros(network.size) if network.storing is None else network.storing
    found = [
        LocalView(node, {}, {node: float(storing[node])}, clock) for node in range(network.size)
    ]
    for a, b, _, price in routing.wires():
        for node, neighbour in ((a, b), (b, a)):
            found[node].sending[neighbour] = price
            found[node].storing[neighbour] = float(storing[neighbour])
    return found


# ---- links


@dataclass
class Packet:
    """Changed entries on their way; None withdraws one. ``birth`` is when its sender started."""

    sender: int
    receiver: int
    birth: float
    number: int
    entries: dict[Key, Any]


@dataclass
class LossyLink:
    """One direction of a link, as its sending end keeps it.

    ``told`` are the entries that the other end has or will have. ``open`` are those it has not
    acknowledged, with the number of the last packet that had them.
    """

    sender: int
    receiver: int
    latency_ms: float
    birth: float = 0.0
    number: int = 0
    told: dict[Key, Any] = field(default_factory=dict)
    open: dict[Key, int] = field(default_factory=dict)

    @property
    def timeout_ms(self) -> float:
        return PATIENCE * self.latency_ms + 1.0

    def tell(self, entries: dict[Key, Any]) -> Packet:
        """Change what is told."""
        for key, value in entries.items():
            if value is None:
                self.told.pop(key, None)
            else:
                self.told[key] = value
        return self.packet(entries)

    def packet(self, entries: dict[Key, Any]) -> Packet:
        self.number += 1
        self.open.update(dict.fromkeys(entries, self.number))
        return Packet(self.sender, self.receiver, self.birth, self.number, entries)

    def again(self, number: int) -> Packet:
        """What a packet had and no later one has, in a new packet."""
        return self.packet({k: self.told.get(k) for k, last in self.open.items() if last == number})

    def everything(self) -> Packet:
        """For an end that forgot all."""
        return self.packet(dict(self.told))

    def acknowledged(self, birth: float, number: int) -> None:
        if birth == self.birth:
            self.open = {key: last for key, last in self.open.items() if last != number}

    def restart(self, now: float) -> Packet:
        """Forget all that was told, and say so by a new birth."""
        self.birth, self.told, self.open = now, {}, {}
        return self.tell({(HELLO, ""): now})
