"""From any cover to one in which nobody is alone on a channel.

At a price of unicast up to that of a send and a receive, closing a channel with one member costs
nothing. Where its rows must not go by unicast, a second member joins instead.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fanplan.core.arrays import Bools, Longs
from fanplan.layers.channels.lone import LEAST
from fanplan.layers.channels.search.model.cover import Cover, close_channels
from fanplan.layers.channels.search.ruled.obey import is_served
from fanplan.layers.channels.search.task import Task


def all_together(task: Task, covers: Iterable[Cover]) -> list[Cover]:
    """The covers in which nobody is alone, or those that they become."""
    found = (without_lone_members(task, cover) for cover in covers)
    return [cover for cover in found if cover is not None]


def without_lone_members(task: Task, cover: Cover) -> Cover | None:
    """The cover with channels that two or more share; None if none was found within the rules."""
    if task.params.lone:
        return cover
    lone = lone_channels(task, cover)
    closed = close_channels(cover, lone)
    if not len(lone) or not breaks(task, closed, cover):
        return closed
    for channel in lone:
        closed = close_channels(cover, np.array([channel]))
        found = shared(task, cover, int(channel)) if breaks(task, closed, cover) else closed
        if found is None:
            return None
        cover = found
    return cover


def lone_channels(task: Task, cover: Cover) -> Longs:
    """Channels in use with fewer than two members, but for those that carry a pinned row."""
    few: Bools = cover.members.sum(axis=0, dtype=np.int64) < LEAST
    few[cover.channels[np.isin(rows_of(cover), task.params.pinned)]] = False
    used = np.append(np.flatnonzero(cover.members.any(axis=0)), cover.channels)
    return np.intersect1d(np.flatnonzero(few), used)


def rows_of(cover: Cover) -> Longs:
    """The row of each of a cover's (row, channel) pairs."""
    return np.repeat(np.arange(len(cover.starts) - 1), np.diff(cover.starts))


def breaks(task: Task, cover: Cover, before: Cover) -> bool:
    """Whether a cover breaks a limit on unicast that another keeps."""
    hard = task.rules.hard
    if is_served(task.demand, before, hard) and not is_served(task.demand, cover, hard):
        return True
    limit = task.params.unicast_limit
    if limit is None:
        return False
    return task.unicast_fraction(before) <= limit < task.unicast_fraction(cover)


def shared(task: Task, cover: Cover, channel: int) -> Cover | None:
    """The cover with a second member on a channel: who wants most of it; None if nobody may."""
    demand, rules = task.demand, task.rules
    own = np.zeros(demand.size)
    own[rows_of(cover)[cover.channels == channel]] = 1
    weight = np.repeat(demand.rate * own, demand.audience_sizes)
    wanted = np.bincount(demand.audience, weight, demand.users)
    full = cover.members.sum(axis=1, dtype=np.int64) >= rules.limit
    wanted[full | (cover.members[:, channel] != 0)] = -1.0
    members = cover.members.copy()
    best = np.argsort(-wanted, kind="stable")[: LEAST - members[:, channel].sum()]
    if len(best) == 0 or wanted[best[-1]] < 0:
        return None
    members[best, channel] = 1
    return cover._replace(members=members)
