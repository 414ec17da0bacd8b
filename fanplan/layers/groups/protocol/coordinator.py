"""The coordinator of a tree (section 3.2): it finds groups and has them set up.

It is at the root, or at another broker. Then the root tells it of updates, and it tells the root
which groups are to be; both are control messages of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Bools, Floats, Ints
from fanplan.layers.groups.problem.build import MarkedCells, cell_groups
from fanplan.layers.groups.problem.groups import BrokerTrees, GroupsProblem
from fanplan.layers.groups.problem.matchers import DEFAULT
from fanplan.layers.groups.protocol.messages import (
    Accepted,
    Begun,
    Control,
    Ended,
    GroupMembers,
    Order,
    Update,
)
from fanplan.network.brokers import Routes

Choose = Callable[[GroupsProblem], Bools]
"""Which groups of a problem are set up."""


class Coordinator:
    """Rebuilds groups after ``every`` updates, once started; 0: only when told to.

    ``tell`` gives the root a message, ``notify`` tells a member of its group. ``seen`` counts the
    updates that it knows of. Numbers of groups are never used again, so that nothing late can be
    taken for something new.
    """

    def __init__(
        self,
        chart: Chart,
        choose: Choose,
        every: int,
        tell: Callable[[Control], None],
        notify: Callable[[int, int], None],
    ) -> None:
        self.chart, self.choose, self.every = chart, choose, every
        self.tell, self.notify = tell, notify
        self.standing: dict[int, GroupMembers] = {}
        self.order: Order | None = None
        self.seen = self.changes = self.groups_made = 0
        self.started = False

    def receive(self, message: Control) -> None:
        """What the root says."""
        match message:
            case Accepted():
                self.chart.change(message.update)
                self.seen += 1
                self.changes += 1
                self.begin_if_due()
            case Begun():
                self.notify_members()
            case Ended():
                assert self.order
                self.standing, self.order = self.order.standing, None
                self.begin_if_due()

    def begin_if_due(self) -> None:
        """Rebuild after this many updates; the first time only when told to."""
        if self.started and self.every and self.changes >= self.every:
            self.begin()

    def begin(self) -> None:
        """Identify groups, and have those set up whose members no standing group has."""
        if self.order:
            return
        self.started, self.changes = True, 0
        number_of = {members: group for group, members in self.standing.items()}
        carrier, standing, new = {}, {}, []
        for members, cells in self.chart.chosen(self.choose).items():
            group = number_of.get(members, DEFAULT)
            if group == DEFAULT:
                group, self.groups_made = self.groups_made, self.groups_made + 1
                new.append(group)
            standing[group] = members
            carrier.update(dict.fromkeys(cells, group))
        self.order = Order(self.seen, carrier, standing, tuple(new))
        self.tell(self.order)

    def notify_members(self) -> None:
        """Tell the members of new groups (Figure 6)."""
        assert self.order
        for group in self.order.new:
            for member in sorted(self.order.standing[group]):
                self.notify(group, member)


# ---- who wants what (section 3.1.1)


@dataclass(eq=False)
class Chart:
    """Who wants the traffic that enters at one root, by updates; what is sent is known.

    ``route`` are the numbers of the routes that enter there, ascending, in cells ``cell`` and with
    this many ``messages``. Brokers mark a cell if they want any route of it: overlap.
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

    def chosen(self, choose: Choose) -> dict[GroupMembers, list[int]]:
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
        starts, ends = flat_lists(wanted)
        source = np.full(len(self.route), self.tree.root[0], np.int32)
        deliveries = self.messages * np.diff(starts)
        routes = Routes(source, starts, ends, self.messages, deliveries)
        _, cell = np.unique(self.cell, return_inverse=True)
        marks = [set[int]() for _ in range(cell.max(initial=-1) + 1)]
        for place, brokers in zip(cell, wanted, strict=True):
            marks[place].update(brokers)
        cells = MarkedCells(cell.astype(np.int32), *flat_lists([sorted(mark) for mark in marks]))
        return cell_groups(self.brokers, self.tree, routes, cells)


def flat_lists(rows: list[list[int]]) -> tuple[np.ndarray, Ints]:
    """Lists one after the other, and where each begins."""
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return starts, np.array([one for row in rows for one in row], np.int32)
