"""Interior point: X and Y relaxed to fractions, a log-barrier, Newton steps, then rounding."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import map_cost, perfect
from fanplan.layers.channels.map import NO_PAIRS, ChannelMap, map_pairs
from fanplan.layers.channels.method_params import require_enough_flows
from fanplan.layers.channels.published.params import FirstStepParams
from fanplan.layers.channels.published.plain import broadcast
from fanplan.layers.channels.published.second_step.moving_pairs import (
    served_by_map,
    served_map,
    user_items,
)

LARGEST = 20_000
"""Most variables: (rows + subscribers) · channels. The paper's small system has 3,000."""
SWEEPS = 6
"""Newton steps for X and for Y with each barrier."""
SHARPER = 10.0
"""How much more the cost weighs with each new barrier."""


def interior_point(
    problem: InterestProblem, params: FirstStepParams, seed: int, stop: Stop
) -> ChannelMap:
    """Bickson et al. (2010), section 4.1: least C with 0 < X, Y < 1 and XY > 1 where W is 1.

    ``iterations`` barriers, each sharper than the one before. With Y fixed, the barrier problem is
    convex in X and falls apart into a small one per row, and so for Y per subscriber; so Newton
    steps are taken for X and Y in turn, each in O((rows + subscribers) · K³ + pairs · K²).
    """
    require_enough_flows(problem, params.channels)
    require_small(problem, params.channels)
    best = broadcast(problem, params, seed, stop)
    if params.channels == 1:
        return best
    x, y = interior_start(problem, params.channels, seed)
    least = np.inf
    for sharpness in SHARPER ** np.arange(params.iterations):
        centre(problem, params, x, y, float(sharpness))
        map = rounded(problem, params, x, y)
        if map_cost(problem, map, params.weights) < least:
            best, least = map, map_cost(problem, map, params.weights)
        if stop(least):
            break
    return best


def require_small(problem: InterestProblem, channels: int) -> None:
    """Newton steps grow with the cube of the channels: large problems would never end."""
    variables = (problem.size + len(problem.subscribers)) * channels
    if variables > LARGEST:
        what = f"{variables} variables are more than the {LARGEST} it can solve in useful time"
        remedy = "Use the method tock, or fewer rows or channels"
        raise InputError(Problem("interior-point", what, remedy))


def interior_start(problem: InterestProblem, channels: int, seed: int) -> tuple[Floats, Floats]:
    """Random fractions with XY > 1 everywhere; equal ones would leave all channels alike."""
    low = np.sqrt(1.2 / channels)
    draw = np.random.default_rng(seed).uniform
    rows, users = problem.size, len(problem.subscribers)
    high = (1 + low) / 2
    return draw(low, high, (rows, channels)), draw(low, high, (users, channels))


def centre(
    problem: InterestProblem, params: FirstStepParams, x: Floats, y: Floats, sharpness: float
) -> None:
    """Move X and Y (here subscriber × channel) towards the least of cost and barrier, in place.

    The cost is scaled so that perfect multicast weighs as much as there are barrier terms.
    """
    terms = 2 * (x.size + y.size) + problem.nnz
    scale = sharpness * terms / max(perfect(problem, params.weights), np.finfo(float).tiny)
    users = user_items(problem)
    row = np.repeat(np.arange(problem.size, dtype=np.int32), problem.audience_sizes)
    every = np.ones(len(y))
    for _ in range(SWEEPS):
        price = scale * (params.weights.w2 + params.weights.w1 * y.sum(axis=0))
        newton(x, y, problem.indptr, problem.audience, problem.messages, price)
        price = scale * params.weights.w1 * (problem.messages[:, None] * x).sum(axis=0)
        newton(y, x, users.starts, row[users.pairs], every, price)


def rounded(problem: InterestProblem, params: FirstStepParams, x: Floats, y: Floats) -> ChannelMap:
    """The closest binary X and Y, repaired: each row has a channel, everyone gets what they want.

    Whoever is left out joins the row's channel with the largest fraction; who then needs nothing
    on a channel leaves it.
    """
    nearest_x, nearest_y = x >= 0.5, y >= 0.5
    nearest_x[np.arange(len(x)), x.argmax(axis=1)] = True
    row = np.repeat(np.arange(problem.size), problem.audience_sizes)
    served = (nearest_x[row] & nearest_y[problem.audience]).any(axis=1)
    allowed = np.where(nearest_x[row[~served]], y[problem.audience[~served]], -1.0)
    nearest_y[problem.audience[~served], allowed.argmax(axis=1)] = True
    channel, user = np.nonzero(nearest_y.T)
    map = ChannelMap(
        params.channels, map_pairs(*np.nonzero(nearest_x)), map_pairs(channel, user), NO_PAIRS
    )
    return served_map(problem, served_by_map(problem, map, params.weights))


@compiled
def newton(
    own: Floats, other: Floats, starts: Longs, partners: Ints, amount: Floats, price: Floats
) -> None:
    """One damped Newton step for each row of ``own``, which must meet its partners in ``other``."""
    for i in range(len(own)):
        needed = other[partners[starts[i] : starts[i + 1]]]
        linear = amount[i] * price
        step = newton_direction(own[i], linear, needed)
        before, length = barrier(own[i], linear, needed), 1.0
        while length > 1e-10:
            after = own[i] + length * step
            if barrier(after, linear, needed) < before:
                own[i] = after
                break
            length *= 0.5


@compiled
def barrier(point: Floats, linear: Floats, needed: Floats) -> float:
    """The cost with its log-barriers; infinite outside (Boyd and Vandenberghe 2004, chapter 11)."""
    value = 0.0
    for j in range(len(point)):
        if point[j] <= 0 or point[j] >= 1:
            return np.inf
        value += linear[j] * point[j] - np.log(point[j]) - np.log(1 - point[j])
    for a in range(len(needed)):
        slack = -1.0
        for j in range(len(point)):
            slack += needed[a, j] * point[j]
        if slack <= 0:
            return np.inf
        value -= np.log(slack)
    return value


@compiled
def newton_direction(point: Floats, linear: Floats, needed: Floats) -> Floats:
    """Minus the inverse Hessian times the gradient of ``barrier``."""
    k = len(point)
    gradient = linear - 1 / point + 1 / (1 - point)
    hessian = np.zeros((k, k))
    for j in range(k):
        hessian[j, j] = 1 / point[j] ** 2 + 1 / (1 - point[j]) ** 2
    for a in range(len(needed)):
        slack = -1.0
        for j in range(k):
            slack += needed[a, j] * point[j]
        for j in range(k):
            gradient[j] -= needed[a, j] / slack
            for i in range(j + 1):
                hessian[j, i] += needed[a, j] * needed[a, i] / slack**2
    return solve_positive(hessian, -gradient)


@compiled
def solve_positive(matrix: Floats, right: Floats) -> Floats:
    """Solve for a positive definite matrix, of which the lower half is given, by Cholesky.

    Written out because a library may add in another order on another number of threads.
    """
    k = len(right)
    for j in range(k):
        for i in range(j, k):
            for h in range(j):
                matrix[i, j] -= matrix[i, h] * matrix[j, h]
        matrix[j, j] = np.sqrt(matrix[j, j])
        matrix[j + 1 :, j] /= matrix[j, j]
        right[j] /= matrix[j, j]
        right[j + 1 :] -= matrix[j + 1 :, j] * right[j]
    for j in range(k - 1, -1, -1):
        right[j] /= matrix[j, j]
        right[:j] -= matrix[j, :j] * right[j]
    return right
