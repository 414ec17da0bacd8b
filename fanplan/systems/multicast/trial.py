"""A plan on real IP multicast: a host for each broker and subscriber, on a switch of this machine.

Readiness: the switch's own table has the plan's memberships, it no longer floods what nobody
joined, and a probe from every sender has come to every subscriber. Counted are the datagrams on
each link, by the kernel, and what each subscriber makes of what it got.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.core.coroutines import run_to_end
from fanplan.core.errors import InputError, Problem
from fanplan.core.owned import scratch
from fanplan.core.progress import Progress
from fanplan.core.stop import ended_by_term
from fanplan.live.message import Message
from fanplan.live.multicast.plan import MulticastPlan, load_plan
from fanplan.live.multicast.sockets import Receiver, Sender, receiving_socket, sending_socket
from fanplan.live.subscriber import Subscribed
from fanplan.live.transport import Publication, Range, Take
from fanplan.plan.stored import StoredPlan
from fanplan.systems.addresses import channel_addresses
from fanplan.systems.multicast.counters import LinkCounter, machine_drops
from fanplan.systems.multicast.export import export, most_joins
from fanplan.systems.multicast.network import (
    EXACT,
    Host,
    Network,
    Snooping,
    inside_namespace,
    introduce,
    network,
    require_root,
)
from fanplan.systems.params import ExportParams, TrialParams
from fanplan.systems.traffic import Traffic, read_traffic
from fanplan.systems.trial import Tried, compared, percentiles
from fanplan.systems.ways import Figures

WINDOW = 256
"""Datagrams that may be under way: beyond a thousand that wait, the kernel drops some."""
STALLED = 0.5
"""Seconds without a datagram after which those under way are given up."""
PATIENCE = 15.0
"""Seconds until a barrier is given up."""
CALM = 3.0
"""Seconds after the last join in which hosts repeat it, and answer the querier."""
QUIET = 0.5
"""Seconds without a datagram after which none is expected any more."""
MOST_PAYLOAD = 1024

BROKER, SUBSCRIBER = "broker", "subscriber"
Name = tuple[str, str]

UNMEASURED = (
    "hops between brokers: multicast does not enact them; each sender is handed what the plan "
    "brings to its broker",
    "matches: nobody counts them on multicast",
)


def trial(plan: StoredPlan, dataset: Path, params: TrialParams, progress: Progress) -> Tried:
    """Make the network, send publications of the dataset, and compare."""
    require_root()
    require_no_kill(params)
    traffic = read_traffic(plan, dataset, params.publications)
    with ended_by_term(), scratch("trial") as folder:
        asked = ExportParams() if params.port is None else ExportParams(port=params.port)
        export(plan, dataset, traffic.ways, asked, folder)
        return run_trial(plan, load_plan(folder), traffic, params, progress)


def require_no_kill(params: TrialParams) -> None:
    if params.kill is not None:
        what = "multicast has no servers that could end"
        raise InputError(Problem("kill", what, "Leave it out, or try --on nats"))


def run_trial(
    plan: StoredPlan,
    made: MulticastPlan,
    traffic: Traffic,
    params: TrialParams,
    progress: Progress,
    snooping: Snooping = EXACT,
    patience: float = PATIENCE,
) -> Tried:
    """The same with a given export, which may differ from what is predicted, as a control."""
    people = [(SUBSCRIBER, who) for who in made.subscribers]
    names = [*((BROKER, name) for name in made.brokers), *people]
    labels = {name: f"{number}" for number, name in enumerate(names)}
    with network(labels.values(), most_joins(made), snooping) as net:
        hosts = {name: net.hosts[label] for name, label in labels.items()}
        own = {who: hosts[SUBSCRIBER, who].address for who in made.subscribers}
        run = Run(plan, replace(made, hosts=own), traffic, params, progress, net, hosts, patience)
        return run_to_end(run.all())


@dataclass
class Run:
    """One run on a network whose hosts are named (broker or subscriber, name).

    A barrier is given up after ``patience`` seconds: what is missing then shows in the figures.
    """

    plan: StoredPlan
    made: MulticastPlan
    traffic: Traffic
    params: TrialParams
    progress: Progress
    net: Network
    hosts: dict[Name, Host]
    patience: float
    subscribers: dict[str, Subscribed] = field(default_factory=dict)
    got: dict[str, list[int]] = field(default_factory=dict)
    delays_ns: list[int] = field(default_factory=list)
    links: dict[tuple[str, ...], LinkCounter] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    joined: int = 0
    arrived: int = 0
    expected: int = 0

    async def all(self) -> Tried:
        """From the first socket to the result."""
        async with AsyncExitStack() as stack:
            self.count_links(stack)
            with self.progress.stage("wait until everybody is ready"):
                self.introduce_senders()
                await self.subscribe(stack)
                joined = time.monotonic()
                sockets = self.sending_sockets(stack)
                senders = await self.senders(stack, sockets)
                await self.barrier(sockets)
                await self.probed(sockets)
                await asyncio.sleep(joined + CALM - time.monotonic())
            return await self.measured(senders)

    # ---- the ends

    def count_links(self, stack: AsyncExitStack) -> None:
        """Every subscriber's link, and every broker's, in all and to each channel it sends to."""
        sends = self.traffic.ways.sends
        pairs = {*zip(sends.broker.tolist(), sends.channel.tolist(), strict=True)}
        for (kind, name), host in self.hosts.items():
            with inside_namespace(host.namespace):
                sending = kind == BROKER
                self.links[kind, name] = LinkCounter(self.made.port, sending)
                for broker, channel in sorted(pairs) if sending else ():
                    if self.made.brokers[broker] == name:
                        group = self.made.addresses[channel]
                        key = ("channel", str(channel), name)
                        self.links[key] = LinkCounter(self.made.port, True, group)
        for counter in self.links.values():
            stack.callback(counter.close)

    @cached_property
    def addressed(self) -> dict[str, list[str]]:
        """The subscribers that each broker sends to by unicast."""
        last, found = self.traffic.ways.last, {name: set[str]() for name in self.made.brokers}
        pairs = np.unique(np.column_stack([last.broker, last.subscriber]), axis=0)
        for broker, who in pairs.tolist():
            found[self.made.brokers[broker]].add(self.made.subscribers[who])
        return {name: sorted(people) for name, people in found.items()}

    def introduce_senders(self) -> None:
        for name, people in self.addressed.items():
            others = [self.hosts[SUBSCRIBER, who] for who in people]
            introduce(self.hosts[BROKER, name], others)

    async def subscribe(self, stack: AsyncExitStack) -> None:
        for who in self.made.subscribers:
            receiver = Noted(self, Receiver(self.made, who, self.receiving))
            took = self.taking(who)
            own = Subscribed(self.traffic.tables, who, self.made.epoch, receiver, took)
            self.subscribers[who] = await stack.enter_async_context(own)

    def receiving(self, made: MulticastPlan, who: str) -> socket.socket:
        host = self.hosts[SUBSCRIBER, who]
        with inside_namespace(host.namespace):
            return receiving_socket(made, who, host.address)

    def taking(self, who: str) -> Callable[[Message], None]:
        numbers = self.got[who] = []

        def take(message: Message) -> None:
            numbers.append(message.header.number)
            self.delays_ns.append(time.time_ns() - message.header.sent_ns)

        return take

    def sending_sockets(self, stack: AsyncExitStack) -> list[socket.socket]:
        """One at each broker, for all publishers."""
        made = []
        for name in self.made.brokers:
            host = self.hosts[BROKER, name]
            with inside_namespace(host.namespace):
                made.append(stack.enter_context(sending_socket(host.address)))
        return made

    async def senders(
        self, stack: AsyncExitStack, sockets: list[socket.socket]
    ) -> dict[str, Sender]:
        """Of each publisher, who sends for all brokers: nothing else brings messages to them."""
        brokers = range(len(self.made.brokers))
        found = {
            name: Sender(self.made, name, brokers, lambda broker: sockets[broker])
            for name in self.traffic.published.publishers
        }
        for sender in found.values():
            await sender.open()
            stack.push_async_callback(sender.close)
        return found

    # ---- ready, and at rest

    async def barrier(self, sockets: list[socket.socket]) -> None:
        """The switch knows all memberships, and what nobody joined reaches nobody."""
        planned = self.planned_memberships()
        used = {*self.made.addresses}
        space = channel_addresses(ExportParams().addresses, len(used) + 1)
        nobody = next(str(address) for address in space if str(address) not in used)
        end = time.monotonic() + self.patience
        while True:
            known = self.net.memberships()
            self.joined = len(known)
            if await self.reached(sockets, nobody) == 0 and known == planned:
                return
            if time.monotonic() > end:
                lost = f"{len(planned - known)} of {len(planned)} memberships are not in its table"
                self.notes.append(f"the switch was not ready after {self.patience:g} s: {lost}")
                return

    def planned_memberships(self) -> set[tuple[str, str]]:
        """(port, group) of every member, by the plan that predictions come from."""
        ways = self.traffic.ways
        return {
            (self.hosts[SUBSCRIBER, ways.subscribers[who]].port, self.made.addresses[channel])
            for channel, who in zip(*map(np.ndarray.tolist, ways.members), strict=True)
        }

    async def reached(self, sockets: list[socket.socket], group: str) -> int:
        """How many subscribers' links carry what is sent to a group."""
        before = [self.links[SUBSCRIBER, who].read() for who in self.made.subscribers]
        for own in sockets:
            own.sendto(b"probe", (group, self.made.port))
        await asyncio.sleep(0.1)
        after = [self.links[SUBSCRIBER, who].read() for who in self.made.subscribers]
        return sum(a > b for a, b in zip(after, before, strict=True))

    async def probed(self, sockets: list[socket.socket]) -> None:
        """A datagram from every sender to every subscriber that it sends to by unicast."""
        senders = dict(zip(self.made.brokers, sockets, strict=True))
        pairs = [(name, who) for name, people in self.addressed.items() for who in people]
        expected = Counter(who for _, who in pairs)
        for name, who in pairs:
            senders[name].sendto(b"probe", (self.made.hosts[who], self.made.port))
        end = time.monotonic() + self.patience
        while silent := self.silent(expected):
            if time.monotonic() > end:
                self.notes.append(f"{len(silent)} subscribers did not get a probe")
                return
            await asyncio.sleep(0.05)

    def silent(self, expected: Counter[str]) -> list[str]:
        """Who has not got this many probes, which to the library are foreign."""
        return [w for w, n in expected.items() if self.subscribers[w].counts.foreign < n]

    async def rested(self) -> None:
        """Wait until no subscriber's link has carried anything for a while."""
        last, since = -1, time.monotonic()
        while time.monotonic() - since < QUIET:
            await asyncio.sleep(0.05)
            total = sum(sum(each.counts.channels.values()) for each in self.subscribers.values())
            if total != last:
                last, since = total, time.monotonic()

    # ---- the run

    async def measured(self, senders: dict[str, Sender]) -> Tried:
        """All publications, all counters."""
        await self.rested()
        for counter in self.links.values():
            counter.reset()
        dropped, cpu, began = machine_drops(), used_cpu(), time.monotonic()
        with self.progress.stage("send publications") as stage:
            await self.send(senders)
            seconds = time.monotonic() - began
            await self.rested()
            stage.rows(self.traffic.size)
        self.note_drops(machine_drops() - dropped)
        copies = sum(sum(each.counts.channels.values()) for each in self.subscribers.values())
        facts = {
            "publications": self.traffic.size,
            "wanted_by_nobody": self.traffic.unwanted_by_all,
            "deliveries": copies,
            "hosts": len(self.hosts),
            "seconds": seconds,
            "deliveries_per_second": copies / seconds,
            "cpu_microseconds_per_delivery": 1e6 * (used_cpu() - cpu) / max(copies, 1),
        }
        return Tried(
            system="multicast",
            plan=str(self.plan.folder),
            rows=compared(predicted_figures(self.traffic), self.figures()),
            facts=facts,
            delays_ms=self.delays(),
            unmeasured=UNMEASURED if self.made.brokers != ("",) else UNMEASURED[1:],
            notes=tuple(self.notes),
        )

    def note_drops(self, dropped: int) -> None:
        """All namespaces share the processors' queues, also with what else the machine does."""
        if dropped:
            self.notes.append(
                f"this machine dropped {dropped:,} packets meanwhile, of this trial or of other "
                "work: if figures differ, raise net.core.netdev_max_backlog, or try when it is idle"
            )

    async def send(self, senders: dict[str, Sender]) -> None:
        """Publications in their order; subscribers have their turn after each batch."""
        sent, tables = self.traffic.published, self.traffic.tables
        topics, axes = tables.topics.names, tables.dimensions
        own = [senders[name] for name in sent.publishers]
        copies = self.traffic.copies[self.traffic.parcel].tolist()
        self.arrived = self.expected = 0
        began, first = time.monotonic(), float(sent.time[0]) if self.traffic.size else 0.0
        for number in range(self.traffic.size):
            topic = int(sent.topic[number])
            if self.params.speed is not None:
                due = began + (float(sent.time[number]) - first) / self.params.speed
                while (wait := due - time.monotonic()) > 0:
                    await asyncio.sleep(wait)
            payload = bytes(min(int(sent.bytes[number]), MOST_PAYLOAD))
            x = tuple(sent.x[number, : axes[topic]].tolist())
            flow = int(self.traffic.flow[number])
            each = Publication(flow, number, time.time_ns(), topics[topic], x, payload)
            own[sent.publisher[number]].send([each])
            self.expected += copies[number]
            if self.expected - self.arrived > WINDOW:
                await self.caught_up()

    async def caught_up(self) -> None:
        """Subscribers have their turn until they have nearly all, or no more comes."""
        last, since = self.arrived, time.monotonic()
        while self.expected - self.arrived > WINDOW // 2:
            await asyncio.sleep(0)
            if self.arrived != last:
                last, since = self.arrived, time.monotonic()
            elif time.monotonic() - since > STALLED:
                self.expected = self.arrived

    def figures(self) -> Figures:
        """What links carried, and what subscribers got."""
        found: Figures = {("switch", "memberships"): self.joined}
        multicast: Counter[str] = Counter()
        for key, counter in self.links.items():
            if key[0] == "channel" and counter.read():
                found[key] = counter.read()
                multicast[key[2]] += counter.read()
            if key[0] == SUBSCRIBER:
                found["port", key[1], "datagrams"] = counter.read()
        for name in self.made.brokers:
            alone = self.links[BROKER, name].read() - multicast[name]
            if alone:
                found["broker", name, "unicast"] = alone
        for who, own in self.subscribers.items():
            found |= self.received(who, own)
        return found

    def received(self, who: str, own: Subscribed) -> Figures:
        counts = own.counts
        people = self.traffic.ways.subscribers
        pairs = self.traffic.wanted
        wanted = pairs[pairs % len(people) == people.index(who)] // len(people)
        found: Figures = {
            ("subscriber", who, "wanted"): counts.wanted,
            ("subscriber", who, "unwanted"): counts.unwanted,
            ("subscriber", who, "twice"): counts.twice,
            ("subscriber", who, "missed"): len({*wanted.tolist()} - {*self.got[who]}),
            ("subscriber", who, "out of order"): counts.out_of_order,
            ("subscriber", who, "gaps"): counts.gaps,
        }
        for channel, copies in counts.channels.items():
            if channel >= 0:
                found["member", str(channel), who] = copies
        return found

    def delays(self) -> dict[str, float]:
        return percentiles(np.array(self.delays_ns) / 1e6)


