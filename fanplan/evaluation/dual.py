"""The dual bound: what a plan must pay if no channel can be near many different audiences.

Notation as in the spectral bound. Let U be a channel's members and r, among all rows, the one with
the least δ(A_r, U). Where the audiences of i and r differ, one of them differs from U, so
δ(A_i, U) + δ(A_r, U) ≥ β·H(i, r) with H the number of differences; hence δ(A_i, U) ≥ β·H(i, r)/2.
So the members may be replaced by rows: a row costs at least half of its distance to one of K rows.

One channel per flow: let r be the nearest among the channel's own rows; the rows r of different
channels then differ, and for any 0 ≤ v_i ≤ u_i (u_i the excess of unicast) the excess is at least

    Σ v_i − Σ over the K largest of S_r,   S_r = Σ_i max(0, v_i − λ_i·β·H(i, r)/2).

Several channels per flow: on channels J a flow saves against unicast at most Σ_J g_i(U)⁺, where
g_i(U) = ideal gain − δ(A_i, U), and at most its ideal gain u_i / λ_i. For any 0 ≤ v_i ≤ u_i its
excess is thus at least v_i − Σ_J min(v_i, λ_i·g_i(U)⁺), and, as channels may share their r, the
excess is at least

    Σ v_i − K · max_r S_r,   S_r = Σ_i min(v_i, max(0, u_i − λ_i·β·H(i, r)/2)).

Any v gives a bound; a subgradient method looks for a good one.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from fanplan.evaluation.bounds import BOUND_NAME, lower_bound
from fanplan.evaluation.spectral import heaviest_rows, ideal_cost, mismatch, spectral_bound
from fanplan.evaluation.weights import Weights
from fanplan.kernels import compiled
from fanplan.problem.interest import Floats, InterestProblem, Ints, Longs

MOST_ROWS = 2_500
"""Rows that are compared pair by pair."""
STEPS = 120
"""Steps of the subgradient method: a second or two with the most rows."""
SAFETY = 1e-9
"""Relative: the bound is lowered by more than sums can be wrong."""

Distances = NDArray[np.int32]


def best_bound(
    problem: InterestProblem, weights: Weights, channels: int, multiple: bool
) -> tuple[float, str]:
    """The highest cost that no plan is known to undercut, and its name.

    ``multiple`` says whether a flow may go to several channels. Limits only raise the cost of
    plans, so the bound holds with them too.
    """
    bounds = [
        (lower_bound(problem, weights, channels), BOUND_NAME),
        (dual_bound(problem, weights, channels, multiple), "dual"),
    ]
    if not multiple:
        bounds.append((spectral_bound(problem, weights, channels), "spectral"))
    return max(bounds)


def dual_bound(
    problem: InterestProblem, weights: Weights, channels: int, multiple: bool
) -> float:
    """A cost that no plan with at most that many channels undercuts, for any weights.

    Only the heaviest rows are compared; the others count as if they were served ideally.
    """
    ideal, excess = ideal_cost(problem, weights)
    base = float(ideal.sum())
    rows = heaviest_rows(excess, MOST_ROWS)
    if mismatch(weights) <= 0 or len(rows) == 0:
        return base
    half = problem.messages[rows] * mismatch(weights) / 2
    distances = pairwise_distances(problem.indptr, problem.audience, rows, len(problem.subscribers))
    return base + (1 - SAFETY) * ascend(distances, half, excess[rows], channels, multiple)


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


def ascend(
    distances: Distances, half: Floats, most: Floats, channels: int, multiple: bool
) -> float:
    """The largest value met on a subgradient walk over 0 ≤ v ≤ most (Held et al., 1974)."""
    v, best, best_v, scale, idle = most / 2, 0.0, most / 2, 1.0, 0
    count = min(channels, len(most))
    for _ in range(STEPS):
        shares = row_shares(distances, half, most, v, multiple)
        top = np.argsort(-shares, kind="stable")[:count]
        taken = channels * shares.max() if multiple else shares[top].sum()
        value = float(v.sum() - taken)
        idle = 0 if value > best else idle + 1
        if value > best:
            best, best_v = value, v
        elif idle % 8 == 0:
            scale, v = scale / 2, best_v
            continue
        slope = 1.0 - slopes(distances, half, most, v, top, multiple) * (channels / count)
        length = float(np.dot(slope * most, slope * most))
        if length == 0.0:
            break
        step = scale * max(0.1 * best, 0.05 * float(most.sum())) / length
        v = np.clip(v + step * slope * most * most, 0.0, most)
    return best


@compiled(parallel=True)
def row_shares(
    distances: Distances, half: Floats, most: Floats, v: Floats, multiple: bool
) -> Floats:
    """S_r for every row r; each sum in the order of the rows."""
    shares = np.empty(len(v))
    for r in numba.prange(len(v)):
        total = 0.0
        for i in range(len(v)):
            total += share(distances[r, i] * half[i], most[i], v[i], multiple)
        shares[r] = total
    return shares


@compiled
def share(distance: float, most: float, v: float, multiple: bool) -> float:
    """What one row adds to S_r."""
    return min(v, max(0.0, most - distance)) if multiple else max(0.0, v - distance)


@compiled
def slopes(
    distances: Distances, half: Floats, most: Floats, v: Floats, top: Longs, multiple: bool
) -> Floats:
    """In how many of the largest S_r a row's share would grow with its v."""
    counts = np.zeros(len(v))
    for r in top:
        for i in range(len(v)):
            distance = distances[r, i] * half[i]
            counts[i] += most[i] - distance >= v[i] if multiple else v[i] > distance
    return counts
