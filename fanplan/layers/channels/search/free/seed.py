"""First members: channels opened one after another where rows lack most.

A new channel has the members that would add most to what the rows already have.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bytes, Floats, Ints, Longs
from fanplan.core.bits import bits_of, common
from fanplan.core.kernels import compiled
from fanplan.layers.channels.search.effort import Effort
from fanplan.layers.channels.search.model.assign import weighted_sum
from fanplan.layers.channels.search.model.demand import Demand, row_audience, wanted_rows

ROWS_AT_A_TIME = 3_000_000
"""Rows × channels opened between two questions whether to stop: some tenths of a second."""
REFINEMENTS = 2
"""Lloyd steps of the best candidate."""


class Scratch(NamedTuple):
    """Room for counts, clean (zero) between uses: per row, per user, and a list of rows."""

    overlap: Ints
    seen: Ints
    wanted: Floats
    cumulated: Floats


def make_scratch(demand: Demand) -> Scratch:
    return Scratch(
        np.zeros(demand.size, dtype=np.int32),
        np.empty(demand.size, dtype=np.int32),
        np.zeros(demand.users),
        np.empty(demand.size),
    )


def seed_members(demand: Demand, channels: int, effort: Effort) -> Bytes:
    """Members of all channels, users × channels; O(channels × (rows + audiences met)).

    When it must stop, the remaining channels stay empty.
    """
    members = np.zeros((demand.users, channels), dtype=np.uint8)
    draws = effort.random.random((channels, effort.candidates))
    gain, ideal, scratch = np.zeros(demand.size), demand.ideal_gain, make_scratch(demand)
    step = 1 + ROWS_AT_A_TIME // (demand.size + 1)
    for begin in range(0, channels, step):
        end = min(channels, begin + step)
        open_channels(demand, ideal, draws, members, gain, begin, end, scratch)
        if effort.enough(weighted_sum(demand.rate, gain)):
            break
    return members


@compiled
def open_channels(
    demand: Demand,
    ideal: Floats,
    draws: Floats,
    members: Bytes,
    gain: Floats,
    begin: int,
    end: int,
    scratch: Scratch,
) -> None:
    """Open some of the channels; ``gain`` is what rows have from those before, and is raised."""
    for channel in range(begin, end):
        column = best_column(demand, gain, ideal, draws[channel], scratch)
        for user in column:
            members[user, channel] = 1
        take_gains(demand, column, gain, scratch)


@compiled
def take_gains(demand: Demand, column: Ints, gain: Floats, scratch: Scratch) -> None:
    """Let every row have the new channel if that is better for it."""
    found = count_met_rows(demand, column, scratch)
    cost = demand.w2 + demand.w1 * len(column)
    for row in scratch.seen[:found]:
        gain[row] = max(gain[row], demand.price[row] * scratch.overlap[row] - cost)
        scratch.overlap[row] = 0


@compiled
def best_column(
    demand: Demand, gain: Floats, ideal: Floats, draws: Floats, scratch: Scratch
) -> Ints:
    """Draw rows by what they lack to their ideal; refine the audience that adds most.

    As in k-means++ with several candidates (Arthur and Vassilvitskii, 2007, section 6).
    """
    total = 0.0
    for row in range(len(gain)):
        total += demand.rate[row] * max(0.0, ideal[row] - gain[row])
        scratch.cumulated[row] = total
    column = np.empty(0, dtype=np.int32)
    best = 0.0
    if total <= 0.0:
        return column
    # Drawn by what they lack, rows that are served well hardly get a second channel.
    for draw in draws:
        row = min(np.searchsorted(scratch.cumulated, draw * total, side="right"), len(gain) - 1)
        candidate = row_audience(demand, row)
        _, benefit = refined(demand, candidate, gain, scratch, False)
        if benefit > best:
            column, best = candidate.copy(), benefit
    for _ in range(REFINEMENTS):
        after, benefit = refined(demand, column, gain, scratch, True)
        if len(after) == 0:
            break
        column = after
    return column


@compiled
def refined(
    demand: Demand, column: Ints, gain: Floats, scratch: Scratch, rejoin: bool
) -> tuple[Ints, float]:
    """One Lloyd step of a single channel: the rows that prefer it, then its best members.

    Returns the new members (the old ones unless ``rejoin``) and the benefit of the old ones.
    """
    found = count_met_rows(demand, column, scratch)
    cost = demand.w2 + demand.w1 * len(column)
    benefit, traffic = 0.0, 0.0
    for row in scratch.seen[:found]:
        more = demand.price[row] * scratch.overlap[row] - cost - gain[row]
        scratch.overlap[row] = 0
        if more > 0.0:
            rate = demand.rate[row]
            benefit += rate * more
            traffic += rate
            if rejoin:
                for user in row_audience(demand, row):
                    scratch.wanted[user] += rate * demand.price[row]
    if not rejoin:
        return column, benefit
    return take_members(scratch.wanted, demand.w1 * traffic), benefit


@compiled
def take_members(wanted: Floats, threshold: float) -> Ints:
    """The users whose demand exceeds the threshold; the demand is cleared."""
    size = 0
    for user in range(len(wanted)):
        size += wanted[user] > threshold
    members = np.empty(size, dtype=np.int32)
    place = 0
    for user in range(len(wanted)):
        if wanted[user] > threshold:
            members[place] = user
            place += 1
        wanted[user] = 0.0
    return members


@compiled
def count_met_rows(demand: Demand, column: Ints, scratch: Scratch) -> int:
    """Count for each row how many of its audience are in the column: by bits or by users' lists.

    The counted rows are the first ``n`` of ``scratch.seen``; n is returned.
    """
    found = 0
    if bits_are_quicker(demand, column):
        wanted = bits_of(column, demand.bits.shape[1])
        for row in range(len(demand.bits)):
            # Without a branch: which rows are met is hard for the processor to foresee.
            count = common(demand.bits[row], wanted)
            scratch.overlap[row] = count
            scratch.seen[found] = row
            found += count > 0
        return found
    for user in column:
        for row in wanted_rows(demand, user):
            if scratch.overlap[row] == 0:
                scratch.seen[found] = row
                found += 1
            scratch.overlap[row] += 1
    return found


@compiled
def bits_are_quicker(demand: Demand, column: Ints | Longs) -> bool:
    """Whether a step per row and word is less than one for each of the users' rows."""
    steps = 0
    for user in column:
        steps += demand.user_indptr[user + 1] - demand.user_indptr[user]
    return 0 < demand.bits.size <= steps
