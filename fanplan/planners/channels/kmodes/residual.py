"""Y-step with several channels per row: members by the demand that no other channel serves."""

from __future__ import annotations

import numpy as np

from fanplan.kernels import compiled
from fanplan.planners.channels.kmodes.cover import Cover
from fanplan.planners.channels.kmodes.demand import Bytes, Demand
from fanplan.problem.interest import Floats, Ints, Longs


def rejoin(demand: Demand, cover: Cover, hard: Bytes, limit: Longs) -> Cover:
    """Better members, one channel after another; no step lowers the gain.

    A user joins at most ``limit`` channels. O(audiences × channels per row).
    """
    members = cover.members.copy()
    starts, rows = rows_on_channels(cover, members.shape[1])
    joined = members.sum(axis=1, dtype=np.int64)
    rejoin_channels(demand, cover._replace(members=members), starts, rows, hard, limit, joined)
    return cover._replace(members=members)


@compiled
def rows_on_channels(cover: Cover, channels: int) -> tuple[Longs, Ints]:
    """The rows on each channel, ascending, as starts and rows."""
    starts = np.zeros(channels + 1, dtype=np.int64)
    for channel in cover.channels:
        starts[channel + 1] += 1
    starts = np.cumsum(starts)
    place = starts[:-1].copy()
    rows = np.empty(len(cover.channels), dtype=np.int32)
    for row in range(len(cover.starts) - 1):
        for channel in cover.channels[cover.starts[row] : cover.starts[row + 1]]:
            rows[place[channel]] = row
            place[channel] += 1
    return starts, rows


@compiled
def rejoin_channels(
    demand: Demand,
    cover: Cover,
    starts: Longs,
    rows: Ints,
    hard: Bytes,
    limit: Longs,
    joined: Longs,
) -> None:
    wanted = np.zeros(len(cover.members))
    needed = np.zeros(len(cover.members), dtype=np.uint8)
    for channel in range(cover.members.shape[1]):
        mine = rows[starts[channel] : starts[channel + 1]]
        traffic = add_residual(demand, cover, channel, mine, hard, wanted, needed)
        for user in range(len(wanted)):
            was = cover.members[user, channel]
            joins = needed[user] or wanted[user] > demand.w1 * traffic
            if joins and not was and joined[user] >= limit[user]:
                joins = False
            cover.members[user, channel] = joins
            joined[user] += np.int64(joins) - was
            wanted[user], needed[user] = 0.0, 0


@compiled
def add_residual(
    demand: Demand,
    cover: Cover,
    channel: int,
    rows: Ints,
    hard: Bytes,
    wanted: Floats,
    needed: Bytes,
) -> float:
    """Each user's priced demand for rows on the channel that reach the user in no other way."""
    traffic = 0.0
    for row in rows:
        rate = demand.rate[row]
        traffic += rate
        others = cover.channels[cover.starts[row] : cover.starts[row + 1]]
        for user in demand.audience[demand.indptr[row] : demand.indptr[row + 1]]:
            if not served_elsewhere(cover.members, user, others, channel):
                wanted[user] += rate * demand.price[row]
                needed[user] |= hard[row]
    return traffic


@compiled
def served_elsewhere(members: Bytes, user: int, channels: Ints, channel: int) -> bool:
    """Whether a user gets a row through one of its channels other than the given one."""
    for other in channels:  # noqa: SIM110 - numba compiles no generator expressions
        if other != channel and members[user, other]:
            return True
    return False
