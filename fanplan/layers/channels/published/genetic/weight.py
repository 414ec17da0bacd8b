"""What a subscription weighs (Guimarães & Rodrigues 2003, sections 3.2 to 3.5).

Its weight is that of its subject, in messages/s or bytes/s (3.5), times the probability of a
notification, by volume or by hits (3.4). Volumes (3.3) and covering relations (3.2) are exact:
boxes are two matrices, low and high ends, one line per box; intervals are half-open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fanplan.core.arrays import Floats, Longs
from fanplan.layers.channels.published.genetic.problem import UNCOUNTED, SubscriptionProblem

Unit = Literal["messages", "bytes"]

Kind = Literal["volume", "hits"]


def subscription_weight(
    problem: SubscriptionProblem, kind: Kind, sample: int, unit: Unit = "messages"
) -> Floats:
    """W(s_a) = W(a) · P(s_a)."""
    subject = subject_weight(problem, kind, unit)[problem.topic]
    return subject * subscription_probability(problem, kind, sample)


def row_weight(
    problem: SubscriptionProblem, kind: Kind, sample: int, unit: Unit = "messages"
) -> Floats:
    """The weight of each atomic volume; that of a union is the sum."""
    subject = subject_weight(problem, kind, unit)[problem.row_topic]
    return subject * row_probability(problem, kind, sample)


def subject_weight(problem: SubscriptionProblem, kind: Kind, unit: Unit = "messages") -> Floats:
    """W(a): what is sent on the whole topic, or what a server receives, which asks for the root."""
    messages = problem.topic_messages if kind == "volume" else problem.root_hits
    size = message_size(problem) if unit == "bytes" else 1.0
    return messages * size / problem.interest.seconds


def message_size(problem: SubscriptionProblem) -> Floats:
    """Mean bytes of a message of each topic, over those that somebody wants; 0 if there are none.

    Only what is wanted has a row. What nobody wants is taken to be of the same size.
    """
    interest, topics = problem.interest, len(problem.topic_messages)
    bytes, messages = (
        np.bincount(problem.row_topic, total, topics).astype(np.float64)
        for total in (interest.bytes, interest.messages)
    )
    return part_of_whole(bytes, messages)


def subscription_probability(problem: SubscriptionProblem, kind: Kind, sample: int) -> Floats:
    """P(s_a) of each subscription.

    By volume it is ‖V(s_a)‖ / ‖V(a)‖, right if notifications are uniform. By hits it is the share
    of the root's hits, or of its volume if the root has fewer than ``sample`` hits.
    """
    volumes, topic = subscription_volumes(problem), problem.topic
    if kind == "volume":
        return part_of_whole(volumes, problem.topic_volume[topic])
    enough = (problem.root_hits >= sample)[topic]
    counted = part_of_whole(known_hits(problem), problem.root_hits[topic])
    # An estimate is rounded and may take another way to the root, so it can exceed it.
    return np.minimum(
        np.where(enough, counted, part_of_whole(volumes, root_volumes(problem)[topic])), 1.0
    )


def row_probability(problem: SubscriptionProblem, kind: Kind, sample: int) -> Floats:
    """P of each atomic volume, from which that of any union follows by addition."""
    topic = problem.row_topic
    if kind == "volume":
        return part_of_whole(problem.row_volume, problem.topic_volume[topic])
    enough = (problem.root_hits >= sample)[topic]
    counted = part_of_whole(problem.interest.messages, problem.root_hits[topic])
    return np.where(
        enough, counted, part_of_whole(problem.row_volume, root_volumes(problem)[topic])
    )


def part_of_whole(part: Floats | Longs, whole: Floats) -> Floats:
    """Part of the whole, 0 of nothing."""
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)


@dataclass(frozen=True, eq=False)
class CountedSubscription:
    """A subscription by its boxes, with its hits."""

    lo: Floats
    hi: Floats
    hits: int

    def covers(self, other: CountedSubscription) -> bool:
        return boxes_cover(self.lo, self.hi, other.lo, other.hi)

    @property
    def volume(self) -> float:
        return volume(self.lo, self.hi)


def known_hits(problem: SubscriptionProblem) -> Longs:
    """Hits of all subscriptions: those not counted yet are estimated in order, topic by topic."""
    hits = problem.hits.copy()
    for topic in np.unique(problem.topic[hits == UNCOUNTED]):
        own = np.flatnonzero(problem.topic == topic)
        new = hits[own] == UNCOUNTED
        known = list(counted_subscriptions(problem, own[~new], hits)) if not new.all() else []
        hits[own[new]] = 0
        # Without a count the root has no hits, and so has everything below it.
        for i, subscription in zip(
            own[new], counted_subscriptions(problem, own[new], hits), strict=True
        ):
            if known:
                hits[i] = estimate_hits(subscription, known)
                known.append(CountedSubscription(subscription.lo, subscription.hi, int(hits[i])))
    return hits


def counted_subscriptions(
    problem: SubscriptionProblem, which: Longs, hits: Longs
) -> Iterator[CountedSubscription]:
    for i in which:
        line = problem.boxes[i]
        yield CountedSubscription(problem.lo[line], problem.hi[line], int(hits[i]))


def estimate_hits(new: CountedSubscription, known: list[CountedSubscription]) -> int:
    """Hits of a new subscription, from the closest ones that it covers and that cover it.

    The value lies between theirs, as section 3.4 has it; where s⁻ is denser than s⁺ on the whole
    the formula alone would give more than s⁺ has.
    """
    below = max((s for s in known if new.covers(s)), key=lambda s: s.hits, default=None)
    above = min((s for s in known if s.covers(new)), key=lambda s: s.hits, default=None)
    if above is None:
        return estimate_outside(new, known)
    least, inner = (below.hits, below.volume) if below else (0, 0.0)
    value = above.hits * (new.volume - inner) / above.volume + least
    return int(min(value, above.hits))


def estimate_outside(new: CountedSubscription, known: list[CountedSubscription]) -> int:
    """Hits of a new subscription that none covers: 0 for the first, all if it is the new root."""
    if not known:
        return 0
    root = find_root(known)
    if new.covers(root):
        return root.hits
    common = measures(*intersect(*disjoint(new.lo, new.hi), *disjoint(root.lo, root.hi))).sum()
    return int(root.hits * common / root.volume)


def find_root(known: list[CountedSubscription]) -> CountedSubscription:
    """The subscription that covers all others, else the smallest box that does.

    Such a box took over the hits of the root before it, that is, of the one with most hits.
    """
    for subscription in known:
        if all(subscription.covers(other) for other in known):
            return subscription
    low = np.min([s.lo.min(axis=0) for s in known], axis=0, keepdims=True)
    high = np.max([s.hi.max(axis=0) for s in known], axis=0, keepdims=True)
    return CountedSubscription(low, high, max(s.hits for s in known))


def subscription_volumes(problem: SubscriptionProblem) -> Floats:
    """The volume of each subscription; the boxes of a problem are disjoint already."""
    line = problem.boxes.values
    owner = np.repeat(np.arange(problem.size), np.diff(problem.boxes.starts))
    sizes = measures(problem.lo[line], problem.hi[line])
    return np.bincount(owner, sizes, problem.size).astype(np.float64)


def root_volumes(problem: SubscriptionProblem) -> Floats:
    """The volume of each topic's root: the smallest box that holds its subscriptions; else 0."""
    topics, axes = len(problem.topic_volume), problem.lo.shape[1]
    line = problem.boxes.values
    topic = np.repeat(problem.topic, np.diff(problem.boxes.starts))
    low, high = np.full((topics, axes), np.inf), np.full((topics, axes), -np.inf)
    np.minimum.at(low, topic, problem.lo[line])
    np.maximum.at(high, topic, problem.hi[line])
    result: Floats = np.prod(np.maximum(high - low, 0.0), axis=1)
    return result


