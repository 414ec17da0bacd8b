"""What brokers tell each other. All but publications are control messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Publication:
    """The publication that the root sent as number ``number``, of a group or by default routing."""

    number: int
    route: int
    entered_ms: float
    group: int


@dataclass(frozen=True, slots=True)
class Update:
    """A broker wants other traffic, up to the coordinator. ``number`` counts those of a broker."""

    broker: int
    number: int
    added: frozenset[int]
    dropped: frozenset[int]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """An update is in force from publication ``since`` on, down to the broker it came from."""

    update: Update
    since: int


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A broker got the acceptance, straight to the coordinator."""

    broker: int
    number: int


@dataclass(frozen=True, slots=True)
class Notification:
    """You are a member, straight from the coordinator."""

    group: int


@dataclass(frozen=True, slots=True)
class GroupMessage:
    """Send the messages of the group to me, up each link of its subtree once (Figure 6)."""

    group: int
    member: int


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """The way down to a member is there: what its Group message is where one went up before."""

    group: int
    member: int


@dataclass(frozen=True, slots=True)
class Probe:
    """The way since the last broker that does more than forward, down each link (Figure 7)."""

    group: int
    path: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """Send to me instead of ``via``: a shortcut, straight to the start of a Probe (Figure 7)."""

    group: int
    via: int


@dataclass(frozen=True, slots=True)
class Completion:
    """All shortcuts at and below the sender are there, straight to the start of a Probe."""

    group: int


@dataclass(frozen=True, slots=True)
class Removal:
    """No more messages of the group will come, down its tree behind the last of them."""

    group: int


Control: TypeAlias = (
    Update | Acceptance | Confirmation | Notification | GroupMessage | Acknowledgement | Probe
    | Reply | Completion | Removal
)  # fmt: skip
Message: TypeAlias = Publication | Control

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
}

OVERHEAD = ("notifications", "group_messages", "probes", "replies")
"""The kinds that the paper counts (section 5.1)."""
