"""The reverse framework: everything by unicast at first, then flows move to channels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs, Position
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import ChannelMap, map_pairs
from fanplan.layers.channels.published.params import HybridParams, ReverseParams
from fanplan.layers.channels.published.second_step.moving_pairs import (
    BY_UNICAST,
    COST,
    MULTICAST,
    UNICAST,
    user_items,
)
from fanplan.layers.channels.published.tock import tock

ANY = -1
ROUNDS = 20
"""How often ``stop`` is asked while all rows move."""


class Gathering(NamedTuple):
    """Channels that flows gather on; changed in place by ``gather_rows``.

    Memory: 4 bytes per row and channel, 1 per subscriber and channel.
    """

    received: float
    """w1"""
    sent: float
    """w2"""
    unicast: float
    """w3 (w1 + w2)"""
    indptr: Longs
    audience: Ints
    wants: Longs
    """Where the rows of each subscriber start, with the end appended."""
    wanted: Ints
    """The rows of each subscriber."""
    rate: Floats
    channel: Ints
    """Of each row, or ``BY_UNICAST``."""
    joined: np.ndarray
    """Channel × subscriber."""
    missing: Ints
    """Row × channel: how many of the row's audience are not members."""
    sizes: Longs
    loads: Floats
    only: Ints
    """The one channel that each row may go to, or ``ANY``."""
    best: Ints
    """The channel on which each row is cheapest, as far as is known."""
    change: Floats
    """What that move adds to the cost, or less than that; infinite once the row has moved."""
    totals: Floats
    """``COST`` of Eq. 1, messages sent by ``MULTICAST`` and by ``UNICAST``."""


def reverse(problem: InterestProblem, params: ReverseParams, seed: int, stop: Stop) -> ChannelMap:
    """Section 4: start from T = W and greedily move the flow that lowers the cost most.

    Ends when no move lowers the cost and the unicast share is within the limit, which holds even
    when ``stop`` asks to end before. A channel may stay empty. Time O(rows² + pairs · channels).
    """
    only = np.full(problem.size, ANY, dtype=np.int32)
    if params.towards == "tock":
        only = tock(problem, params, seed, stop).assigned.right
    state = all_unicast(problem, params, only)
    limit, moves = params.unicast_limit, problem.size // ROUNDS + 1
    while gather_rows(state, limit, moves) == moves:
        if stop(float(state.totals[COST])) and unicast_share(state) <= limit:
            break
    row = np.repeat(np.arange(problem.size), problem.audience_sizes)
    alone = state.channel[row] == BY_UNICAST
    moved = np.flatnonzero(state.channel != BY_UNICAST)
    return ChannelMap(
        params.channels,
        map_pairs(moved, state.channel[moved]),
        map_pairs(*np.nonzero(state.joined)),
        map_pairs(row[alone], problem.audience[alone]),
    )


def all_unicast(problem: InterestProblem, params: HybridParams, only: Ints) -> Gathering:
    """T = W and empty channels."""
    users, weights = user_items(problem), params.weights
    row = np.repeat(np.arange(problem.size, dtype=np.int32), problem.audience_sizes)
    sizes = problem.audience_sizes
    alone = weights.w2 + (weights.w1 - weights.unicast) * sizes
    sent = float(np.dot(problem.messages, sizes))
    return Gathering(
        received=weights.w1,
        sent=weights.w2,
        unicast=weights.unicast,
        indptr=problem.indptr,
        audience=problem.audience,
        wants=users.starts,
        wanted=row[users.pairs],
        rate=problem.messages,
        channel=np.full(problem.size, BY_UNICAST, dtype=np.int32),
        joined=np.zeros((params.channels, len(problem.subscribers)), dtype=np.bool_),
        missing=np.repeat(sizes.astype(np.int32)[:, None], params.channels, axis=1),
        sizes=np.zeros(params.channels, dtype=np.int64),
        loads=np.zeros(params.channels),
        only=only,
        best=np.maximum(only, 0),
        change=problem.messages * alone,
        totals=np.array([weights.unicast * sent, 0.0, sent]),
    )


@compiled
def gather_rows(state: Gathering, limit: float, moves: int) -> int:
    """Up to that many moves; the number made.

    The stored change of a row is never above the true one: it is renewed whenever a channel gets
    cheaper for the row, and confirmed before the row moves.
    """
    moved = 0
    while moved < moves:
        row = np.argmin(state.change)
        if state.change[row] == np.inf or (
            state.change[row] >= 0 and unicast_share(state) <= limit
        ):
            break
        if row_change(state, row, state.best[row]) > state.change[row]:
            find_best_channel(state, row)
        else:
            put_on_best(state, row)
            moved += 1
    return moved


@compiled
def unicast_share(state: Gathering) -> float:
    """The unicast share of the messages sent."""
    sent = state.totals[MULTICAST] + state.totals[UNICAST]
    return state.totals[UNICAST] / sent if state.totals[UNICAST] > 0 else 0.0


@compiled
def row_change(state: Gathering, row: Position, channel: int) -> float:
    """What moving a row from unicast to a channel adds to the cost (Eq. 1). O(1).

    Those of the audience that are not members yet must receive the whole channel.
    """
    size = state.indptr[row + 1] - state.indptr[row]
    missing = state.missing[row, channel]
    each = state.sent + state.received * (state.sizes[channel] + missing) - state.unicast * size
    result: float = state.rate[row] * each + state.received * state.loads[channel] * missing
    return result


@compiled
def may_go(state: Gathering, row: Position, channel: int) -> bool:
    return bool(state.only[row] == ANY or state.only[row] == channel)


@compiled
def find_best_channel(state: Gathering, row: Position) -> None:
    """Find the channel on which a row is cheapest; ties go to the first. O(channels)."""
    state.change[row] = np.inf
    for j in range(len(state.sizes)):
        change = row_change(state, row, j) if may_go(state, row, j) else np.inf
        if change < state.change[row]:
            state.best[row], state.change[row] = j, change


@compiled
def put_on_best(state: Gathering, row: Position) -> None:
    """Move a row to its best channel; its audience joins."""
    j, rate = state.best[row], state.rate[row]
    audience = state.audience[state.indptr[row] : state.indptr[row + 1]]
    state.totals[COST] += row_change(state, row, j)
    state.totals[MULTICAST] += rate
    state.totals[UNICAST] -= rate * len(audience)
    state.channel[row] = j
    state.change[row] = np.inf
    state.loads[j] += rate
    for h in audience:
        if not state.joined[j, h]:
            state.joined[j, h] = True
            state.sizes[j] += 1
            for other in state.wanted[state.wants[h] : state.wants[h + 1]]:
                state.missing[other, j] -= 1
    for other in range(len(state.channel)):
        if state.channel[other] == BY_UNICAST and may_go(state, other, j):
            change = row_change(state, other, j)
            if change < state.change[other]:
                state.best[other], state.change[other] = j, change
