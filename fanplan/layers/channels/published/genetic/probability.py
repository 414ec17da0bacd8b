"""Notification probability (Guimarães & Rodrigues 2003, section 3.4): by volume and by hits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fanplan.core.arrays import Floats, Longs
from fanplan.layers.channels.published.genetic.covering import covers
from fanplan.layers.channels.published.genetic.problem import UNCOUNTED, SubscriptionProblem
from fanplan.layers.channels.published.genetic.volume import (
    disjoint,
    intersect,
    measures,
    root_volumes,
    subscription_volumes,
    volume,
)

Kind = Literal["volume", "hits"]


@dataclass(frozen=True, eq=False)
class Counted:
    """A subscription by its boxes, with its hits."""

    lo: Floats
    hi: Floats
    hits: int

    def covers(self, other: Counted) -> bool:
        return covers(self.lo, self.hi, other.lo, other.hi)

    @property
    def volume(self) -> float:
        return volume(self.lo, self.hi)


def subscription_probability(problem: SubscriptionProblem, kind: Kind, sample: int) -> Floats:
    """P(s_a) of each subscription.

    By volume it is ‖V(s_a)‖ / ‖V(a)‖, right if notifications are uniform. By hits it is the share
    of the root's hits, or of its volume if the root has fewer than ``sample`` hits.
    """
    volumes, topic = subscription_volumes(problem), problem.topic
    if kind == "volume":
        return ratio(volumes, problem.topic_volume[topic])
    enough = (problem.root_hits >= sample)[topic]
    counted = ratio(known_hits(problem), problem.root_hits[topic])
    # An estimate is rounded and may take another way to the root, so it can exceed it.
    return np.minimum(np.where(enough, counted, ratio(volumes, root_volumes(problem)[topic])), 1.0)


def row_probability(problem: SubscriptionProblem, kind: Kind, sample: int) -> Floats:
    """P of each atomic volume, from which that of any union follows by addition."""
    topic = problem.row_topic
    if kind == "volume":
        return ratio(problem.row_volume, problem.topic_volume[topic])
    enough = (problem.root_hits >= sample)[topic]
    counted = ratio(problem.interest.messages, problem.root_hits[topic])
    return np.where(enough, counted, ratio(problem.row_volume, root_volumes(problem)[topic]))


def ratio(part: Floats | Longs, whole: Floats) -> Floats:
    """Part of the whole, 0 of nothing."""
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)


def known_hits(problem: SubscriptionProblem) -> Longs:
    """Hits of all subscriptions: those not counted yet are estimated in order, topic by topic."""
    hits = problem.hits.copy()
    for topic in np.unique(problem.topic[hits == UNCOUNTED]):
        own = np.flatnonzero(problem.topic == topic)
        new = hits[own] == UNCOUNTED
        known = list(counted(problem, own[~new], hits)) if not new.all() else []
        hits[own[new]] = 0
        # Without a count the root has no hits, and so has everything below it.
        for i, subscription in zip(own[new], counted(problem, own[new], hits), strict=True):
            if known:
                hits[i] = estimate(subscription, known)
                known.append(Counted(subscription.lo, subscription.hi, int(hits[i])))
    return hits


def counted(problem: SubscriptionProblem, which: Longs, hits: Longs) -> Iterator[Counted]:
    for i in which:
        line = problem.boxes[i]
        yield Counted(problem.lo[line], problem.hi[line], int(hits[i]))


def estimate(new: Counted, known: list[Counted]) -> int:
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


def estimate_outside(new: Counted, known: list[Counted]) -> int:
    """Hits of a new subscription that none covers: 0 for the first, all if it is the new root."""
    if not known:
        return 0
    root = find_root(known)
    if new.covers(root):
        return root.hits
    common = measures(*intersect(*disjoint(new.lo, new.hi), *disjoint(root.lo, root.hi))).sum()
    return int(root.hits * common / root.volume)


def find_root(known: list[Counted]) -> Counted:
    """The subscription that covers all others, else the smallest box that does.

    Such a box took over the hits of the root before it, that is, of the one with most hits.
    """
    for subscription in known:
        if all(subscription.covers(other) for other in known):
            return subscription
    low = np.min([s.lo.min(axis=0) for s in known], axis=0, keepdims=True)
    high = np.max([s.hi.max(axis=0) for s in known], axis=0, keepdims=True)
    return Counted(low, high, max(s.hits for s in known))