@dataclass
class Noted:
    """What a receiver gets, counted for all of them together."""

    run: Run
    receiver: Receiver
    sources: tuple[str, ...] = ()

    async def open(self, take: Take) -> None:
        def note(data: bytes) -> None:
            self.run.arrived += 1
            take(data)

        await self.receiver.open(note)

    async def ask(self, source: int, ranges: Sequence[Range]) -> None:
        await self.receiver.ask(source, ranges)

    async def close(self) -> None:
        await self.receiver.close()


def predicted_figures(traffic: Traffic) -> Figures:
    """What the plan says, by what links and subscribers can count."""
    ways, messages = traffic.ways, traffic.messages
    counted = ways.counted(messages)
    found: Figures = {("switch", "memberships"): len(ways.members[0])}
    for key, count in counted.items():
        if key[0] in ("channel", SUBSCRIBER):
            found[key] = count
        elif key[0] == BROKER:
            alone = (BROKER, key[1], "unicast")
            found[alone] = found.get(alone, 0) + count
    copies = ways.copies
    amount = messages[copies.parcel] * copies.copies
    totals = np.bincount(copies.subscriber, amount, len(ways.subscribers))
    for who, count in zip(ways.subscribers, totals.tolist(), strict=True):
        found["port", who, "datagrams"] = int(count)
        found["subscriber", who, "gaps"] = 0
    return found | members_predicted(traffic, messages)


def members_predicted(traffic: Traffic, messages: Longs) -> Figures:
    """All that is sent to a channel comes to each of its members."""
    ways = traffic.ways
    sent = np.bincount(ways.sends.channel, messages[ways.sends.parcel], len(ways.domains))
    return {
        ("member", str(channel), ways.subscribers[who]): int(sent[channel])
        for channel, who in zip(*map(np.ndarray.tolist, ways.members), strict=True)
        if sent[channel]
    }


def used_cpu() -> float:
    """Seconds of processor time of this process; the network's own are among them."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
