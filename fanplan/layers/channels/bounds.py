"""Costs that no plan can undercut: by distinct audiences, spectral and dual.

The last two are for plans with one channel per flow. Let a flow of λ messages have audience A with
a subscribers, and write δ for w1 per unwanted and cu − w1 per missing subscriber. On a channel with
members U its excess over perfect multicast is λ·δ(A, U) ≥ λ·β·|A △ U| with β = min(w1, cu − w1); by
unicast it is u = λ((cu − w1)a − w2).

Spectral: with s² = min(λβ, u/a) both are at least s²·‖A − B‖² for B = U and B = 0. The rows B of a
plan with K channels have rank at most K, so the sum is at least that of the squares of all but the
K largest singular values of the matrix with rows s·A (Eckart and Young, 1936).

Dual: no channel can be near many different audiences. Of the rows on a channel let r be the one
with the least δ(A_r, U). Where the audiences of i and r differ, one of them differs from U, so
δ(A_i, U) + δ(A_r, U) ≥ β·H(i, r) with H the number of differences; hence, for every row i on the
channel, δ(A_i, U) ≥ β·H(i, r)/2. So the excess is at least what it costs to serve every row by one
of K rows r at half their distance, or by unicast at its excess u_i. Rows on different channels
differ, so for any 0 ≤ v_i ≤ u_i that is at least

    Σ v_i − Σ over the K largest of S_r,   S_r = Σ_i max(0, v_i − λ_i·β·H(i, r)/2).

Any v gives a bound; a subgradient method looks for a good one.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.core.prices import Weights
from fanplan.data.interest import InterestProblem, per_class
from fanplan.layers.channels.map import Bound

LARGEST = 2_000
"""Rows or columns of the matrix whose eigenvalues are computed: a second or two."""
ROUNDING = 1e-9
"""The bound is rounded down to this part of the squares: more than eigenvalues can be wrong."""
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
    any_plan = any_bound(problem, weights, channels)
    if channels == 0:
        return any_plan, any_plan
    classes, at = per_class(problem), at_cells(problem)
    spectral = Bound(spectral_bound(classes, weights, channels), f"spectral{at}")
    dual = dual_bound(classes, weights, channels, f"dual{at}")
    return any_plan, max(any_plan, spectral, dual)


def any_bound(problem: InterestProblem, weights: Weights, channels: int) -> Bound:
    """What no plan undercuts, also one with several channels per flow."""
    cost = lower_bound(per_class(problem), weights, channels)
    return Bound(cost, f"distinct audiences{at_cells(problem)}")


def at_cells(problem: InterestProblem) -> str:
    """What a bound is told to hold for, where cells are coarser than selectors."""
    return "" if problem.wanted is None else ", at these cells"


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


def ideal_cost(problem: InterestProblem, weights: Weights) -> tuple[Floats, Floats]:
    """Per row, the least it can cost in any plan, and how much more unicast costs than that."""
    sizes = problem.audience_sizes.astype(np.float64)
    unicast = problem.messages * weights.unicast * sizes
    own = problem.messages * (weights.w2 + weights.w1 * sizes)
    return np.minimum(unicast, own), np.maximum(unicast - own, 0.0)


def mismatch(weights: Weights) -> float:
    """β: the least a channel's member too many or too few costs per message."""
    return min(weights.w1, weights.unicast - weights.w1)


def heaviest_rows(excess: Floats, most: int) -> Longs:
    """The rows that unicast hurts most, ascending: leaving the others out only lowers a bound."""
    order = np.argsort(-excess, kind="stable")[:most]
    return np.sort(order[excess[order] > 0])


def spectral_bound(problem: InterestProblem, weights: Weights, channels: int) -> float:
    """A cost that no plan with one channel per flow and at most that many channels undercuts.

    Any weights. If both rows and subscribers are many, only the heaviest rows count.
    """
    ideal, excess = ideal_cost(problem, weights)
    base = float(np.cumsum(ideal)[-1]) if len(ideal) else 0.0
    beta = mismatch(weights)
    users = len(problem.subscribers)
    rows = heaviest_rows(excess, problem.size if users <= LARGEST else LARGEST)
    if beta <= 0 or len(rows) == 0:
        return base
    sizes = problem.audience_sizes[rows]
    scale = np.minimum(problem.messages[rows] * beta, excess[rows] / sizes)
    return base + tail(scaled_interest(problem, rows, np.sqrt(scale)), channels)


def scaled_interest(problem: InterestProblem, rows: Longs, scale: Floats) -> scipy.sparse.csr_array:
    """The interest matrix of some rows, each times its scale."""
    shape = (problem.size, len(problem.subscribers))
    ones = np.ones(problem.nnz)
    matrix = scipy.sparse.csr_array((ones, problem.audience, problem.indptr), shape=shape)[rows]
    return scipy.sparse.diags_array(scale) @ matrix


def tail(matrix: scipy.sparse.csr_array, rank: int) -> float:
    """The sum of the squares of all but the ``rank`` largest singular values, rounded down."""
    wide = matrix.shape[0] <= matrix.shape[1]
    gram = (matrix @ matrix.T if wide else matrix.T @ matrix).toarray()
    squares = np.sort(scipy.linalg.eigvalsh(gram))
    unit = ROUNDING * float(np.trace(gram))
    value = float(squares[: max(len(squares) - rank, 0)].sum())
    return max(0.0, unit * (math.floor(value / unit) - 1))


def dual_bound(
    problem: InterestProblem, weights: Weights, channels: int, name: str = "dual"
) -> Bound:
    """A cost that no plan with one channel per flow and at most that many channels undercuts.

    Any weights. Only the heaviest rows are compared; the others count as if served ideally.
    """
    ideal, excess = ideal_cost(problem, weights)
    base = float(np.cumsum(ideal)[-1])
    rows = heaviest_rows(excess, MOST_ROWS)
    if mismatch(weights) <= 0 or len(rows) == 0:
        return Bound(base, name, problem.classes[:0], ideal[:0])
    half = problem.messages[rows] * mismatch(weights) / 2
    distances = pairwise_distances(problem.indptr, problem.audience, rows, len(problem.subscribers))
    value, values = ascend(distances, half, excess[rows], channels)
    return Bound(base + (1 - SAFETY) * value, name, problem.classes[rows], values)


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


def ascend(distances: Distances, half: Floats, most: Floats, channels: int) -> tuple[float, Floats]:
    """The largest value, and its v, on a subgradient walk over 0 ≤ v ≤ most (Held et al., 1974).

    It starts where every row pays for its nearest neighbour, so that S_r is v_r alone.
    """
    others = distances.copy()
    np.fill_diagonal(others, np.iinfo(np.int32).max)
    best_v = v = np.minimum(most, half * others.min(axis=1))
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
        # In how many of the largest S_r a row's share grows with its v.
        slope = 1.0 - (v > distances[top] * half).sum(axis=0)
        slope[((v <= 0) & (slope < 0)) | ((v >= most) & (slope > 0))] = 0.0
        length = float(np.cumsum(slope * slope * half)[-1])
        if length == 0.0:
            break
        step = scale * max(best, 0.05 * float(np.cumsum(most)[-1])) / length
        v = np.clip(v + step * slope * half, 0.0, most)
    return best, best_v if best > 0 else np.zeros_like(best_v)


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
