"""A broker: default routing, forwarding by groups, and its part in setting both up.

It knows its neighbours in the tree, the place of the root, and what messages told it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import NamedTuple

from fanplan.layers.groups.problem.matchers import DEFAULT
from fanplan.layers.groups.protocol.audit import Audit, AuditCounts
from fanplan.layers.groups.protocol.coordinator import Coordinator
from fanplan.layers.groups.protocol.links import OrderedLinks
from fanplan.layers.groups.protocol.messages import (
    Acceptance,
    Accepted,
    Acknowledgement,
    Begun,
    Completion,
    Confirmation,
    Ended,
    GroupMessage,
    Message,
    Notification,
    Numbered,
    Probe,
    Removal,
    Reply,
    Update,
)
from fanplan.layers.groups.protocol.params import GroupsChurn

NOBODY = -1


class Surroundings(NamedTuple):
    """What all brokers share: links, how they behave, and those who watch."""

    links: OrderedLinks
    churn: GroupsChurn
    tally: AuditCounts
    audit: Audit


class Neighbours(NamedTuple):
    """Where a broker stands in a tree, and who coordinates. The root has NOBODY as its parent."""

    tree: int
    broker: int
    parent: int
    children: tuple[int, ...]
    root: int
    coordinator: int


@dataclass
class Forwarding:
    """What a broker knows of a group: to whom it sends, and whether it is a member.

    ``climbed``: a Group message went up. ``origin``: where the last Probe started. ``complete``:
    those who have all their shortcuts.
    """

    to: set[int] = field(default_factory=set)
    member: bool = False
    climbed: bool = False
    origin: int = NOBODY
    complete: set[int] = field(default_factory=set)

    @property
    def only_forwards(self) -> bool:
        return not self.member and len(self.to) == 1


class Broker:
    """``table[child][route]`` is how many brokers at and below a child want a route."""

    def __init__(self, near: Neighbours, around: Surroundings) -> None:
        self.near, self.around = near, around
        self.table: dict[int, Counter[int]] = {child: Counter() for child in near.children}
        self.leads: dict[int, int] = {}
        self.interest = RouteInterest()
        self.groups: dict[int, Forwarding] = defaultdict(Forwarding)
        self.coordinator: Coordinator | None = None
        self.updates = 0
        self.asked_ms: deque[float] = deque()

    def send(self, to: int, message: Message, after_ms: float = 0.0) -> None:
        tree, links = self.near.tree, self.around.links
        self.around.tally.sent(message)
        links.send(((tree, self.near.broker), (tree, to)), message, after_ms)

    def receive(self, sender: int, message: Message) -> None:  # noqa: C901 - a case per message
        match message:
            case Numbered():
                self.around.tally.received[self.near.broker] += 1
                self.forward(message)
            case Update():
                self.update(sender, message)
            case Acceptance():
                self.accept(message)
            case Notification():
                self.become_member(message.group)
            case Accepted() | Begun() | Ended():
                assert self.coordinator
                self.coordinator.receive(message)
            case GroupMessage():
                self.add_entry(message.group, sender)
                self.climb(message.group, message.member)
            case Acknowledgement():
                self.joined(message.group, message.member)
            case Probe():
                self.probe(message)
            case Reply():
                self.groups[message.group].to.remove(message.via)
                self.groups[message.group].to.add(sender)
            case Completion():
                self.groups[message.group].complete.add(sender)
                self.complete_shortcuts(message.group)
            case Removal():
                self.remove(message.group)

    # Subscriptions: updates go up, and are in force on the way back.

    def change(self, added: frozenset[int], dropped: frozenset[int]) -> None:
        """Clients of this broker want other routes."""
        self.updates += 1
        self.asked_ms.append(self.around.links.now)
        update = Update(self.near.broker, self.updates, added, dropped)
        self.around.audit.requested(self.near.tree, update)
        self.update(self.near.broker, update)

    def update(self, sender: int, update: Update) -> None:
        self.leads[update.broker] = sender
        self.send(self.near.parent, update)

    def accept(self, accepted: Acceptance) -> None:
        """Put an update in force: behind all that the root sent before, ahead of all after."""
        update = accepted.update
        if update.broker == self.near.broker:
            self.interest.change(update, accepted.since)
            self.around.audit.confirmed(self.near.tree, update)
            waited_ms = self.around.links.now - self.asked_ms.popleft()
            self.around.tally.accepted_ms.append(waited_ms)
            self.confirm(Confirmation(update.broker, update.number))
            return
        child = self.leads[update.broker]
        self.table[child].update(update.added)
        self.table[child].subtract(update.dropped)
        self.send(child, accepted)

    def confirm(self, confirmation: Confirmation) -> None:
        self.send(self.near.root, confirmation)

    # Publications.

    def forward(self, publication: Numbered) -> None:
        if publication.group != DEFAULT:
            self.forward_in_group(publication, 0.0)
        else:
            # An end of the tree has nothing to match for (section 5.2.1).
            self.forward_by_content(publication, self.match() if self.near.children else 0.0)

    def forward_by_content(self, publication: Numbered, after_ms: float) -> None:
        """Default routing: to all children below whom somebody wants it."""
        for child, wanted in self.table.items():
            if wanted[publication.route] > 0:
                self.send(child, publication, after_ms)
        if self.interest.wanted(publication.route, publication.number):
            self.deliver(publication, after_ms)

    def forward_in_group(self, publication: Numbered, after_ms: float) -> None:
        """No match: the table of the group says where to. A member drops what it did not want."""
        known = self.groups.get(publication.group)
        if known is None:
            return
        for broker in sorted(known.to):
            self.send(broker, publication, after_ms)
        if known.member:
            if self.interest.wanted(publication.route, publication.number):
                self.deliver(publication, after_ms)
            else:
                self.around.tally.unwanted[self.near.broker] += 1

    def match(self) -> float:
        self.around.tally.matched[self.near.broker] += 1
        return self.around.churn.match_ms

    def deliver(self, publication: Numbered, after_ms: float) -> None:
        tree, broker = self.near.tree, self.near.broker
        self.around.audit.delivered(tree, publication.number, broker)
        delay_ms = self.around.links.now + after_ms - publication.entered_ms
        self.around.tally.delivered(broker, delay_ms)

    # Groups: Zhang & Hu (2005), Figure 6.

    def notify(self, group: int, member: int) -> None:
        """Tell a member, as the coordinator here does; the root knows by the order."""
        if member == self.near.root:
            return
        if member == self.near.broker:
            self.become_member(group)
        else:
            self.send(member, Notification(group))

    def become_member(self, group: int) -> None:
        self.groups[group].member = True
        self.climb(group, self.near.broker)

    def add_entry(self, group: int, to: int) -> None:
        if to not in self.groups[group].to:
            self.groups[group].to.add(to)
            self.around.tally.kept_entries(self.near.broker, 1)

    def climb(self, group: int, member: int) -> None:
        """Pass a Group message up; where one went before, what is left is an acknowledgement.

        Links keep order. So when either comes to the root, all entries on the way are there.
        """
        known = self.groups[group]
        if known.climbed:
            self.joined(group, member)
        else:
            known.climbed = True
            self.send(self.near.parent, GroupMessage(group, member))

    def joined(self, group: int, member: int) -> None:
        self.send(self.near.parent, Acknowledgement(group, member))

    def remove(self, group: int) -> None:
        """Forget a group. The message takes the ways of its publications, and so comes last."""
        for broker in sorted(self.forget(group).to):
            self.send(broker, Removal(group))

    def forget(self, group: int) -> Forwarding:
        known = self.groups.pop(group)
        self.around.tally.kept_entries(self.near.broker, -len(known.to))
        return known

    # Shortcuts: Figure 7.

    def probe(self, probe: Probe) -> None:
        known, broker = self.groups[probe.group], self.near.broker
        if known.only_forwards:
            # Bypassed from now on, as a shortcut will start above and end below.
            (below,) = self.forget(probe.group).to
            self.send(below, Probe(probe.group, (*probe.path, broker)))
            return
        known.origin = probe.path[0]
        if len(probe.path) > 1:
            self.send(known.origin, Reply(probe.group, via=probe.path[1]))
        self.probe_below(probe.group)

    def probe_below(self, group: int) -> None:
        for broker in sorted(self.groups[group].to):
            self.send(broker, Probe(group, (self.near.broker,)))
        self.complete_shortcuts(group)

    def complete_shortcuts(self, group: int) -> None:
        """Tell the start of the Probe when all below is done. A Reply comes before, on its link."""
        if self.groups[group].complete == self.groups[group].to:
            self.completed(group)

    def completed(self, group: int) -> None:
        self.send(self.groups[group].origin, Completion(group))


class RouteInterest:
    """Since when each route is wanted, or no longer: the first change turns interest on.

    Publications of groups take other ways than acceptances and may come late. So old changes are
    kept, and the number of a publication says which of them were in force.
    """

    def __init__(self) -> None:
        self._changes: dict[int, list[int]] = defaultdict(list)

    def change(self, update: Update, since: int) -> None:
        for route in update.added | update.dropped:
            self._changes[route].append(since)

    def wanted(self, route: int, number: int) -> bool:
        """Whether publication ``number`` is wanted, by what was in force when the root sent it."""
        return bisect_right(self._changes.get(route, ()), number) % 2 == 1
