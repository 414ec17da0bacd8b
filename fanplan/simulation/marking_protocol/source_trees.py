"""Layer 1 on trees per source: roots become known downstream, subscribers graft upstream."""

from __future__ import annotations

from fanplan.simulation.marking_protocol.layer import CLIENT, Heard, Local
from fanplan.simulation.marking_protocol.messages import GRAFT, SOURCE, Client, Graft, Mark
from fanplan.simulation.marking_protocol.routing import Routing
from fanplan.simulation.marking_protocol.trees import Count, Origin, TreeLayer

Grafts = dict[int, Graft]


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

    def work(self) -> bool:
        old = self.roots, self.behind
        self.roots = self.known_roots()
        self.behind = self.all_behind()
        lifted = self.lifted()
        self.says = {}
        self.say_roots()
        for n, grafts in lifted.items():
            says = self.says.setdefault(n, {})
            says.update(((GRAFT, y), graft) for y, graft in grafts.items())
        self.out = {n: self.count(g) for n, g in self.behind.items() if n is not None and g}
        self.into = {n: self.count(g) for n, g in lifted.items()}
        self.reshaped = shapes(old[1]) != shapes(self.behind)
        return old != (self.roots, self.behind)

    def before(self, root: int) -> int:
        """The neighbour on the way from a root."""
        return self.routing.way(root).before[self.local.node]

    def known_roots(self) -> dict[int, int]:
        """Roots with their counts, as the neighbours on the ways from them tell."""
        told = self.heard.of(SOURCE)
        roots = {
            x: count for n, names in told.items() for x, count in names.items()
            if self.before(x) == n
        }  # fmt: skip
        if self.local.published:
            roots[self.local.node] = self.total(self.local.published)
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
        return {
            n: {
                y: Graft(g.subscribed, g.roots & known) for y, g in names.items() if g.roots & known
            }
            for n, names in told
        }

    def lifted(self) -> dict[int, Grafts]:
        """Grafts for each neighbour that trees come from."""
        grafts: dict[int, Grafts] = {}
        for names in self.behind.values():
            for y, graft in names.items():
                for x in graft.roots - {self.local.node}:
                    above = grafts.setdefault(self.before(x), {})
                    roots = above[y].roots if y in above else frozenset()
                    above[y] = Graft(graft.subscribed, roots | {x})
        return grafts

    def count(self, grafts: Grafts) -> Count:
        roots = frozenset().union(*(graft.roots for graft in grafts.values()))
        return Count(
            sum(self.roots[x] for x in roots), sum(graft.subscribed for graft in grafts.values())
        )

    def pairs(self) -> tuple[tuple[int, int], ...]:
        found = {
            (self.before(x), n)
            for n, grafts in self.behind.items()
            if n is not None
            for graft in grafts.values()
            for x in graft.roots - {self.local.node}
        }
        return tuple(sorted(found))

    def first_mark(self, neighbour: int) -> Mark:
        """By the counts at hand: on these trees no rule keeps a marking valid."""
        count = self.out[neighbour]
        return "p" if self.local.gain(self.local.node, neighbour, *count) < 0 else "s"

    def carries(self, publisher: Client, origin: Origin, neighbour: int) -> bool:
        grafts = self.behind.get(neighbour, {})
        return any(publisher.node in graft.roots for graft in grafts.values())

    def lifts(self, subscriber: Client, origin: Origin, neighbour: int) -> bool:
        graft = self.behind.get(origin, {}).get(subscriber.node)
        away = graft.roots - {self.local.node} if graft else ()
        return any(self.before(x) == neighbour for x in away)

    def on_way(self, publisher: Client, origin: Origin, subscriber: Client, side: Origin) -> bool:
        if side is None:
            return True
        graft = self.behind.get(side, {}).get(subscriber.node)
        return graft is not None and publisher.node in graft.roots


def shapes(behind: dict[Origin, Grafts]) -> dict[Origin, dict[int, frozenset[int]]]:
    """Who is behind which neighbour in which trees, without numbers."""
    return {n: {y: graft.roots for y, graft in names.items()} for n, names in behind.items()}
