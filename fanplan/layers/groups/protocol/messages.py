"""What brokers tell each other. All but publications are control messages."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

GroupMembers = frozenset[int]


class Numbered(NamedTuple):
    """The publication that the root sent as number ``number``, of a group or by default routing."""

    number: int
    route: int
    entered_ms: float
    group: int


class Update(NamedTuple):
    """A broker wants other traffic, up to the root. ``number`` counts those of a broker."""

    broker: int
    number: int
    added: frozenset[int]
    dropped: frozenset[int]


class Acceptance(NamedTuple):
    """An update is in force from publication ``since`` on, down to the broker it came from."""

    update: Update
    since: int


class Confirmation(NamedTuple):
    """A broker got the acceptance, straight to the root."""

    broker: int
    number: int


class Accepted(NamedTuple):
    """The root accepted an update, to a coordinator elsewhere."""

    update: Update


class Order(NamedTuple):
    """Set groups up, from a coordinator elsewhere to the root, which may hold back publications.

    ``carrier`` has the group of each cell, ``standing`` the members of all groups, of which ``new``
    are to be set up. It is based on the first ``seen`` updates that the root accepted.
    """

    seen: int
    carrier: dict[int, int]
    standing: dict[int, GroupMembers]
    new: tuple[int, ...]


class Begun(NamedTuple):
    """The root waits for the members of new groups, so that they may be told."""


class Ended(NamedTuple):
    """The groups of an order are in use."""


class Notification(NamedTuple):
    """You are a member, straight from the coordinator."""

    group: int


class GroupMessage(NamedTuple):
    """Send the messages of the group to me, up each link of its subtree once (Figure 6)."""

    group: int
    member: int


class Acknowledgement(NamedTuple):
    """The way down to a member is there: what its Group message is where one went up before."""

    group: int
    member: int


class Probe(NamedTuple):
    """The way since the last broker that does more than forward, down each link (Figure 7)."""

    group: int
    path: tuple[int, ...]


class Reply(NamedTuple):
    """Send to me instead of ``via``: a shortcut, straight to the start of a Probe (Figure 7)."""

    group: int
    via: int


class Completion(NamedTuple):
    """All shortcuts at and below the sender are there, straight to the start of a Probe."""

    group: int


class Removal(NamedTuple):
    """No more messages of the group will come, down its tree behind the last of them."""

    group: int


Control: TypeAlias = (
    Update | Acceptance | Confirmation | Notification | GroupMessage | Acknowledgement | Probe
    | Reply | Completion | Removal | Accepted | Order | Begun | Ended
)  # fmt: skip
Message: TypeAlias = Numbered | Control

KINDS: dict[type, str] = {
    Update: "updates",
    Acceptance: "acceptances",
    Confirmation: "confirmations",
    Notification: "notifications",
    GroupMessage: "group_messages",
    Acknowledgement: "acknowledgements",
    Probe: "probes",
    Reply: "replies",
    Completion: "completions",
    Removal: "removals",
    Accepted: "reports",
    Order: "orders",
    Begun: "begun",
    Ended: "ended",
}

OVERHEAD = ("notifications", "group_messages", "probes", "replies")
"""The kinds that the paper counts (section 5.1)."""
