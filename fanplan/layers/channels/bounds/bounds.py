"""Costs that no plan can undercut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import Floats
from fanplan.core.prices import Weights
from fanplan.data.interest import InterestProblem


@dataclass(frozen=True, order=True)
class Bound:
    """A cost that no plan of some kind undercuts, and the argument that proves it."""

    cost: float
    name: str


def lower_bound(problem: InterestProblem, weights: Weights, channels: int) -> float:
    """A cost that no plan with at most that many channels undercuts, for any weights.

    Holds for several channels per flow and with unicast. A flow costs no more than perfect
    multicast only if a channel's members are exactly its audience, or if unicast is as cheap. A
    channel has one set of members, so at most ``channels`` audiences can be matched; every other
    one pays at least ``cheapest_mismatch``. See docs/ledger.md for the proof.
    """
    messages, sizes = class_totals(problem)
    unicast = weights.unicast * sizes
    if channels == 0:
        return float(np.dot(messages, unicast))
    own_channel = weights.w2 + weights.w1 * sizes
    unmatched = np.minimum(unicast, own_channel + cheapest_mismatch(weights))
    gains = np.sort(messages * np.maximum(unmatched - own_channel, 0.0))[::-1]
    return float(np.dot(messages, unmatched) - gains[:channels].sum())


def cheapest_mismatch(weights: Weights) -> float:
    """What a flow on a channel pays at least beyond perfect multicast if no channel fits exactly.

    One unwanted reception, one more channel, or one unicast in place of a reception.
    """
    return min(weights.w1, weights.w2, weights.unicast - weights.w1)


def class_totals(problem: InterestProblem) -> tuple[Floats, Floats]:
    """Messages and audience size of each different audience."""
    _, first, group = np.unique(problem.classes, return_index=True, return_inverse=True)
    messages = np.zeros(len(first))
    np.add.at(messages, group, problem.messages)
    return messages, problem.audience_sizes[first].astype(np.float64)
