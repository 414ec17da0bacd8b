"""The root of a tree: it puts updates and publications in one order, and coordinates groups."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Bools, Floats, Ints
from fanplan.layers.groups.problem.build import MarkedCells, cell_groups
from fanplan.layers.groups.problem.groups import BrokerTrees, GroupsProblem
from fanplan.layers.groups.problem.matchers import DEFAULT
from fanplan.layers.groups.protocol.broker import Broker, Neighbours, Surroundings
from fanplan.layers.groups.protocol.messages import (
    Acceptance,
    Confirmation,
    Message,
    Notification,
    Publication,
    Update,
)
from fanplan.network.brokers import Routes

Choose = Callable[[GroupsProblem], Bools]
"""Which groups of a problem are set up."""

GroupMembers = frozenset[int]


@dataclass
class Rebuild:
    """A rebuild under way, and what it waits for.

    ``carrier`` has the group of each cell when it is done, ``standing`` all groups then. Cells that
    an update has touched since are left to default routing. ``unjoined`` has, for each new group,
    members whose way is not known to be there; a group in ``unfinished`` lacks ways or shortcuts.
    """

    began_ms: float
    carrier: dict[int, int]
    standing: dict[int, GroupMembers]
    affected: set[int]
    unconfirmed: set[tuple[int, int]]
    unjoined: dict[int, set[int]] = field(default_factory=dict)
    unfinished: set[int] = field(default_factory=set)

    @property
    def ready(self) -> bool:
        return not (self.unfinished or self.unconfirmed)


class Root(Broker):
    """``carrier`` has the group of each cell, ``standing`` the members of each group.

    Numbers of groups are never used again, so that nothing late can be taken for something new.
    """

    def __init__(
        self, near: Neighbours, around: Surroundings, chart: Chart, choose: Choose
    ) -> None:
        super().__init__(near, around)
        self.chart, self.choose, self.churn = chart, choose, around.churn
        self.cell = dict(zip(chart.route.tolist(), chart.cell.tolist(), strict=True))
        self.carrier: dict[int, int] = {}
        self.standing: dict[int, GroupMembers] = {}
        self.unconfirmed: set[tuple[int, int]] = set()
        self.rebuild: Rebuild | None = None
        self.held: deque[tuple[float, int]] = deque()
        self.number = self.changes = self.groups_made = 0
        self.started = False

    def receive(self, sender: int, message: Message) -> None:
        if isinstance(message, Confirmation):
            self.confirmed(message)
        else:
            super().receive(sender, message)

    # Publications.

    def publish(self, route: int) -> None:
        """A publication enters."""
        self.around.tally.entered += 1
        self.around.audit.entered()
        if self.holds(self.cell[route]):
            self.held.append((self.around.links.now, route))
        else:
            self.release(route, self.around.links.now)

    def holds(self, cell: int) -> bool:
        if self.rebuild is None or self.churn.hold == "none":
            return False
        return self.churn.hold == "all" or cell in self.rebuild.affected

    def release(self, route: int, entered_ms: float) -> None:
        """Send a publication on: this is when it is matched, and its place in the order."""
        self.around.audit.ordered(self.near.tree, self.number, route)
        group = self.carrier.get(self.cell[route], DEFAULT)
        publication = Publication(self.number, route, entered_ms, group)
        self.number += 1
        if group == DEFAULT:
            self.forward_by_content(publication, self.match())
        else:
            self.around.tally.grouped += 1
            self.forward_in_group(publication, self.match())

    # Updates.

    def update(self, sender: int, update: Update) -> None:
        """Accept an update. Cells it touches take default routing until the next rebuild.

        Default routing follows the same links as the acceptance, so it needs no waiting.
        """
        self.leads[update.broker] = sender
        self.around.audit.accepted(self.near.tree, update)
        self.chart.change(update)
        for route in update.added | update.dropped:
            self.evict(self.cell[route])
        self.unconfirmed.add((update.broker, update.number))
        self.changes += 1
        self.accept(Acceptance(update, self.number))
        self.begin_if_due()

    def evict(self, cell: int) -> None:
        self.around.tally.evicted += self.carrier.pop(cell, DEFAULT) != DEFAULT
        if self.rebuild:
            self.rebuild.carrier.pop(cell, None)

    def confirm(self, confirmation: Confirmation) -> None:
        self.confirmed(confirmation)

    def confirmed(self, confirmation: Confirmation) -> None:
        done = confirmation.broker, confirmation.number
        self.unconfirmed.discard(done)
        if self.rebuild:
            self.rebuild.unconfirmed.discard(done)
            self.end_rebuild()

    # The coordinator (section 3.2).

    def begin_if_due(self) -> None:
        """Rebuild after so many updates; the first time only when told to."""
        every = self.churn.rebuild_every
        if self.started and every and self.changes >= every:
            self.begin_rebuild()

    def begin_rebuild(self) -> None:
        """Identify groups, and set up those whose members no standing group has."""
        if self.rebuild:
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
        affected = {cell for cell, _ in carrier.items() ^ self.carrier.items()}
        self.rebuild = Rebuild(
            self.around.links.now, carrier, standing, affected, set(self.unconfirmed)
        )
        self.around.tally.built += len(new)
        self.around.tally.kept += len(standing) - len(new)
        self.set_up(new)

    def set_up(self, groups: list[int]) -> None:
        """Tell the members of new groups (Figure 6)."""
        assert self.rebuild
        root = self.near.broker
        self.rebuild.unfinished.update(groups)
        for group in groups:
            members = self.rebuild.standing[group]
            self.groups[group].member = root in members
            self.rebuild.unjoined[group] = set(members) - {root}
            for member in sorted(members - {root}):
                self.send(member, Notification(group))
        for group in groups:
            self.go_on(group)
        self.end_rebuild()

    def climb(self, group: int, member: int) -> None:
        self.joined(group, member)

    def joined(self, group: int, member: int) -> None:
        assert self.rebuild
        self.rebuild.unjoined[group].discard(member)
        self.go_on(group)

    def go_on(self, group: int) -> None:
        """Once all members have joined, look for shortcuts (Figure 7)."""
        assert self.rebuild
        if self.rebuild.unjoined[group]:
            return
        if self.churn.shortcuts:
            self.probe_below(group)
        else:
            self.completed(group)

    def completed(self, group: int) -> None:
        if self.rebuild:
            self.rebuild.unfinished.discard(group)
            self.end_rebuild()

    def end_rebuild(self) -> None:
        """Once all is there, switch at a stroke, release what is held, and remove old groups."""
        done = self.rebuild
        if done is None or not done.ready:
            return
        old = [group for group in self.standing if group not in done.standing]
        self.carrier, self.standing, self.rebuild = done.carrier, done.standing, None
        for group in old:
            self.remove(group)
        self.around.tally.rebuild_ms.append(self.around.links.now - done.began_ms)
        while self.held:
            entered_ms, route = self.held.popleft()
            self.around.tally.held_ms.append(self.around.links.now - entered_ms)
            self.release(route, entered_ms)
        self.begin_if_due()


# ---- who wants what (section 3.1.1)


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
