"""Exchange: swaps that obey the rules and see several channels per row.

Slower than swaps (every trial looks at all rows), so it is for what swaps cannot see.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fanplan.core.arrays import Ints
from fanplan.core.stop import Stop
from fanplan.layers.channels.search.free.column import CANDIDATES, best_column, make_scratch
from fanplan.layers.channels.search.model.assign import channel_costs
from fanplan.layers.channels.search.model.cover import (
    Cover,
    channel_losses,
    close_channels,
    cover_gains,
    unserved_demand,
)
from fanplan.layers.channels.search.model.demand import Demand
from fanplan.layers.channels.search.model.rules import Rules, bounded, improve, objective
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
NOISE = 1e-12
"""An exchange must add more than this part of the objective: less may be rounding."""


def always(cover: Cover) -> bool:
    return True


def exchange(
    demand: Demand,
    cover: Cover,
    rules: Rules,
    trials: int,
    random: np.random.Generator,
    stop: Stop,
    all_unicast: float,
    allowed: Callable[[Cover], bool] = always,
) -> Cover:
    """Close a channel, open another, improve; keep what raises the objective and is allowed."""
    work = WORK if restricted(rules, cover) else FREE_WORK
    trials = min(trials, int(work / (len(demand.audience) * cover.members.shape[1] + 1)))
    value = objective(demand, cover, rules)
    for trial in range(trials):
        if stop(all_unicast - value):
            break
        other = neighbour(demand, cover, rules, trial, random)
        other = improve(demand, other, rules, PASSES)
        after = objective(demand, other, rules)
        better = after > value + NOISE * abs(value)
        if better and is_served(demand, other, rules.hard) and allowed(other):
            cover, value = other, after
    return cover


def restricted(rules: Rules, cover: Cover) -> bool:
    """Whether any rule can keep swaps from being followed."""
    limited = bounded(rules, cover.members.shape[1])
    return limited or rules.change > 0 or bool(rules.hard.any())


def neighbour(
    demand: Demand, cover: Cover, rules: Rules, trial: int, random: np.random.Generator
) -> Cover:
    """A cover with other members, in turn: for whole audiences, for the rest, or at random."""
    if trial % 3 == 2:
        return perturbed(cover, rules, random)
    whole = trial % 3 == 0
    column = (audience_column if whole else residual_column)(demand, cover, random)
    losses = channel_losses(demand, cover, channel_costs(demand, cover.members))
    cheapest = np.argsort(losses, kind="stable")[:CHEAPEST]
    return replaced(cover, rules, int(cheapest[random.integers(len(cheapest))]), column)


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


def perturbed(cover: Cover, rules: Rules, random: np.random.Generator) -> Cover:
    """A few users join or leave a channel; rows stay where they are. Who is full stays out."""
    users, channels = cover.members.shape
    count = int(random.integers(1, MOST_FLIPS + 1))
    who, where = random.integers(users, size=count), random.integers(channels, size=count)
    members = cover.members.copy()
    members[who, where] ^= 1
    full = members[who].sum(axis=1, dtype=np.int64) > rules.limit[who]
    members[who[full], where[full]] = 0
    return cover._replace(members=members)


def replaced(cover: Cover, rules: Rules, channel: int, column: Ints) -> Cover:
    """The cover with a channel closed and one with other members in its place."""
    after = close_channels(cover, np.array([channel]))
    room = after.members[column].sum(axis=1, dtype=np.int64) < rules.limit[column]
    after.members[column[room], channel] = 1
    return after