def volume(lo: Floats, hi: Floats) -> float:
    """The volume of the union of boxes, which may overlap."""
    return float(measures(*disjoint(lo, hi)).sum())


def measures(lo: Floats, hi: Floats) -> Floats:
    """The volume of each box: the product of its sides."""
    result: Floats = np.prod(hi - lo, axis=1)
    return result


def disjoint(lo: Floats, hi: Floats) -> tuple[Floats, Floats]:
    """The same union as boxes of which no two meet: f = f1 ∨ … ∨ fk of section 3.3.

    From each box is taken what lies in an earlier one. Time and boxes grow with overlaps.
    """
    made = []
    for i in range(len(lo)):
        rest = lo[i : i + 1], hi[i : i + 1]
        for j in range(i):
            rest = subtract(*rest, lo[j], hi[j])
        made.append(rest)
    return joined_boxes(made, lo.shape[1])


def subtract(lo: Floats, hi: Floats, hole_lo: Floats, hole_hi: Floats) -> tuple[Floats, Floats]:
    """What is left of boxes outside a hole: cut off below and above it, axis by axis."""
    made = []
    for axis in range(lo.shape[1]):
        below, above = hi.copy(), lo.copy()
        below[:, axis] = np.minimum(hi[:, axis], hole_lo[axis])
        above[:, axis] = np.maximum(lo[:, axis], hole_hi[axis])
        made += [solid(lo, below), solid(above, hi)]
        lo, hi = lo.copy(), hi.copy()
        lo[:, axis] = np.maximum(lo[:, axis], hole_lo[axis])
        hi[:, axis] = np.minimum(hi[:, axis], hole_hi[axis])
        lo, hi = solid(lo, hi)
    return joined_boxes(made, lo.shape[1])


