"""The dual bound: what a plan must pay if no channel can be near many different audiences.

Notation as in the spectral bound. Let U be the members of a channel and r, among the rows on it,
the one with the least δ(A_r, U). Where the audiences of i and r differ, one of them differs from
U, so δ(A_i, U) + δ(A_r, U) ≥ β·H(i, r) with H the number of differences; hence, for every row i
on the channel, δ(A_i, U) ≥ β·H(i, r)/2. So with one channel per flow the excess is at least what
it costs to serve every row by one of K rows r at half their distance, or by unicast at its excess
u_i. Rows on different channels differ, so for any 0 ≤ v_i ≤ u_i that is at least

    Σ v_i − Σ over the K largest of S_r,   S_r = Σ_i max(0, v_i − λ_i·β·H(i, r)/2).

Any v gives a bound; a subgradient method looks for a good one.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.core.prices import Weights
from fanplan.data.interest import InterestProblem, per_class
from fanplan.layers.channels.bounds.bounds import Bound, lower_bound
from fanplan.layers.channels.bounds.spectral import (
    heaviest_rows,
    ideal_cost,
    mismatch,
    spectral_bound,
)

MOST_ROWS = 2_500
"""Rows that are compared pair by pair."""
STEPS = 100
"""Steps of the subgradient method: a second or two with the most rows."""
STRIDE = 0.3
"""First step, as a part of the value reached."""
PATIENCE = 6
"""Steps without a better value before the stride is halved."""
SAFETY = 1e-9
"""Relative: the bound is lowered by more than sums can be wrong."""

Distances = NDArray[np.int32]


def best_bounds(problem: InterestProblem, weights: Weights, channels: int) -> tuple[Bound, Bound]:
    """The highest cost that no plan is known to undercut, and that no plan with one channel per
    flow is.

    If a flow may go to several channels, only the bound by distinct audiences is proven. Limits
    only raise the cost of plans, so bounds hold with them too. Flows of a class have the same best
    channel, so what holds for classes holds for flows.
    """
    classes = per_class(problem)
    any_plan = Bound(lower_bound(classes, weights, channels), "distinct audiences")
    if channels == 0:
        return any_plan, any_plan
    spectral = Bound(spectral_bound(classes, weights, channels), "spectral")
    dual = Bound(dual_bound(classes, weights, channels), "dual")
    return any_plan, max(any_plan, spectral, dual)


def dual_bound(problem: InterestProblem, weights: Weights, channels: int) -> float:
    """A cost that no plan with one channel per flow and at most that many channels undercuts.

    Any weights. Only the heaviest rows are compared; the others count as if served ideally.
    """
    ideal, excess = ideal_cost(problem, weights)
    base = float(np.cumsum(ideal)[-1])
    rows = heaviest_rows(excess, MOST_ROWS)
    if mismatch(weights) <= 0 or len(rows) == 0:
        return base
    half = problem.messages[rows] * mismatch(weights) / 2
    distances = pairwise_distances(problem.indptr, problem.audience, rows, len(problem.subscribers))
    return base + (1 - SAFETY) * ascend(distances, half, excess[rows], channels)


@compiled(parallel=True)
def pairwise_distances(indptr: Longs, audience: Ints, rows: Longs, users: int) -> Distances:
    """In how many subscribers the audiences of two rows differ."""
    distances = np.empty((len(rows), len(rows)), dtype=np.int32)
    for i in numba.prange(len(rows)):
        wanted = np.zeros(users, dtype=np.uint8)
        mine = audience[indptr[rows[i]] : indptr[rows[i] + 1]]
        for user in mine:
            wanted[user] = 1
        for j in range(len(rows)):
            other = audience[indptr[rows[j]] : indptr[rows[j] + 1]]
            common = 0
            for user in other:
                common += wanted[user]
            distances[i, j] = len(mine) + len(other) - 2 * common
    return distances


def ascend(distances: Distances, half: Floats, most: Floats, channels: int) -> float:
    """The largest value met on a subgradient walk over 0 ≤ v ≤ most (Held et al., 1974).

    It starts where every row pays for its nearest neighbour, so that S_r is v_r alone.
    """
    best_v = v = np.minimum(most, half * nearest(distances))
    best, scale, idle = 0.0, STRIDE, 0
    for _ in range(STEPS):
        shares = row_shares(distances, half, v)
        top = np.argsort(-shares, kind="stable")[:channels]
        value = float(np.cumsum(v)[-1] - np.cumsum(shares[top])[-1])
        idle = 0 if value > best else idle + 1
        if value > best:
            best, best_v = value, v
        elif idle % PATIENCE == 0:
            scale, v = scale / 2, best_v
        slope = 1.0 - slopes(distances, half, v, top)
        slope[((v <= 0) & (slope < 0)) | ((v >= most) & (slope > 0))] = 0.0
        length = float(np.cumsum(slope * slope * half)[-1])
        if length == 0.0:
            break
        step = scale * max(best, 0.05 * float(np.cumsum(most)[-1])) / length
        v = np.clip(v + step * slope * half, 0.0, most)
    return best


@compiled
def nearest(distances: Distances) -> Distances:
    """The distance of each row to the nearest other one; far if there is none."""
    result = np.full(len(distances), np.iinfo(np.int32).max, dtype=np.int32)
    for i in range(len(distances)):
        for j in range(len(distances)):
            if i != j:
                result[i] = min(result[i], distances[i, j])
    return result


@compiled(parallel=True)
def row_shares(distances: Distances, half: Floats, v: Floats) -> Floats:
    """S_r for every row r; each sum in the order of the rows."""
    shares = np.empty(len(v))
    for r in numba.prange(len(v)):
        total = 0.0
        for i in range(len(v)):
            total += max(0.0, v[i] - distances[r, i] * half[i])
        shares[r] = total
    return shares


@compiled
def slopes(distances: Distances, half: Floats, v: Floats, top: Longs) -> Floats:
    """In how many of the largest S_r a row's share grows with its v."""
    counts = np.zeros(len(v))
    for r in top:
        for i in range(len(v)):
            counts[i] += v[i] > distances[r, i] * half[i]
    return counts
