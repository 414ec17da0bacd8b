"""Other channels under the rules: exchanged, or reopened where nobody may be left to unicast.

Exchange is a swap that sees several channels per row; every trial looks at all rows, so it is for
what swaps cannot see.

Without unicast, a closed channel costs what its rows need instead of it: other channels, not
unicast to everyone it alone has served. So to reopen, a further channel is opened for the audience
of one row, every row takes it that is cheaper with it, and then the channel is closed whose rows
find the cheapest others. It may be any channel, also one that many users have only one row through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bytes, Floats, Ints
from fanplan.core.kernels import compiled
from fanplan.layers.channels.map import count_overlaps
from fanplan.layers.channels.search.effort import CANDIDATES, NOISE, Effort
from fanplan.layers.channels.search.free.seed import best_column, make_scratch
from fanplan.layers.channels.search.model.assign import Offer, channel_costs, offered
from fanplan.layers.channels.search.model.cover import (
    Cover,
    channel_losses,
    close_channels,
    cover_gains,
    cover_of_table,
    drop_useless,
    greedy_cover,
    served_by,
    table_of_cover,
    unserved_demand,
)
from fanplan.layers.channels.search.model.demand import Demand, row_audience
from fanplan.layers.channels.search.model.rules import CoverRules, bounded, improve_cover, objective
from fanplan.layers.channels.search.ruled.obey import is_served

WORK = 3e7
"""Audiences × channels × trials that may be spent under rules: a few seconds."""
FREE_WORK = 3e5
"""The same without any, where swaps have done most of what can be done."""
PASSES = 2
"""Passes of both steps after each exchange."""
CHEAPEST = 3
"""The channel to close is drawn from this many that would be missed least."""
MOST_FLIPS = 4
"""Most users that join or leave a channel in a random exchange."""
REOPEN_WORK = 4e8
"""Audiences × channels × trials that may be spent: a few seconds."""
SLACK = 1e-3
"""A trial that costs up to this part of perfect multicast more is still improved, then compared."""


def always(_cover: Cover) -> bool:
    return True


def exchange(
    demand: Demand,
    cover: Cover,
    rules: CoverRules,
    trials: int,
    effort: Effort,
    allowed: Callable[[Cover], bool] = always,
) -> Cover:
    """Close a channel, open another, improve; keep what raises the objective and is allowed."""
    work = WORK if has_limits(rules, cover) else FREE_WORK
    trials = min(trials, int(work / (len(demand.audience) * cover.members.shape[1] + 1)))
    others = (partial(neighbour, demand, rules, trial, effort.random) for trial in range(trials))
    return best_met(demand, cover, rules, others, effort, allowed)


def best_met(
    demand: Demand,
    cover: Cover,
    rules: CoverRules,
    others: Iterable[Callable[[Cover], Cover | None]],
    effort: Effort,
    allowed: Callable[[Cover], bool] = always,
) -> Cover:
    """Let each of ``others`` change the best cover so far; what raises the objective is kept."""
    value = objective(demand, cover, rules)
    for change in others:
        if effort.enough(value):
            break
        other = change(cover)
        if other is None:
            continue
        other = improve_cover(demand, other, rules, PASSES)
        after = objective(demand, other, rules)
        better = after > value + NOISE * abs(value)
        if better and is_served(demand, other, rules.hard) and allowed(other):
            cover, value = other, after
    return cover


def has_limits(rules: CoverRules, cover: Cover) -> bool:
    """Whether any rule can keep swaps from being followed."""
    limited = bounded(rules, cover.members.shape[1])
    return limited or rules.change > 0 or bool(rules.hard.any())


def neighbour(
    demand: Demand, rules: CoverRules, trial: int, random: np.random.Generator, cover: Cover
) -> Cover:
    """A cover with other members, in turn: for whole audiences, for the rest, or at random."""
    if trial % 3 == 2:
        return perturbed(cover, rules, random)
    whole = trial % 3 == 0
    column = (audience_column if whole else residual_column)(demand, cover, random)
    losses = channel_losses(demand, cover, channel_costs(demand, cover.members))
    cheapest = np.argsort(losses, kind="stable")[:CHEAPEST]
    return with_other_column(cover, rules, int(cheapest[random.integers(len(cheapest))]), column)


def audience_column(demand: Demand, cover: Cover, random: np.random.Generator) -> Ints:
    """Members that add most for rows as a whole."""
    gains = cover_gains(demand, cover, channel_costs(demand, cover.members))
    draws = random.random(CANDIDATES)
    return best_column(demand, gains, demand.ideal_gain, draws, make_scratch(demand))


def residual_column(demand: Demand, cover: Cover, random: np.random.Generator) -> Ints:
    """Members that add most for what the cover leaves to unicast."""
    rest = unserved_demand(demand, cover, np.ones(demand.size, dtype=np.uint8))
    draws = random.random(CANDIDATES)
    return best_column(rest, np.zeros(rest.size), rest.ideal_gain, draws, make_scratch(rest))


def perturbed(cover: Cover, rules: CoverRules, random: np.random.Generator) -> Cover:
    """A few users join or leave a channel; rows stay where they are. Who is full stays out."""
    users, channels = cover.members.shape
    count = int(random.integers(1, MOST_FLIPS + 1))
    who, where = random.integers(users, size=count), random.integers(channels, size=count)
    members = cover.members.copy()
    members[who, where] ^= 1
    full = members[who].sum(axis=1, dtype=np.int64) > rules.limit[who]
    members[who[full], where[full]] = 0
    return cover._replace(members=members)


def with_other_column(cover: Cover, rules: CoverRules, channel: int, column: Ints) -> Cover:
    """The cover with a channel closed and one with other members in its place."""
    after = close_channels(cover, np.array([channel]))
    room = after.members[column].sum(axis=1, dtype=np.int64) < rules.limit[column]
    after.members[column[room], channel] = 1
    return after


class Tables(NamedTuple):
    """A cover with room for one channel more, the last one; changed in place."""

    offer: Offer
    on: Bytes
    """Rows × channels: whether the row goes there."""
    found: Ints
    """Room for the channels of a row."""


def reopen(demand: Demand, cover: Cover, rules: CoverRules, trials: int, effort: Effort) -> Cover:
    """Open and close channels of a cover that serves everybody; the objective never falls."""
    work = len(demand.audience) * cover.members.shape[1] + 1
    trials = min(trials, demand.size, int(REOPEN_WORK / work))
    draws = effort.random.random(trials)
    return best_met(
        demand, cover, rules, (partial(reopened, demand, rules, draw) for draw in draws), effort
    )


def reopened(demand: Demand, rules: CoverRules, draw: float, cover: Cover) -> Cover | None:
    """The cover with a channel for the audience drawn, or None if that is not worth a look."""
    members = np.hstack((cover.members, np.zeros((demand.users, 1), dtype=np.uint8)))
    costs, on = channel_costs(demand, members), table_of_cover(cover, spare=1)
    excess = demand.rate * (on @ costs - demand.w2 - demand.w1 * demand.audience_sizes)
    total = np.cumsum(np.maximum(excess, 0.0))
    row = int(np.searchsorted(total, draw * total[-1], side="right"))
    if row == demand.size:
        return None
    column = row_audience(demand, row)
    column = column[cover.members[column].sum(axis=1, dtype=np.int64) < rules.limit[column]]
    members[column, -1] = 1
    costs[-1] += demand.w1 * len(column)
    state = Tables(offered(demand, members, costs), on, np.empty(len(costs), dtype=np.int32))
    saved = open_last(demand, state, rules.width)
    losses = closing_losses(demand, state, rules.width)
    closed = int(np.argmin(losses))
    if losses[closed] > saved + SLACK * demand.perfect or closed == len(losses) - 1:
        return None
    close_for_all(demand, state, rules.width, closed)
    # The new channel, the last one, takes the number of the closed one.
    members[:, closed], on[:, closed] = members[:, -1], on[:, -1]
    return cover_of_table(np.ascontiguousarray(members[:, :-1]), on[:, :-1])


@compiled
def open_last(demand: Demand, state: Tables, width: int) -> float:
    """Let every row take the last channel that is cheaper with it; what that saves."""
    offer, found = state.offer, state.found
    last = len(offer.costs) - 1
    saved = 0.0
    for row in range(len(state.on)):
        audience = row_audience(demand, row)
        if has_any_member(offer.members, last, audience):
            found[0] = last
            size = complete(offer, audience, 1, width, found)
            less = cost_on(state, row) - cost_of(offer.costs, found[: max(size, 0)])
            if size > 0 and less > 0.0:
                put_on(state, row, found[:size])
                saved += demand.rate[row] * less
    return saved


@compiled
def has_any_member(members: Bytes, channel: int, audience: Ints) -> bool:
    met = 0
    for user in audience:
        met |= members[user, channel]
    return met > 0


@compiled
def cost_on(state: Tables, row: int) -> float:
    """What a message of a row costs."""
    total = 0.0
    for channel in range(state.on.shape[1]):
        if state.on[row, channel]:
            total += state.offer.costs[channel]
    return total


@compiled
def cost_of(costs: Floats, channels: Ints) -> float:
    total = 0.0
    for channel in channels:
        total += costs[channel]
    return total


@compiled
def put_on(state: Tables, row: int, channels: Ints) -> None:
    state.on[row] = 0
    for channel in channels:
        state.on[row, channel] = 1


@compiled
def complete(offer: Offer, audience: Ints, size: int, width: int, found: Ints) -> int:
    """Add channels to the first few of ``found`` until all are served; how many, −1: in vain."""
    members, left = offer.members, offer.left
    count = 0
    for user in audience:
        left[count] = user
        count += served_by(members, user, found[:size]) == 0
    count_overlaps(left[:count], members, offer.partial, offer.overlap)
    size += greedy_cover(offer, left[:count], 0.0, 1, found[size:width])
    for user in audience:
        if served_by(members, user, found[:size]) == 0:
            return -1
    return drop_useless(offer, audience, 0.0, 1, found, size)


@compiled
def closing_losses(demand: Demand, state: Tables, width: int) -> Floats:
    """What closing each channel costs if its rows take others; infinite if they cannot."""
    costs = state.offer.costs
    losses = np.zeros(len(costs))
    for row in range(len(state.on)):
        now = cost_on(state, row)
        for channel in range(len(costs)):
            if state.on[row, channel]:
                size = cover_without(demand, state, row, channel, width)
                if size < 0:
                    losses[channel] = np.inf
                else:
                    losses[channel] += demand.rate[row] * (cost_of(costs, state.found[:size]) - now)
    return losses


@compiled
def cover_without(demand: Demand, state: Tables, row: int, channel: int, width: int) -> int:
    """A row's channels with others instead of one, into ``found``; how many, −1: none would do."""
    costs, found = state.offer.costs, state.found
    size = 0
    for other in range(len(costs)):
        if state.on[row, other] and other != channel:
            found[size] = other
            size += 1
    cost = costs[channel]
    # At an infinite price no greedy cover takes it.
    costs[channel] = np.inf
    size = complete(state.offer, row_audience(demand, row), size, width, found)
    costs[channel] = cost
    return -1 if channel in found[: max(size, 0)] else size


@compiled
def close_for_all(demand: Demand, state: Tables, width: int, channel: int) -> None:
    """Take all rows off a channel that nobody needs."""
    for row in range(len(state.on)):
        if state.on[row, channel]:
            size = cover_without(demand, state, row, channel, width)
            put_on(state, row, state.found[:size])
