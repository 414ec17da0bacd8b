"""Layer 1 on trees per source: roots become known downstream, subscribers graft upstream."""

from __future__ import annotations

from fanplan.layers.marking.protocol.messages import GRAFT, SOURCE, Client, Graft, Mark
from fanplan.layers.marking.protocol.routing import Routing
from fanplan.layers.marking.protocol.tier import CLIENT, Heard, Local
from fanplan.layers.marking.protocol.trees import Count, Origin, TreeLayer

Grafts = dict[int, Graft]
NONE_WANTED = Graft(0, frozenset())
Split = tuple[tuple[int, frozenset[int]], ...]


class SourceTreesLayer(TreeLayer):
    """Every publishing node is the root of a tree.

    A root tells its count along its way to all nodes, as the flooding of PIM-DM does: else nobody
    could know whose trees there are. Subscribing nodes graft to all trees, against these ways, so
    that trees have only paths that lead to subscribers. As a subscriber counts once for a link, in
    however many trees it is behind it (Ge et al. 2002, Eq. 6), grafts have its name.
    """

    hears = frozenset((SOURCE, GRAFT, CLIENT))

    def __init__(self, local: Local, heard: Heard, counted: bool, routing: Routing) -> None:
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
                self.says.setdefault(n, {})[SOURCE, x] = count

    def all_behind(self) -> dict[Origin, Grafts]:
        """Grafts by the neighbour they came from, for trees that are known; the node's own too."""
        here, known = self.local.node, frozenset(self.roots)
        told: list[tuple[Origin, Grafts]] = list(self.heard.of(GRAFT).items())
        if self.local.subscribed:
            told.append((None, {here: Graft(self.total(self.local.subscribed), known - {here})}))
        return {n: among(grafts, known) for n, grafts in told}

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

    def count(self, grafts: Grafts) -> Count:
        return Count(
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

    def carries(self, publisher: Client, origin: Origin, neighbour: int) -> bool:
        return publisher.node in self.wanted.get(neighbour, ())

    def lift(
        self, subscriber: Client, lacking: dict[Origin, frozenset[int]], neighbour: int
    ) -> frozenset[int] | None:
        y = subscriber.node
        wanted = self.above.get(neighbour, {}).get(y, NONE_WANTED).roots
        come = (self.behind.get(n, {}).get(y, NONE_WANTED).roots - lacking[n] for n in lacking)
        found = wanted.intersection(frozenset().union(*come))
        return wanted - found if found else None

    def on_way(self, publisher: Client, origin: Origin, subscriber: Client, side: Origin) -> bool:
        if side is None:
            return True
        graft = self.behind.get(side, {}).get(subscriber.node)
        return graft is not None and publisher.node in graft.roots


def among(grafts: Grafts, known: frozenset[int]) -> Grafts:
    """Grafts to known trees only."""
    if all(graft.roots <= known for graft in grafts.values()):
        return {y: graft for y, graft in grafts.items() if graft.roots}
    return {y: Graft(g.subscribed, g.roots & known) for y, g in grafts.items() if g.roots & known}


def roots_of(grafts: Grafts) -> frozenset[int]:
    return frozenset().union(*(graft.roots for graft in grafts.values()))


def shapes(behind: dict[Origin, Grafts]) -> dict[Origin, dict[int, frozenset[int]]]:
    """Who is behind which neighbour in which trees, without numbers."""
    return {n: {y: graft.roots for y, graft in names.items()} for n, names in behind.items()}
