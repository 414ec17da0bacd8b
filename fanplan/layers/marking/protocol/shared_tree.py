"""Layer 1 on a shared tree: grafting towards the core, and counts of both sides of each link."""

from __future__ import annotations

from fanplan.core.arrays import NONE
from fanplan.layers.marking.protocol.messages import BRANCH, Branch, Client, Mark
from fanplan.layers.marking.protocol.routing import Routing
from fanplan.layers.marking.protocol.tier import CLIENT, Heard, Local
from fanplan.layers.marking.protocol.trees import Count, Origin, TreeLayer

NOBODY = Branch(0, 0)


class SharedTreeLayer(TreeLayer):
    """Each end of a tree's link tells the other what is on its side.

    A node joins by telling its parent, and leaves by telling it no more; a parent that has joined
    itself answers. Hop by hop the sums of Ge et al. (2002), section 5, reach all nodes on the tree.
    """

    hears = frozenset((BRANCH, CLIENT))

    def __init__(self, local: Local, heard: Heard, counted: bool, routing: Routing) -> None:
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
                self.out[n] = Count(here.published, there.subscribed)
            if there.published and here.subscribed:
                self.into[n] = Count(there.published, here.subscribed)
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

    def carries(self, publisher: Client, origin: Origin, neighbour: int) -> bool:
        return origin != neighbour

    def lift(
        self, subscriber: Client, lacking: dict[Origin, frozenset[int]], neighbour: int
    ) -> frozenset[int] | None:
        return frozenset() if lacking.keys() - {neighbour} else None

    def on_way(self, publisher: Client, origin: Origin, subscriber: Client, side: Origin) -> bool:
        return origin is None or origin != side
