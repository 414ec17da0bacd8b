"""Layers 2 and 3: counts that have settled; and who solves what is entangled on trees per source.

A node that sees a violation gathers the tables around it, solves the links that must be decided
together, and tells their marks.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from fanplan.layers.marking.protocol.messages import EXPLORE, SOLUTION, TABLE, Mark
from fanplan.layers.marking.protocol.node_layer import WAKE, HeardFrom, LocalView, NodeLayer
from fanplan.layers.marking.protocol.trees import GainTable, TreeLayer
from fanplan.layers.marking.search.marking import as_whole_numbers, best_links
from fanplan.layers.marking.search.requirements import gathered_pairs

Edge = tuple[int, int]

Follow = dict[Edge, set[Edge]]

Route = tuple[tuple[int, "Route"], ...]
"""Neighbours, and from each of them further ones."""

SolvedMarks = tuple[tuple[Edge, Mark], ...]


class SettledLayer(NodeLayer):
    """The table of a node once its counts have not changed for ``hold_ms``.

    One client that comes or goes changes counts hop by hop. While these are on their way, nodes see
    violations that are none, and each would elect a solver.
    """

    hears = frozenset((WAKE,))

    def __init__(
        self, local: LocalView, heard: HeardFrom, trees: TreeLayer, hold_ms: float
    ) -> None:
        super().__init__(local, heard)
        self.trees, self.hold_ms = trees, hold_ms
        self.table, self.next = GainTable(), GainTable()
        self.due = self.waking = 0.0

    def stale(self) -> bool:
        return self.trees.changed

    def work(self) -> bool:
        now = self.local.clock.now
        if self.trees.changed and (table := self.trees.table()) != self.next:
            self.next, self.due = table, now + self.hold_ms
        if self.table == self.next:
            return False
        if now >= self.due:
            self.table = self.next
            return True
        if self.waking <= now:
            self.waking = self.due
            self.local.clock.wake(self.local.node, self.due)
        return False


class SolverLayer(NodeLayer):
    """Detects violations, gathers tables from node to node, and solves the entangled part.

    Ge et al. (2002), section 5: one of the nodes involved is elected. Every node that sees an
    s-link followed by a p-link begins; one that a node with a lower number has decided for stops.
    ``decided`` are marks of links out of this node that a solver, itself or another, has set.
    """

    hears = frozenset((EXPLORE, TABLE, SOLUTION))

    def __init__(self, local: LocalView, heard: HeardFrom, settled: SettledLayer) -> None:
        super().__init__(local, heard)
        self.settled = settled
        self.decided: dict[int, Mark] = {}
        self.parents: dict[int, int] = {}
        self.solution: dict[Edge, Mark] = {}
        self.active = False

    def stale(self) -> bool:
        return self.settled.changed

    def work(self) -> bool:
        old = self.decided
        told = self.told_marks()
        self.solve_own({n for solver, marks in told if solver < self.local.node for n in marks})
        self.says = {}
        self.say_own()
        for n, routes in self.heard.of(EXPLORE).items():
            for solver, further in routes.items():
                self.relay(n, solver, further)
        own = {n: mark for (tail, n), mark in self.solution.items() if tail == self.local.node}
        self.decided = {}
        for _, marks in sorted([*told, (self.local.node, own)], key=lambda item: -item[0]):
            self.decided |= marks  # The solver with the lowest number comes last.
        return old != self.decided

    def told_marks(self) -> list[tuple[int, dict[int, Mark]]]:
        """Solvers, with the marks that they told for links out of this node."""
        here = self.local.node
        return [
            (solver, {n: mark for (tail, n), mark in marks if tail == here})
            for names in self.heard.of(SOLUTION).values()
            for solver, marks in names.items()
        ]

    # ---- as the solver

    def solve_own(self, covered: set[int]) -> None:
        """Go on with the part of this node's violations, but those that others have solved."""
        seeds = self.violating(covered)
        if seeds and not self.active:
            self.local.clock.elected()
        self.active = bool(seeds)
        if not seeds:
            self.parents, self.solution = {}, {}
            return
        tables = {self.local.node: self.settled.table, **self.gathered()}
        region = Region(tables)
        part = region.part(seeds)
        around = region.around(part)
        self.parents = parents_of(self.local.node, around, self.parents)
        if ends_of_links(around) <= tables.keys():
            self.accept(region.solve(part))

    def violating(self, covered: set[int]) -> set[Edge]:
        """Links in that would be s-links, and links out that follow and would be p-links."""
        here, table = self.local.node, self.settled.table
        into, out = dict(table.into), dict(table.out)
        pairs = [(n, m) for n, m in table.pairs if into[n] >= 0 > out[m] and m not in covered]
        return {(n, here) for n, _ in pairs} | {(here, m) for _, m in pairs}

    def gathered(self) -> dict[int, GainTable]:
        return {
            node: table
            for names in self.heard.of(TABLE).values()
            for (solver, node), table in names.items()
            if solver == self.local.node
        }

    def accept(self, solution: dict[Edge, Mark]) -> None:
        if solution != self.solution:
            self.solution = solution
            self.local.clock.solved(len(solution))

    def say_own(self) -> None:
        for step in route_of(self.local.node, self.parents):
            self.say(step[0], (EXPLORE, self.local.node), step[1])
            self.pass_marks(step, self.local.node, tuple(sorted(self.solution.items())))

    # ---- for other solvers

    def relay(self, origin: int, solver: int, further: Route) -> None:
        """Tell a solver the own table and those further on, and pass on what it says."""
        self.say(origin, (TABLE, (solver, self.local.node)), self.settled.table)
        marks = self.heard.of(SOLUTION).get(origin, {}).get(solver, ())
        for step in further:
            self.say(step[0], (EXPLORE, solver), step[1])
            self.pass_marks(step, solver, marks)
            told = self.heard.of(TABLE).get(step[0], {})
            for node in nodes_of(step):
                if (solver, node) in told:
                    self.say(origin, (TABLE, (solver, node)), told[solver, node])

    def pass_marks(self, step: tuple[int, Route], solver: int, marks: SolvedMarks) -> None:
        """To a neighbour the marks of links that it, or a node further on, decides."""
        there = nodes_of(step)
        theirs = tuple(item for item in marks if item[0][0] in there)
        if theirs:
            self.say(step[0], (SOLUTION, solver), theirs)


