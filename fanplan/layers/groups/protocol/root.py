"""The root of a tree: it puts updates and publications in one order, and switches groups."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from fanplan.layers.groups.problem.matchers import DEFAULT
from fanplan.layers.groups.protocol.broker import Broker, Neighbours, Surroundings
from fanplan.layers.groups.protocol.messages import (
    Acceptance,
    Accepted,
    Begun,
    Confirmation,
    Control,
    Ended,
    GroupMembers,
    Message,
    Numbered,
    Order,
    Update,
)


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

    ``cell`` has the cell of each route. ``touched`` has the cells of updates that the coordinator
    may not know of yet, by their number.
    """

    def __init__(self, near: Neighbours, around: Surroundings, cell: dict[int, int]) -> None:
        super().__init__(near, around)
        self.cell, self.churn = cell, around.churn
        self.carrier: dict[int, int] = {}
        self.standing: dict[int, GroupMembers] = {}
        self.unconfirmed: set[tuple[int, int]] = set()
        self.rebuild: Rebuild | None = None
        self.held: deque[tuple[float, int]] = deque()
        self.touched: deque[tuple[int, set[int]]] = deque()
        self.number = self.changes = 0

    def receive(self, sender: int, message: Message) -> None:
        if isinstance(message, Confirmation):
            self.confirmed(message)
        elif isinstance(message, Order):
            self.ordered(message)
        else:
            super().receive(sender, message)

    def tell(self, message: Control) -> None:
        """Tell the coordinator: at once if it is here."""
        if self.coordinator:
            self.coordinator.receive(message)
        else:
            self.send(self.near.coordinator, message)

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
        publication = Numbered(self.number, route, entered_ms, group)
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
        cells = {self.cell[route] for route in update.added | update.dropped}
        for cell in cells:
            self.evict(cell)
        self.changes += 1
        self.touched.append((self.changes, cells))
        self.unconfirmed.add((update.broker, update.number))
        self.accept(Acceptance(update, self.number))
        self.tell(Accepted(update))

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

    # Rebuilds (section 3.2).

    def ordered(self, order: Order) -> None:
        """Begin to set groups up. Cells that the coordinator knew too little of are left out."""
        while self.touched and self.touched[0][0] <= order.seen:
            self.touched.popleft()
        stale = {cell for _, cells in self.touched for cell in cells}
        carrier = {cell: group for cell, group in order.carrier.items() if cell not in stale}
        affected = {cell for cell, _ in carrier.items() ^ self.carrier.items()}
        self.rebuild = Rebuild(
            self.around.links.now, carrier, order.standing, affected, set(self.unconfirmed)
        )
        self.around.tally.built += len(order.new)
        self.around.tally.kept += len(order.standing) - len(order.new)
        self.set_up(order.new)

    def set_up(self, groups: tuple[int, ...]) -> None:
        """Have the members of new groups told, and wait for them."""
        assert self.rebuild
        root = self.near.broker
        self.rebuild.unfinished.update(groups)
        for group in groups:
            members = self.rebuild.standing[group]
            self.groups[group].member = root in members
            self.rebuild.unjoined[group] = set(members) - {root}
        self.tell(Begun())
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
        self.tell(Ended())
