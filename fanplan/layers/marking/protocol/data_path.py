"""Layers 4 to 6: marks at both ends of links, descriptors that travel by them, the way of data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from fanplan.layers.marking.protocol.messages import (
    ADVERTISEMENT,
    DESCRIPTORS,
    DOWN,
    MARK,
    SUBSCRIPTION,
    UP,
    Mark,
    MarkingClient,
    Subscription,
    meet,
)
from fanplan.layers.marking.protocol.node_layer import CLIENT, HeardFrom, LocalView, NodeLayer
from fanplan.layers.marking.protocol.solver import SettledLayer, SolverLayer
from fanplan.layers.marking.protocol.trees import Origin, TreeLayer

Pair = tuple[int, int]
"""The names of a publisher and a subscriber."""

Kept = dict[Origin, list[MarkingClient]]
"""Clients by the neighbour that their descriptors came from."""


class Match(NamedTuple):
    """Clients whose descriptors met at a node, and the neighbours that these came from."""

    publisher: MarkingClient
    origin: Origin
    subscriber: MarkingClient
    side: Origin


# ---- 4: marks


class MarksLayer(NodeLayer):
    """The marks of the links out of a node, which it decides, and into it, which it is told.

    ``out`` and ``into`` have the marks by neighbour. The upstream end decides (Ge et al. 2002,
    section 5). Until it has told the mark, the downstream end sends no descriptors up the link.
    """

    def __init__(self, local: LocalView, heard: HeardFrom, trees: TreeLayer) -> None:
        super().__init__(local, heard)
        self.trees = trees
        self.out: dict[int, Mark] = {}
        self.into: dict[int, Mark] = {}


class BestMarksLayer(MarksLayer):
    """Marks by counts: the cheaper mark, ties an s-link (Ge et al. 2002, Figure 4).

    Where a solver decided on a link, its word counts.
    """

    hears = frozenset((MARK,))

    def __init__(
        self, local: LocalView, heard: HeardFrom, trees: TreeLayer, settled: SettledLayer,
        solver: SolverLayer | None,
    ) -> None:  # fmt: skip
        super().__init__(local, heard, trees)
        self.settled, self.solver = settled, solver

    def stale(self) -> bool:
        solved = self.solver is not None and self.solver.changed
        return self.trees.changed or self.settled.changed or solved

    def work(self) -> bool:
        old = self.out, self.into
        gains = dict(self.settled.table.out)
        self.out = {n: self.mark(n, gains.get(n)) for n in self.trees.out}
        told = {n: names[""] for n, names in self.heard.of(MARK).items() if names}
        self.into = {n: mark for n, mark in told.items() if n in self.trees.into}
        self.says = {n: {(MARK, ""): mark} for n, mark in self.out.items()}
        return old != (self.out, self.into)

    def mark(self, neighbour: int, gain: float | None) -> Mark:
        if self.solver is not None and neighbour in self.solver.decided:
            return self.solver.decided[neighbour]
        if gain is None:
            return self.out.get(neighbour) or self.trees.first_mark(neighbour)
        return "p" if gain < 0 else "s"


class SameMarksLayer(MarksLayer):
    """All links have the same mark, which needs no messages: PubE or SubE."""

    def __init__(self, local: LocalView, heard: HeardFrom, trees: TreeLayer, mark: Mark) -> None:
        super().__init__(local, heard, trees)
        self.mark = mark

    def stale(self) -> bool:
        return self.trees.changed

    def work(self) -> bool:
        old = self.out, self.into
        self.out = dict.fromkeys(self.trees.out, self.mark)
        self.into = dict.fromkeys(self.trees.into, self.mark)
        return old != (self.out, self.into)


# ---- 5: descriptors


class DescriptorLayer(NodeLayer):
    """p-links take advertisements downstream, s-links subscriptions upstream.

    Ge et al. (2002), section 5, step 2. A link with another mark takes none; what came over it
    before is withdrawn by the end that sent it.
    """

    hears = frozenset((ADVERTISEMENT, SUBSCRIPTION, CLIENT))

    def __init__(
        self, local: LocalView, heard: HeardFrom, trees: TreeLayer, marks: MarksLayer
    ) -> None:
        super().__init__(local, heard)
        self.trees, self.marks = trees, marks
        self.publishers: Kept = {}
        self.subscribers: Kept = {}
        self.lacking: dict[Origin, dict[int, frozenset[int]]] = {}

    def stale(self) -> bool:
        return self.marks.changed or (self.trees.changed and self.trees.reshaped)

    def work(self) -> bool:
        old = self.publishers, self.subscribers, self.lacking
        self.publishers = {n: list(names.values()) for n, names in self.advertised().items()}
        come = self.subscribed()
        self.subscribers = {n: [s.client for s in names.values()] for n, names in come.items()}
        self.lacking = {n: {s.client.name: s.lacking for s in come[n].values()} for n in come}
        self.says = {}
        self.advertise()
        self.subscribe()
        return old != (self.publishers, self.subscribers, self.lacking)

    def advertised(self) -> dict[Origin, dict[int, MarkingClient]]:
        """Publishers by origin: the node's own, and those that p-links brought."""
        return self.kept(ADVERTISEMENT, self.marks.into, "p") | own(self.local.published)

    def subscribed(self) -> dict[Origin, dict[int, Subscription]]:
        """Subscribers by origin: the node's own, and those that s-links brought."""
        mine = {x.name: Subscription(x, frozenset()) for x in self.local.subscribed.values()}
        return self.kept(SUBSCRIPTION, self.marks.out, "s") | own(mine)

    def kept(self, kind: str, marks: dict[int, Mark], mark: Mark) -> dict[Origin, dict[int, Any]]:
        """Entries of a kind that links with the right mark brought."""
        told = self.heard.of(kind)
        return {n: names for n, names in told.items() if names and marks.get(n) == mark}

    def advertise(self) -> None:
        for n in (n for n, mark in self.marks.out.items() if mark == "p"):
            self.says.setdefault(n, {}).update(
                ((ADVERTISEMENT, client.name), client)
                for origin, clients in self.publishers.items()
                for client in clients
                if self.trees.carries(client, origin, n)
            )

    def subscribe(self) -> None:
        come: dict[MarkingClient, dict[Origin, frozenset[int]]] = {}
        for origin, clients in self.subscribers.items():
            for client in clients:
                come.setdefault(client, {})[origin] = self.lacking[origin][client.name]
        for n in (n for n, mark in self.marks.into.items() if mark == "s"):
            says = self.says.setdefault(n, {})
            for client, lacking in come.items():
                left = self.trees.lift(client, lacking, n)
                if left is not None:
                    says[SUBSCRIPTION, client.name] = Subscription(client, left)

    def stored(self) -> int:
        """Descriptors that neighbours sent and did not withdraw."""
        return sum(
            client.descriptors
            for kind in DESCRIPTORS
            for names in self.heard.of(kind).values()
            for client in names.values()
        )


