"""Swaps: close one channel, open another where rows lack most, settle the neighbourhood.

Split and merge in one step; this is what leaves the local optimum that Lloyd ends in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bytes, Floats, Ints, Longs, Position
from fanplan.core.bits import bits_of, common, set_bit
from fanplan.core.kernels import bare, compiled
from fanplan.layers.channels.search.effort import CANDIDATES, NOISE, Effort
from fanplan.layers.channels.search.free.seed import (
    Scratch,
    best_column,
    bits_are_quicker,
    count_met_rows,
    make_scratch,
    take_members,
)
from fanplan.layers.channels.search.model.assign import (
    Choice,
    Offer,
    channel_costs,
    choose,
    offered,
    total_gain,
    weighted_sum,
)
from fanplan.layers.channels.search.model.demand import Demand, row_audience, wanted_rows

ROUNDS = 4
"""Lloyd rounds on the channels that a swap touched."""
BATCH = 32
"""Most trials between two questions whether to stop."""
ROWS_AT_A_TIME = 1_000_000
"""Rows × trials between them: some tenths of a second."""
IDLE = 96
"""Trials without a success after which swaps end."""


class SwapState(NamedTuple):
    """What channels offer and what rows choose."""

    offer: Offer
    choice: Choice


class Trial(NamedTuple):
    """Room for one trial: what must be looked at again, and what undoes it."""

    dirty: Bytes
    """Per channel: its rows changed."""
    stale: Bytes
    """Per row: its best two must be found anew."""
    stale_rows: Ints
    stale_count: Ints
    wanted: Floats
    """Per channel and user; clean between uses."""
    traffic: Floats
    before: Choice
    saved: Ints
    """Channels whose members are in ``saved_members``, as many as ``saved_count`` says."""
    saved_count: Ints
    saved_members: Bytes


def make_trial(demand: Demand, channels: int, choice: Choice) -> Trial:
    return Trial(
        dirty=np.zeros(channels, dtype=np.uint8),
        stale=np.zeros(demand.size, dtype=np.uint8),
        stale_rows=np.empty(demand.size, dtype=np.int32),
        stale_count=np.zeros(1, dtype=np.int32),
        wanted=np.zeros((channels, demand.users)),
        traffic=np.zeros(channels),
        before=choice.copy(),
        saved=np.empty(channels, dtype=np.int32),
        saved_count=np.zeros(1, dtype=np.int32),
        saved_members=np.empty((channels, demand.users), dtype=np.uint8),
    )


def swap(
    demand: Demand, members: Bytes, choice: Choice, trials: int, effort: Effort
) -> tuple[Bytes, Choice]:
    """Try swaps; keep those that raise the gain."""
    offer = offered(demand, members.copy(), channel_costs(demand, members))
    search = SwapState(offer, choice.copy())
    scratch, local = make_scratch(demand), make_trial(demand, members.shape[1], choice)
    ideal, idle = demand.ideal_gain, 0
    batch = min(BATCH, 1 + ROWS_AT_A_TIME // (demand.size + 1))
    for begin in range(0, trials, batch):
        if idle >= IDLE or effort.enough(total_gain(demand, search.choice)):
            break
        draws = effort.random.random((min(batch, trials - begin), CANDIDATES))
        kept = try_swaps(demand, ideal, search, draws, scratch, local)
        idle = 0 if kept else idle + len(draws)
    return offer.members, search.choice


@compiled
def try_swaps(
    demand: Demand, ideal: Floats, search: SwapState, draws: Floats, scratch: Scratch, local: Trial
) -> int:
    """One trial per row of ``draws``; how many raised the gain and were kept."""
    kept = 0
    total = weighted_sum(demand.rate, search.choice.gain)
    for trial in range(len(draws)):
        # Every other trial takes the first row drawn: the best of several is too often the same.
        drawn = draws[trial] if trial % 2 == 0 else draws[trial, :1]
        column = best_column(demand, search.choice.gain, ideal, drawn, scratch)
        if len(column) == 0:
            continue
        # The number of channels is fixed, so only closing and opening together can be judged.
        # Members are saved when they first change.
        local.saved_count[0] = 0
        copy_choice(search.choice, local.before)
        channel = cheapest_removal(demand, search, column, scratch)
        replace_column(demand, search, channel, column, scratch, local)
        settle_neighbourhood(demand, search, scratch, local)
        after = weighted_sum(demand.rate, search.choice.gain)
        if after > total * (1 + NOISE):
            total = after
            kept += 1
        else:
            undo(demand, search, local)
    return kept


@compiled
def cheapest_removal(demand: Demand, search: SwapState, column: Ints, scratch: Scratch) -> int:
    """The channel whose rows lose least if the new one takes its place."""
    choice = search.choice
    # Rows of a closed channel fall back to their second best …
    loss = np.zeros(len(search.offer.costs))
    for row in range(len(choice.best)):
        if choice.best[row] >= 0:
            lost = choice.gain[row] - choice.second_gain[row]
            loss[choice.best[row]] += demand.rate[row] * lost
    cost = demand.w2 + demand.w1 * len(column)
    # … unless the new channel is better for them than that.
    found = count_met_rows(demand, column, scratch)
    for row in scratch.seen[:found]:
        gain = demand.price[row] * scratch.overlap[row] - cost
        scratch.overlap[row] = 0
        if choice.best[row] >= 0 and gain > choice.second_gain[row]:
            spared = min(gain, choice.gain[row]) - choice.second_gain[row]
            loss[choice.best[row]] -= demand.rate[row] * spared
    return int(np.argmin(loss))


@compiled
def settle_neighbourhood(demand: Demand, search: SwapState, scratch: Scratch, local: Trial) -> None:
    """Lloyd on the channels whose rows changed, until none does or for a few rounds."""
    choose_stale(demand, search, local)
    for _ in range(ROUNDS):
        if not local.dirty.any():
            break
        add_dirty_demand(demand, search.choice, local)
        for channel in np.flatnonzero(local.dirty):
            local.dirty[channel] = 0
            threshold = demand.w1 * local.traffic[channel]
            column = take_members(local.wanted[channel], threshold)
            local.traffic[channel] = 0.0
            if differs(search.offer.members, channel, column):
                replace_column(demand, search, channel, column, scratch, local)
        choose_stale(demand, search, local)
    local.dirty[:] = 0


@bare
def add_dirty_demand(demand: Demand, choice: Choice, local: Trial) -> None:
    """Sum the priced demand and the traffic of the rows on dirty channels, from nothing."""
    for row in range(len(choice.best)):
        channel = choice.best[row]
        if channel >= 0 and local.dirty[channel]:
            rate = demand.rate[row]
            local.traffic[channel] += rate
            for user in row_audience(demand, row):
                local.wanted[channel, user] += rate * demand.price[row]


@compiled
def differs(members: Bytes, channel: Position, column: Ints) -> bool:
    """Whether a channel's members are others than the ascending column."""
    place = 0
    for user in range(len(members)):
        if members[user, channel]:
            if place == len(column) or column[place] != user:
                return True
            place += 1
    return place < len(column)