# ---- the links around a violation


class Region:
    """The links that some nodes' tables tell of: their gains, and which follow which in a tree."""

    def __init__(self, tables: dict[int, GainTable]) -> None:
        self.gain: dict[Edge, float] = {}
        self.after: Follow = {}
        self.before: Follow = {}
        for node, table in tables.items():
            for n, gain in table.into:
                self.gain.setdefault((n, node), gain)
            for n, n_after in table.pairs:
                self.after.setdefault((n, node), set()).add((node, n_after))
                self.before.setdefault((node, n_after), set()).add((n, node))
        # Both ends know a gain. While they disagree, the upstream end is right.
        self.gain |= {(node, n): gain for node, table in tables.items() for n, gain in table.out}

    def part(self, seeds: set[Edge]) -> set[Edge]:
        """The links that must be decided together with these.

        Such a link is, or follows, one that would be an s-link by itself, and it is, or is
        followed by, one that would be a p-link. Links beside them are decided by themselves.
        """
        wishing = reach(self.after, {edge for edge, gain in self.gain.items() if gain >= 0})
        refusing = reach(self.before, {edge for edge, gain in self.gain.items() if gain < 0})
        return reach_within(wishing & refusing, seeds, self.after, self.before)

    def around(self, part: set[Edge]) -> set[Edge]:
        """The part, all links before it and all after it: who else belongs to it is among them."""
        return reach(self.before, part) | reach(self.after, part)

    def solve(self, part: set[Edge]) -> dict[Edge, Mark]:
        """The best marks of a part: the exact marking of its links alone."""
        edges = sorted(part)
        place = {edge: i for i, edge in enumerate(edges)}
        pairs = [(place[a], place[b]) for a in edges for b in self.after.get(a, ()) if b in place]
        marks = best_marks(tuple(self.gain[edge] for edge in edges), tuple(sorted(pairs)))
        return dict(zip(edges, marks, strict=True))


@lru_cache(maxsize=4096)
def best_marks(gains: tuple[float, ...], pairs: tuple[Edge, ...]) -> tuple[Mark, ...]:
    """The best marks of links with these gains, of which some require others.

    Most tables that arrive change nothing in a part, so answers are kept.
    """
    owner, item = np.array(pairs, np.int64).reshape(-1, 2).T
    publish, _ = best_links(
        gathered_pairs(owner, item, len(gains)), as_whole_numbers(np.array(gains))
    )
    return tuple("p" if p else "s" for p in publish.tolist())


def reach(follow: Follow, start: set[Edge]) -> set[Edge]:
    """The start, and all that follows it, directly or not."""
    found, stack = set(start), list(start)
    while stack:
        new = follow.get(stack.pop(), set()) - found
        found |= new
        stack.extend(new)
    return found


def reach_within(inside: set[Edge], start: set[Edge], *follows: Follow) -> set[Edge]:
    """What hangs together with the start inside a set."""
    found, stack = start & inside, list(start & inside)
    while stack:
        edge = stack.pop()
        new = set().union(*(follow.get(edge, set()) for follow in follows)) & inside - found
        found |= new
        stack.extend(new)
    return found


def ends_of_links(edges: Iterable[Edge]) -> set[int]:
    """The nodes at the ends of links."""
    return {node for edge in edges for node in edge}


# ---- ways from a solver


def parents_of(root: int, edges: set[Edge], old: dict[int, int]) -> dict[int, int]:
    """The node before each end of these links on a way from the root; ways that there are stay.

    If they gave way to shorter ones, a table could be missed for a moment, and with it the links
    that the shorter way was found by.
    """
    wanted, parents = ends_of_links(edges), {root: root}
    for node in wanted & old.keys():
        while node not in parents:
            parents[node] = old[node]
            node = old[node]
    order = sorted(parents)
    for node in order:
        new = {n for edge in edges if node in edge for n in edge} - parents.keys()
        parents |= dict.fromkeys(sorted(new), node)
        order.extend(sorted(new))
    return parents


def route_of(root: int, parents: dict[int, int]) -> Route:
    """The ways from a root as neighbours, and what is further on from each."""
    below = sorted(node for node, parent in parents.items() if parent == root and node != root)
    return tuple((node, route_of(node, parents)) for node in below)


def nodes_of(step: tuple[int, Route]) -> set[int]:
    """A neighbour and all nodes that are further on its route."""
    node, further = step
    return {node}.union(*(nodes_of(next_) for next_ in further))