def intersect(lo: Floats, hi: Floats, other_lo: Floats, other_hi: Floats) -> tuple[Floats, Floats]:
    """The boxes in which boxes of two lists meet."""
    axes = lo.shape[1]
    low = np.maximum(lo[:, None], other_lo[None]).reshape(-1, axes)
    high = np.minimum(hi[:, None], other_hi[None]).reshape(-1, axes)
    return solid(low, high)


def solid(lo: Floats, hi: Floats) -> tuple[Floats, Floats]:
    """The boxes that hold a point."""
    keep = (lo < hi).all(axis=1)
    return lo[keep], hi[keep]


def joined_boxes(lists: list[tuple[Floats, Floats]], axes: int) -> tuple[Floats, Floats]:
    """Several lists of boxes as one."""
    none = np.empty((0, axes))
    low = np.concatenate([none, *(lo for lo, _ in lists)])
    return low, np.concatenate([none, *(hi for _, hi in lists)])


def boxes_cover(lo: Floats, hi: Floats, other_lo: Floats, other_hi: Floats) -> bool:
    """s C_s^s s′: whether s covers every notification that s′ covers."""
    if len(lo) == len(other_lo) == 1:
        return bool(((lo <= other_lo) & (other_hi <= hi)).all() or (other_lo >= other_hi).any())
    rest = solid(other_lo, other_hi)
    for hole_lo, hole_hi in zip(lo, hi, strict=True):
        rest = subtract(*rest, hole_lo, hole_hi)
    return len(rest[0]) == 0


def covers_notification(lo: Floats, hi: Floats, point: Floats) -> bool:
    """s C_s^n n: whether a notification meets all conditions of one of the boxes."""
    return bool(condition_covers(lo, hi, point).all(axis=1).any())


def condition_covers(lo: Any, hi: Any, value: Any) -> Any:
    """φ C_f^n α: whether an attribute's value meets a condition on it; also for many at once."""
    return (lo <= value) & (value < hi)
