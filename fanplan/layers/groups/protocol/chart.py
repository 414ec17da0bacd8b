"""The subscription chart of a coordinator, and the groups it finds there (section 3.1.1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Bools, Floats, Ints
from fanplan.layers.groups.problem.build import Cells, cell_groups
from fanplan.layers.groups.problem.groups import BrokerTrees, GroupsProblem
from fanplan.layers.groups.protocol.messages import Update
from fanplan.network.brokers import Routes

Choose = Callable[[GroupsProblem], Bools]
"""Which groups of a problem are set up."""

Members = frozenset[int]


@dataclass(eq=False)
class Chart:
    """Who wants the traffic that enters at one root, by updates; what is sent is known.

    ``route`` are the numbers of the routes that enter there, ascending, in cells ``cell`` and with
    so many ``messages``. Brokers mark a cell if they want any route of it: overlap.
    """

    brokers: pa.Array
    tree: BrokerTrees
    route: Ints
    cell: Ints
    messages: Floats
    wants: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))

    def change(self, update: Update) -> None:
        for route in update.added:
            self.wants[route].add(update.broker)
        for route in update.dropped:
            self.wants[route].discard(update.broker)

    def chosen(self, choose: Choose) -> dict[Members, list[int]]:
        """Groups that are to be set up: the cells of each, by its members."""
        if not self.messages.any():
            return {}
        problem = self.problem()
        found = {}
        for group in np.flatnonzero(choose(problem)):
            members = problem.members[problem.starts[group] : problem.starts[group + 1]]
            inside = np.unique(self.cell[problem.group == group])
            found[frozenset(members.tolist())] = inside.tolist()
        return found

    def problem(self) -> GroupsProblem:
        """What groups are chosen from now."""
        wanted = [sorted(self.wants[route]) for route in self.route.tolist()]
        starts, ends = flat(wanted)
        source = np.full(len(self.route), self.tree.root[0], np.int32)
        deliveries = self.messages * np.diff(starts)
        routes = Routes(source, starts, ends, self.messages, deliveries)
        _, cell = np.unique(self.cell, return_inverse=True)
        marks = [set[int]() for _ in range(cell.max(initial=-1) + 1)]
        for place, brokers in zip(cell, wanted, strict=True):
            marks[place].update(brokers)
        cells = Cells(cell.astype(np.int32), *flat([sorted(mark) for mark in marks]))
        return cell_groups(self.brokers, self.tree, routes, cells)


def flat(rows: list[list[int]]) -> tuple[np.ndarray, Ints]:
    """Lists one after the other, and where each begins."""
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return starts, np.array([one for row in rows for one in row], np.int32)