@compiled
def replace_column(
    demand: Demand,
    search: SwapState,
    channel: Position,
    column: Ints,
    scratch: Scratch,
    local: Trial,
) -> None:
    """Give a channel new members and correct the choice of all rows that it meets or met."""
    save_column(search, channel, local)
    before = np.flatnonzero(search.offer.members[:, channel])
    set_members(demand, search.offer, channel, column)
    cost = search.offer.costs[channel]
    found = count_both(demand, before, column, scratch)
    best, second, second_gain = search.choice.best, search.choice.second, search.choice.second_gain
    for row in scratch.seen[:found]:
        # Counted one too high, so that a row that is seen but not met differs from one not seen.
        gain = demand.price[row] * (scratch.overlap[row] - 1) - cost
        scratch.overlap[row] = 0
        met = gain > second_gain[row] or best[row] == channel or second[row] == channel
        if met and not local.stale[row]:
            reconsider(search.choice, row, channel, gain, local)


@compiled
def set_members(demand: Demand, offer: Offer, channel: Position, column: Ints | Longs) -> None:
    """Let a channel have these members and no others."""
    offer.members[:, channel] = 0
    offer.bits[channel : channel + 1] = 0
    for user in column:
        offer.members[user, channel] = 1
        if len(offer.bits):
            set_bit(offer.bits[channel], user)
    offer.costs[channel] = demand.w2 + demand.w1 * len(column)


