"""Excess over the unicast share, from one walk of a second step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Floats
from fanplan.core.stop import never
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import perfect
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.published.params import HybridParams
from fanplan.layers.channels.published.second_step.moves import greedy_path, order_path
from fanplan.layers.channels.published.second_step.moving_pairs import COST, UNICAST, served_by_map
from fanplan.layers.channels.published.second_step.two_step import GREEDY, ORDERS


class Curve(NamedTuple):
    """Both in percent; the share ascends."""

    share: Floats
    excess: Floats


def second_step_curve(
    problem: InterestProblem, map: ChannelMap, name: str, params: HybridParams
) -> Curve:
    """Bickson et al. 2010, section 4.2: the totals after every move, as share and excess.

    An order goes on until everything is sent by unicast; a greedy step ends at its best unless
    ``forced``.
    """
    state = served_by_map(problem, map, params.weights)
    before = state.totals.copy()
    if name in GREEDY:
        parts = list(greedy_path(state, GREEDY[name](problem), params, never))
        path = np.concatenate([before[None], *parts])
    else:
        items, ranking = ORDERS[name]
        movable = items(problem)
        path = np.concatenate([before[None], order_path(state, movable, ranking(movable), 1.0)])
    wanted = np.dot(problem.messages, problem.audience_sizes)
    share = 100 * path[:, UNICAST] / wanted
    return Curve(share, 100 * (path[:, COST] / perfect(problem, params.weights) - 1))


def at(curve: Curve, share: float) -> float:
    """The excess at a share; beyond its end a curve keeps its last value."""
    return float(np.interp(share, curve.share, curve.excess))


def cheapest(curve: Curve, share: float) -> float:
    """The least excess with at most that share."""
    return float(curve.excess[curve.share <= share].min())
