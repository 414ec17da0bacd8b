"""What nodes tell each other: entries by kind and name, and as which messages they count."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal, NamedTuple

Mark = Literal["p", "s"]
Key = tuple[str, Hashable]
"""The kind of an entry and its name; what a node told a neighbour has one value for a key."""

HELLO = "hello"
BRANCH = "branch"
SOURCE = "source"
GRAFT = "graft"
MARK = "mark"
EXPLORE = "explore"
TABLE = "table"
SOLUTION = "solution"
ADVERTISEMENT = "advertisement"
SUBSCRIPTION = "subscription"
UP = "up"
DOWN = "down"

DESCRIPTORS = (ADVERTISEMENT, SUBSCRIPTION)
MESSAGES = (
    *("source", "graft", "count", "mark", "gather", "solve"),
    *("advertise", "subscribe", "withdraw", "signal", "release"),
    *("hello", "resend", "acknowledge"),
)
"""Kinds of messages, as they are counted."""

PLAIN = {
    HELLO: "hello",
    MARK: "mark",
    EXPLORE: "gather",
    TABLE: "gather",
    SOLUTION: "solve",
    ADVERTISEMENT: "advertise",
    SUBSCRIPTION: "subscribe",
    UP: "signal",
    DOWN: "signal",
}
TREES = {BRANCH: "graft", SOURCE: "source", GRAFT: "graft"}


class MarkingClient(NamedTuple):
    """A publisher or subscriber at a node, with this many descriptors.

    All of them together mean an arc of a ring of length 1, from ``low`` on. Two clients match if
    their arcs meet. All arcs of a run have the same length.
    """

    name: int
    node: int
    descriptors: int
    low: float


class Subscription(NamedTuple):
    """A subscriber whose descriptors come up a link, for the trees its node wants but some.

    Trees are ``lacking`` for a moment, while descriptors come or go on one tree and not yet on
    another. Without that, those of one who left could go on in a circle over several trees, each
    node being told of them by the next.
    """

    client: MarkingClient
    lacking: frozenset[int]

    @property
    def descriptors(self) -> int:
        return self.client.descriptors


def meet(publisher: MarkingClient, subscriber: MarkingClient, arc: float) -> bool:
    """Whether two arcs of this length have a point in common."""
    apart = abs(publisher.low - subscriber.low)
    return min(apart, 1.0 - apart) <= arc


class Branch(NamedTuple):
    """Descriptors of publishers and of subscribers on the sender's side of a shared tree's link."""

    published: int
    subscribed: int


class Graft(NamedTuple):
    """A subscribing node behind a link: its descriptors, and the roots whose trees it wants."""

    subscribed: int
    roots: frozenset[int]


def weight(key: Key, value: Any) -> int:
    """How many messages an entry is: every descriptor is one."""
    return int(value.descriptors) if value is not None and key[0] in DESCRIPTORS else 1


def message_kind(key: Key, old: Any, new: Any) -> str:
    """As what a changed entry counts; None stands for an entry that is not there."""
    kind = key[0]
    if kind in TREES:
        return TREES[kind] if entry_shape(old) != entry_shape(new) else "count"
    if new is None and kind in DESCRIPTORS:
        return "withdraw"
    if old is not None and kind == SUBSCRIPTION:
        return "graft"
    return "release" if new is None and kind in (UP, DOWN) else PLAIN[kind]


def entry_shape(entry: Any) -> Any:
    """What an entry says of trees, without its numbers."""
    if isinstance(entry, Branch):
        return entry.published > 0, entry.subscribed > 0
    return entry.roots if isinstance(entry, Graft) else entry is not None
