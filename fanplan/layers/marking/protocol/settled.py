"""Layer 2: the counts of a node once they have settled."""

from __future__ import annotations

from fanplan.layers.marking.protocol.tier import WAKE, Heard, Layer, Local
from fanplan.layers.marking.protocol.trees import Table, TreeLayer


class SettledLayer(Layer):
    """The table of a node once its counts have not changed for ``hold_ms``.

    One client that comes or goes changes counts hop by hop. While these are on their way, nodes see
    violations that are none, and each would elect a solver.
    """

    hears = frozenset((WAKE,))

    def __init__(self, local: Local, heard: Heard, trees: TreeLayer, hold_ms: float) -> None:
        super().__init__(local, heard)
        self.trees, self.hold_ms = trees, hold_ms
        self.table, self.next = Table(), Table()
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
