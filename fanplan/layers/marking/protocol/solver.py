"""Layer 3 on trees per source: a node gathers what is entangled, solves it and tells the marks."""

from __future__ import annotations

from fanplan.layers.marking.protocol.messages import EXPLORE, SOLUTION, TABLE, Key, Mark
from fanplan.layers.marking.protocol.region import (
    Edge,
    Region,
    Route,
    ends,
    nodes_of,
    parents_of,
    route_of,
)
from fanplan.layers.marking.protocol.settled import SettledLayer
from fanplan.layers.marking.protocol.tier import Heard, Layer, Local
from fanplan.layers.marking.protocol.trees import Table

Marks = tuple[tuple[Edge, Mark], ...]


class SolverLayer(Layer):
    """Detects violations, gathers tables from node to node, and solves the entangled part.

    Ge et al. (2002), section 5: one of the nodes involved is elected. Every node that sees an
    s-link followed by a p-link begins; one that a node with a lower number has decided for stops.
    ``decided`` are marks of links out of this node that a solver, itself or another, has set.
    """

    hears = frozenset((EXPLORE, TABLE, SOLUTION))

    def __init__(self, local: Local, heard: Heard, settled: SettledLayer) -> None:
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
        if ends(around) <= tables.keys():
            self.accept(region.solve(part))

    def violating(self, covered: set[int]) -> set[Edge]:
        """Links in that would be s-links, and links out that follow and would be p-links."""
        here, table = self.local.node, self.settled.table
        into, out = dict(table.into), dict(table.out)
        pairs = [(n, m) for n, m in table.pairs if into[n] >= 0 > out[m] and m not in covered]
        return {(n, here) for n, _ in pairs} | {(here, m) for _, m in pairs}

    def gathered(self) -> dict[int, Table]:
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

    def pass_marks(self, step: tuple[int, Route], solver: int, marks: Marks) -> None:
        """To a neighbour the marks of links that it, or a node further on, decides."""
        there = nodes_of(step)
        theirs = tuple(item for item in marks if item[0][0] in there)
        if theirs:
            self.say(step[0], (SOLUTION, solver), theirs)

    def say(self, neighbour: int, key: Key, value: object) -> None:
        self.says.setdefault(neighbour, {})[key] = value
