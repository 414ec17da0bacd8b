"""The spectral bound: no plan with one channel per flow fits interest better than its rank allows.

Let a flow of λ messages have audience A with a subscribers, and write δ for w1 per unwanted and
cu − w1 per missing subscriber. On a channel with members U its excess over perfect multicast is
λ·δ(A, U) ≥ λ·β·|A △ U| with β = min(w1, cu − w1); by unicast it is λ((cu − w1)a − w2). With
s² = λ·min(β, ((cu − w1)a − w2)/a) both are at least s²·‖A − B‖² for B = U and B = 0. The rows B
of a plan with K channels have rank at most K, so the sum is at least that of the squares of all
but the K largest singular values of the matrix with rows s·A (Eckart and Young, 1936).
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
import scipy.sparse

from fanplan.core.arrays import Floats, Longs
from fanplan.core.prices import Weights
from fanplan.data.interest import InterestProblem

LARGEST = 2_000
"""Rows or columns of the matrix whose eigenvalues are computed: a second or two."""
ROUNDING = 1e-9
"""The bound is rounded down to this part of the squares: more than eigenvalues can be wrong."""


def mismatch(weights: Weights) -> float:
    """β: the least a channel's member too many or too few costs per message."""
    return min(weights.w1, weights.unicast - weights.w1)


def ideal_cost(problem: InterestProblem, weights: Weights) -> tuple[Floats, Floats]:
    """Per row, the least it can cost in any plan, and how much more unicast costs than that."""
    sizes = problem.audience_sizes.astype(np.float64)
    unicast = problem.messages * weights.unicast * sizes
    own = problem.messages * (weights.w2 + weights.w1 * sizes)
    return np.minimum(unicast, own), np.maximum(unicast - own, 0.0)


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
