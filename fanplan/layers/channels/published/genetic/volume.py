"""Subscription volume (Guimarães & Rodrigues 2003, section 3.3): exact, for several boxes.

Boxes are two matrices, low and high ends, one line per box; intervals are half-open.
"""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Floats
from fanplan.layers.channels.published.genetic.problem import SubscriptionProblem


def measures(lo: Floats, hi: Floats) -> Floats:
    """The volume of each box: the product of its sides."""
    return np.prod(hi - lo, axis=1)


def volume(lo: Floats, hi: Floats) -> float:
    """The volume of the union of boxes, which may overlap."""
    return float(measures(*disjoint(lo, hi)).sum())


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
    return joined(made, lo.shape[1])


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
    return joined(made, lo.shape[1])


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


def joined(lists: list[tuple[Floats, Floats]], axes: int) -> tuple[Floats, Floats]:
    """Several lists of boxes as one."""
    none = np.empty((0, axes))
    low = np.concatenate([none, *(lo for lo, _ in lists)])
    return low, np.concatenate([none, *(hi for _, hi in lists)])


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
    return np.prod(np.maximum(high - low, 0.0), axis=1)