def own(clients: dict[int, Any]) -> dict[Origin, dict[int, Any]]:
    return {None: dict(clients)} if clients else {}


# ---- 6: matches


class DataPathLayer(NodeLayer):
    """A node where an advertisement meets a subscription on the way of the data tells both sides.

    Ge et al. (2002), section 5, steps 3 and 4. As a valid way is p-links and then s-links, there
    is one such node for a pair: where they change. ``matches`` has the pairs matched here,
    ``forward`` the neighbour to which data of each pair goes on; None at the subscriber's node.
    """

    hears = frozenset((UP, DOWN))

    def __init__(
        self,
        local: LocalView,
        heard: HeardFrom,
        trees: TreeLayer,
        descriptors: DescriptorLayer,
        arc: float,
    ) -> None:
        super().__init__(local, heard)
        self.trees, self.descriptors, self.arc = trees, descriptors, arc
        self.matches: dict[Pair, Match] = {}
        self.forward: dict[Pair, Origin] = {}

    def stale(self) -> bool:
        return self.descriptors.changed or (self.trees.changed and self.trees.reshaped)

    def work(self) -> bool:
        if self.stale():
            self.matches = {(m.publisher.name, m.subscriber.name): m for m in self.found()}
        self.says, self.forward = {}, {}
        for pair, match in self.matches.items():
            self.forward[pair] = match.side
            self.say(match.origin, (UP, pair), True)
            self.say(match.side, (DOWN, pair), match.publisher)
        self.relay_up()
        self.relay_down()
        return False

    def found(self) -> Iterator[Match]:
        for origin, publishers in self.descriptors.publishers.items():
            for side, subscribers in self.descriptors.subscribers.items():
                for publisher, subscriber in product(publishers, subscribers):
                    match = Match(publisher, origin, subscriber, side)
                    if meet(publisher, subscriber, self.arc) and self.on_way(match):
                        yield match

    def relay_up(self) -> None:
        """Signals from downstream go on to where the publisher's descriptors came from."""
        origins = {
            client.name: origin
            for origin, clients in self.descriptors.publishers.items()
            for client in clients
        }
        for n, pairs in self.heard.of(UP).items():
            for pair in pairs:
                self.forward[pair] = n
                self.say(origins.get(pair[0]), (UP, pair), True)

    def relay_down(self) -> None:
        """Signals from upstream go on to where the subscriber's came from, on the same tree."""
        for n, pairs in self.heard.of(DOWN).items():
            for pair, publisher in pairs.items():
                for side in self.sides(publisher, n, pair[1]):
                    self.forward[pair] = side
                    self.say(side, (DOWN, pair), publisher)

    def sides(self, publisher: MarkingClient, origin: int, subscriber: int) -> list[Origin]:
        return [
            side
            for side, clients in self.descriptors.subscribers.items()
            for client in clients
            if client.name == subscriber and self.on_way(Match(publisher, origin, client, side))
        ]

    def on_way(self, match: Match) -> bool:
        lacking = self.descriptors.lacking[match.side][match.subscriber.name]
        return match.publisher.node not in lacking and self.trees.on_way(*match)
