"""Layer 4: the mark of each link at both of its ends."""

from __future__ import annotations

from fanplan.layers.marking.protocol.messages import MARK, Mark
from fanplan.layers.marking.protocol.settled import SettledLayer
from fanplan.layers.marking.protocol.solver import SolverLayer
from fanplan.layers.marking.protocol.tier import Heard, Layer, Local
from fanplan.layers.marking.protocol.trees import TreeLayer


class MarksLayer(Layer):
    """The marks of the links out of a node, which it decides, and into it, which it is told.

    ``out`` and ``into`` have the marks by neighbour. The upstream end decides (Ge et al. 2002,
    section 5). Until it has told the mark, the downstream end sends no descriptors up the link.
    """

    def __init__(self, local: Local, heard: Heard, trees: TreeLayer) -> None:
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
        self, local: Local, heard: Heard, trees: TreeLayer, settled: SettledLayer,
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

    def __init__(self, local: Local, heard: Heard, trees: TreeLayer, mark: Mark) -> None:
        super().__init__(local, heard, trees)
        self.mark = mark

    def stale(self) -> bool:
        return self.trees.changed

    def work(self) -> bool:
        old = self.out, self.into
        self.out = dict.fromkeys(self.trees.out, self.mark)
        self.into = dict.fromkeys(self.trees.into, self.mark)
        return old != (self.out, self.into)
