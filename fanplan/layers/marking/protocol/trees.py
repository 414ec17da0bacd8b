"""Layer 1: a node's place in the trees, the counts of its links, and where clients lead.

A shared tree is grafted towards its core. On trees per source roots become known downstream, and
subscribers graft upstream.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

from fanplan.core.arrays import NONE
from fanplan.layers.marking.protocol.messages import (
    BRANCH,
    GRAFT,
    SOURCE,
    Branch,
    Graft,
    Mark,
    MarkingClient,
)
from fanplan.layers.marking.protocol.node_layer import CLIENT, HeardFrom, LocalView, NodeLayer
from fanplan.layers.marking.protocol.routing import Routing

Origin = int | None
"""The neighbour that a descriptor came from; None for the node's own clients."""

Grafts = dict[int, Graft]

Split = tuple[tuple[int, frozenset[int]], ...]


class LinkCount(NamedTuple):
    """The σ and τ of a directed link: descriptors if it were a p-link, or an s-link."""

    sigma: int
    tau: int


class GainTable(NamedTuple):
    """What a node knows of the marks around it.

    ``into`` and ``out`` have the gain of each directed link from or to a neighbour; a pair is a
    link in and one out that follows it in a tree.
    """

    into: tuple[tuple[int, float], ...] = ()
    out: tuple[tuple[int, float], ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()


class TreeLayer(NodeLayer):
    """Keeps a node in the trees; ``counted`` false leaves out numbers, for broadcasting.

    ``out`` and ``into`` are the directed links to and from neighbours that trees use, with counts.
    ``reshaped`` tells whether it changed where clients lead.
    """

    reshaped = False

    def __init__(self, local: LocalView, heard: HeardFrom, counted: bool) -> None:
        super().__init__(local, heard)
        self.counted = counted
        self.out: dict[int, LinkCount] = {}
        self.into: dict[int, LinkCount] = {}

    def total(self, clients: dict[int, MarkingClient]) -> int:
        """Descriptors of some of the node's clients, or 1 for any where they are not counted."""
        total = sum(client.descriptors for client in clients.values())
        return total if self.counted else min(total, 1)

    def table(self) -> GainTable:
        here, gain = self.local.node, self.local.gain
        return GainTable(
            tuple((n, gain(n, here, *count)) for n, count in sorted(self.into.items())),
            tuple((n, gain(here, n, *count)) for n, count in sorted(self.out.items())),
            self.pairs(),
        )

    @abstractmethod
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Links in and out that follow each other, where their order of gains is not plain."""

    @abstractmethod
    def first_mark(self, neighbour: int) -> Mark:
        """The mark of a link that has just come into a tree."""

    @abstractmethod
    def carries(self, publisher: MarkingClient, origin: Origin, neighbour: int) -> bool:
        """Whether a publisher's tree goes on to a neighbour, from where it came."""

    @abstractmethod
    def lift(
        self, subscriber: MarkingClient, lacking: dict[Origin, frozenset[int]], neighbour: int
    ) -> frozenset[int] | None:
        """Trees from a neighbour that a subscriber is lacking in; None if it has none from there.

        ``lacking`` tells where its descriptors came from, and the trees they are lacking in there.
        """

    @abstractmethod
    def on_way(
        self, publisher: MarkingClient, origin: Origin, subscriber: MarkingClient, side: Origin
    ) -> bool:
        """Whether this node is on the way of the data from the one to the other."""


# ---- a shared tree


NOBODY = Branch(0, 0)


class SharedTreeLayer(TreeLayer):
    """Each end of a tree's link tells the other what is on its side.

    A node joins by telling its parent, and leaves by telling it no more; a parent that has joined
    itself answers. Hop by hop the sums of Ge et al. (2002), section 5, reach all nodes on the tree.
    """

    hears = frozenset((BRANCH, CLIENT))

    def __init__(self, local: LocalView, heard: HeardFrom, counted: bool, routing: Routing) -> None:
        super().__init__(local, heard, counted)
        self.parent = routing.way(routing.core).before[local.node]
        self.sides: dict[int, Branch] = {}
        self.wanted: set[int] = set()

    def work(self) -> bool:
        old = self.out, self.into
        self.wanted = self.wanted_before()
        self.sides = {n: names[""] for n, names in self.heard.of(BRANCH).items() if names}
        self.out, self.into, self.says = {}, {}, {}
        whole = self.whole()
        joined = self.parent == NONE or self.parent in self.sides
        for n in self.sides.keys() | ({self.parent} - {NONE}):
            here, there = self.here(n, whole), self.sides.get(n, NOBODY)
            if joined if n != self.parent else here != NOBODY:
                self.says[n] = {(BRANCH, ""): here}
            if here.published and there.subscribed:
                self.out[n] = LinkCount(here.published, there.subscribed)
            if there.published and here.subscribed:
                self.into[n] = LinkCount(there.published, here.subscribed)
        return old != (self.out, self.into)

    def wanted_before(self) -> set[int]:
        """Neighbours that had subscribers on their side before what is heard now.

        To a node that joins, its children are new, and all that its parent tells was there before.
        """
        if self.parent != NONE and self.parent not in self.sides:
            return {self.parent}
        return {n for n, side in self.sides.items() if side.subscribed}

    def here(self, neighbour: int, whole: Branch) -> Branch:
        """What is on this side of the link with a neighbour."""
        there = self.sides.get(neighbour, NOBODY)
        published = whole.published - there.published
        subscribed = whole.subscribed - there.subscribed
        if self.counted:
            return Branch(published, subscribed)
        return Branch(min(published, 1), min(subscribed, 1))

    def whole(self) -> Branch:
        """What is on the whole tree."""
        sides = self.sides.values()
        return Branch(
            self.total(self.local.published) + sum(side.published for side in sides),
            self.total(self.local.subscribed) + sum(side.subscribed for side in sides),
        )

    def pairs(self) -> tuple[tuple[int, int], ...]:
        """None: σ only grows along a way and τ only shrinks (Ge et al. 2002, Property 3)."""
        return ()

    def first_mark(self, neighbour: int) -> Mark:
        """Links that graft a publisher are p-links first, those of a subscriber s-links.

        Ge et al. (2002), section 5: so an existing marking stays valid until counts are known.
        """
        return "p" if neighbour in self.wanted else "s"

    def carries(self, _publisher: MarkingClient, origin: Origin, neighbour: int) -> bool:
        return origin != neighbour

    def lift(
        self, _subscriber: MarkingClient, lacking: dict[Origin, frozenset[int]], neighbour: int
    ) -> frozenset[int] | None:
        return frozenset() if lacking.keys() - {neighbour} else None

    def on_way(
        self, _publisher: MarkingClient, origin: Origin, _subscriber: MarkingClient, side: Origin
    ) -> bool:
        return origin is None or origin != side


# ---- trees per source


NONE_WANTED = Graft(0, frozenset())


class SourceTreesLayer(TreeLayer):
    """Every publishing node is the root of a tree.

    A root tells its count along its way to all nodes, as the flooding of PIM-DM does: else nobody
    could know whose trees there are. Subscribing nodes graft to all trees, against these ways, so
    that trees have only paths that lead to subscribers. As a subscriber counts once for a link, in
    however many trees it is behind it (Ge et al. 2002, Eq. 6), grafts have its name.
    """

    hears = frozenset((SOURCE, GRAFT, CLIENT))

    def __init__(self, local: LocalView, heard: HeardFrom, counted: bool, routing: Routing) -> None:
        super().__init__(local, heard, counted)
        self.routing = routing
        self.roots: dict[int, int] = {}
        self.behind: dict[Origin, Grafts] = {}
        self.above: dict[int, Grafts] = {}
        self.wanted: dict[Origin, frozenset[int]] = {}
        self.splits: dict[frozenset[int], Split] = {}

    def work(self) -> bool:
        old = self.roots, self.behind
        self.roots = self.known_roots()
        self.behind = self.all_behind()
        if old == (self.roots, self.behind):
            return False
        if old[0].keys() != self.roots.keys():
            self.splits = {}
        self.reshaped = shapes(old[1]) != shapes(self.behind)
        self.wanted = {n: roots_of(grafts) for n, grafts in self.behind.items()}
        self.above = self.lifted()
        self.says = {}
        self.say_roots()
        for n, grafts in self.above.items():
            says = self.says.setdefault(n, {})
            says.update(((GRAFT, y), graft) for y, graft in grafts.items())
        self.out = {n: self.count(g) for n, g in self.behind.items() if n is not None and g}
        self.into = {n: self.count(g) for n, g in self.above.items()}
        return True

    def known_roots(self) -> dict[int, int]:
        """Roots with their counts, as the neighbours on the ways from them tell."""
        here, way = self.local.node, self.routing.way
        told = self.heard.of(SOURCE)
        roots = {x: count for n in told for x, count in told[n].items() if way(x).before[here] == n}
        if self.local.published:
            roots[here] = self.total(self.local.published)
        return roots

    def say_roots(self) -> None:
        for x, count in self.roots.items():
            for n in self.routing.way(x).after.get(self.local.node, ()):
                self.say(n, (SOURCE, x), count)

    def all_behind(self) -> dict[Origin, Grafts]:
        """Grafts by the neighbour they came from, for trees that are known; the node's own too."""
        here, known = self.local.node, frozenset(self.roots)
        told: list[tuple[Origin, Grafts]] = list(self.heard.of(GRAFT).items())
        if self.local.subscribed:
            told.append((None, {here: Graft(self.total(self.local.subscribed), known - {here})}))
        return {n: grafts_among(grafts, known) for n, grafts in told}

    def lifted(self) -> dict[int, Grafts]:
        """Grafts for each neighbour that trees come from."""
        grafts: dict[int, Grafts] = {}
        for names in self.behind.values():
            for y, graft in names.items():
                for n, roots in self.split(graft.roots):
                    there = grafts.setdefault(n, {})
                    roots |= there[y].roots if y in there else frozenset()
                    there[y] = Graft(graft.subscribed, roots)
        return grafts

    def split(self, roots: frozenset[int]) -> Split:
        """Roots by the neighbour on the way from them, without this node itself."""
        if roots not in self.splits:
            found: dict[int, set[int]] = {}
            for x in roots - {self.local.node}:
                found.setdefault(self.routing.way(x).before[self.local.node], set()).add(x)
            self.splits[roots] = tuple((n, frozenset(some)) for n, some in found.items())
        return self.splits[roots]

    def count(self, grafts: Grafts) -> LinkCount:
        return LinkCount(
            sum(self.roots[x] for x in roots_of(grafts)),
            sum(graft.subscribed for graft in grafts.values()),
        )

    def pairs(self) -> tuple[tuple[int, int], ...]:
        wanted = [(n, roots) for n, roots in self.wanted.items() if n is not None]
        return tuple(sorted((before, n) for n, roots in wanted for before, _ in self.split(roots)))

    def first_mark(self, neighbour: int) -> Mark:
        """By the counts at hand: on these trees no rule keeps a marking valid."""
        count = self.out[neighbour]
        return "p" if self.local.gain(self.local.node, neighbour, *count) < 0 else "s"

    def carries(self, publisher: MarkingClient, _origin: Origin, neighbour: int) -> bool:
        return publisher.node in self.wanted.get(neighbour, ())

    def lift(
        self, subscriber: MarkingClient, lacking: dict[Origin, frozenset[int]], neighbour: int
    ) -> frozenset[int] | None:
        y = subscriber.node
        wanted = self.above.get(neighbour, {}).get(y, NONE_WANTED).roots
        come = (self.behind.get(n, {}).get(y, NONE_WANTED).roots - lacking[n] for n in lacking)
        found = wanted.intersection(frozenset().union(*come))
        return wanted - found if found else None

    def on_way(
        self, publisher: MarkingClient, _origin: Origin, subscriber: MarkingClient, side: Origin
    ) -> bool:
        if side is None:
            return True
        graft = self.behind.get(side, {}).get(subscriber.node)
        return graft is not None and publisher.node in graft.roots


def grafts_among(grafts: Grafts, known: frozenset[int]) -> Grafts:
    """Grafts to known trees only."""
    if all(graft.roots <= known for graft in grafts.values()):
        return {y: graft for y, graft in grafts.items() if graft.roots}
    return {y: Graft(g.subscribed, g.roots & known) for y, g in grafts.items() if g.roots & known}


def roots_of(grafts: Grafts) -> frozenset[int]:
    return frozenset().union(*(graft.roots for graft in grafts.values()))


def shapes(behind: dict[Origin, Grafts]) -> dict[Origin, dict[int, frozenset[int]]]:
    """Who is behind which neighbour in which trees, without numbers."""
    return {n: {y: graft.roots for y, graft in names.items()} for n, names in behind.items()}