@compiled
def count_both(demand: Demand, before: Ints | Longs, column: Ints, scratch: Scratch) -> int:
    """See the rows that meet the members before or after; count one more than meet those after."""
    found = 0
    if bits_are_quicker(demand, before) or bits_are_quicker(demand, column):
        old = bits_of(before, demand.bits.shape[1])
        new = bits_of(column, demand.bits.shape[1])
        either = old | new
        for row in range(len(demand.bits)):
            met = common(demand.bits[row], either) > 0
            scratch.overlap[row] = (1 + common(demand.bits[row], new)) * met
            scratch.seen[found] = row
            found += met
        return found
    for user in before:
        found = touch_rows(demand, user, 0, found, scratch)
    for user in column:
        found = touch_rows(demand, user, 1, found, scratch)
    return found


@bare
def touch_rows(demand: Demand, user: int, more: int, found: int, scratch: Scratch) -> int:
    """Count one (seen) plus ``more`` for every row of a user; the number of rows seen so far."""
    for row in wanted_rows(demand, user):
        if scratch.overlap[row] == 0:
            scratch.overlap[row] = 1
            scratch.seen[found] = row
            found += 1
        scratch.overlap[row] += more
    return found


@bare
def reconsider(choice: Choice, row: int, channel: Position, gain: float, local: Trial) -> None:
    """Keep a row's best two right when one channel's gain is new; if they are unknown, say so."""
    best, second = choice.best[row], choice.second[row]
    if best == channel and gain >= choice.second_gain[row]:
        choice.gain[row] = gain
    elif best == channel or (second == channel and gain < choice.second_gain[row]):
        # What comes after the second was never kept, so both are looked for again.
        local.stale[row] = 1
        local.stale_rows[local.stale_count[0]] = row
        local.stale_count[0] += 1
    elif gain > choice.gain[row]:
        choice.second[row], choice.second_gain[row] = best, choice.gain[row]
        choice.best[row], choice.gain[row] = channel, gain
        mark_dirty(local, best, channel)
    elif gain > choice.second_gain[row] or second == channel:
        choice.second[row], choice.second_gain[row] = channel, gain


@bare
def mark_dirty(local: Trial, one: int, other: Position) -> None:
    if one >= 0:
        local.dirty[one] = 1
    if other >= 0:
        local.dirty[other] = 1


@compiled
def choose_stale(demand: Demand, search: SwapState, local: Trial) -> None:
    """Find the best two anew for the rows that need it."""
    for row in local.stale_rows[: local.stale_count[0]]:
        before = search.choice.best[row]
        choose(demand, search.offer, search.choice, row)
        local.stale[row] = 0
        if search.choice.best[row] != before:
            mark_dirty(local, before, search.choice.best[row])
    local.stale_count[0] = 0


@bare
def copy_choice(source: Choice, target: Choice) -> None:
    for row in range(len(source.best)):
        target.best[row], target.gain[row] = source.best[row], source.gain[row]
        target.second[row], target.second_gain[row] = source.second[row], source.second_gain[row]


@compiled
def save_column(search: SwapState, channel: Position, local: Trial) -> None:
    count = local.saved_count[0]
    if channel in local.saved[:count]:
        return
    local.saved[count] = channel
    local.saved_members[count] = search.offer.members[:, channel]
    local.saved_count[0] += 1


@compiled
def undo(demand: Demand, search: SwapState, local: Trial) -> None:
    """Go back to the state before the trial."""
    # Costs are computed anew and not subtracted: sums of floats would not come back exactly.
    for k in range(local.saved_count[0]):
        set_members(demand, search.offer, local.saved[k], np.flatnonzero(local.saved_members[k]))
    copy_choice(local.before, search.choice)
