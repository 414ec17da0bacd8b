"""What to say when limits cannot be met: which one binds, and what would do instead."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fanplan.core.errors import InfeasibleError, Problem
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.search.model.cover import empty_cover
from fanplan.layers.channels.search.model.demand import Demand
from fanplan.layers.channels.search.model.rules import Rules
from fanplan.layers.channels.search.ruled.obey import serve_by_clusters, serve_by_packing

BISECTIONS = 40
CLOSE = 1e-6
"""A relaxed rate is found to this relative width."""


def explain(
    problem: InterestProblem, demand: Demand, rules: Rules, channels: int
) -> InfeasibleError:
    """Why hard rows could not all be served, with the smallest relaxation that was found to do."""
    excluded = np.flatnonzero((rules.limit < 1) & needs_multicast(demand, rules))
    if len(excluded):
        return excluded_subscriber(problem, int(excluded[0]))
    if not np.isinf(rules.cap) and serves(demand, rules._replace(cap=np.inf), channels):
        return crowded_channels(problem, demand, rules, channels)
    return too_few_channels_each(demand, rules, channels)


def needs_multicast(demand: Demand, rules: Rules) -> np.ndarray:
    """Which users want a hard row."""
    wants = np.zeros(demand.users, dtype=bool)
    wants[demand.audience[np.repeat(rules.hard != 0, demand.audience_sizes)]] = True
    return wants


def excluded_subscriber(problem: InterestProblem, user: int) -> InfeasibleError:
    name = problem.subscribers[user].as_py()
    what = f"subscriber {name!r} may join no channel but wants a row that must go by multicast"
    remedy = "Allow 1 channel for it, or allow unicast for its rows"
    limit = "max_channels_per_subscriber"
    return InfeasibleError(limit, 1, Problem(limit, what, remedy))


def crowded_channels(
    problem: InterestProblem, demand: Demand, rules: Rules, channels: int
) -> InfeasibleError:
    """The rate per channel binds: find the smallest that does, from what is needed at least."""
    least = least_cap(demand, rules, channels)
    enough = smallest(
        least,
        float(demand.rate.sum()) * (1 + CLOSE),
        lambda cap: serves(demand, rules._replace(cap=cap), channels),
    )
    proven = "no plan can do with less than" if rules.cap < least else "at least needed:"
    given, low, high = (rate / problem.seconds for rate in (rules.cap, least, enough))
    what = (
        f"{given:g} messages/s on each of {channels} channels do not carry the rows that must "
        f"go by multicast ({proven} {low:g})"
    )
    remedy = f"Allow {high:g}, or more channels, or unicast for some rows"
    return InfeasibleError("max_channel_rate", enough, Problem("max_channel_rate", what, remedy))


def least_cap(demand: Demand, rules: Rules, channels: int) -> float:
    """A rate per channel that no plan can undercut: by a row, all rows, or a user's rows."""
    hard = rules.hard != 0
    rates = demand.rate[hard & (demand.audience_sizes > 0)]
    wanted = np.bincount(
        demand.audience, np.repeat(demand.rate * hard, demand.audience_sizes), demand.users
    )
    per_user = wanted / np.maximum(np.minimum(rules.limit, channels), 1)
    return float(max(rates.max(initial=0), rates.sum() / channels, per_user.max(initial=0)))


def smallest(low: float, high: float, works: Callable[[float], bool]) -> float:
    """The smallest number from low to high that works, by bisection; high is known to work."""
    if works(low):
        return low
    for _ in range(BISECTIONS):
        if high - low <= CLOSE * high:
            break
        middle = (low + high) / 2
        low, high = (low, middle) if works(middle) else (middle, high)
    return high


def too_few_channels_each(demand: Demand, rules: Rules, channels: int) -> InfeasibleError:
    """The number of channels a user may join binds: raise it for all by as few as will do."""
    limit = "max_channels_per_subscriber"
    for more in range(1, channels + 1):
        raised = np.minimum(rules.limit + more, channels)
        if serves(demand, rules._replace(limit=raised), channels):
            what = "the rows that must go by multicast need more channels per subscriber"
            remedy = f"Allow {more} more for each subscriber, or unicast for some rows"
            return InfeasibleError(limit, more, Problem(limit, what, remedy))
    what = f"{channels} channels of at most {rules.cap:g} messages do not carry the pinned rows"
    return InfeasibleError(
        "channels", channels, Problem("channels", what, "Allow more channels, or pin fewer rows")
    )


def serves(demand: Demand, rules: Rules, channels: int) -> bool:
    """Whether one of the two constructions serves all hard rows under the rules."""
    nothing = empty_cover(demand.size, demand.users, channels)
    if serve_by_packing(demand, nothing, rules) is not None:
        return True
    every = np.arange(channels)
    return rules.width > 1 and serve_by_clusters(demand, nothing, rules, every) is not None


def too_much_unicast(limit: float, least: float) -> InfeasibleError:
    """The unicast limit cannot be met beside the other limits."""
    what = (
        f"at most {limit:g} of the messages sent may go by unicast, but under the other limits no "
        f"plan was found with less than {least:g}"
    )
    remedy = f"Allow {least:g}, or relax limits on channels, subscribers or rows"
    return InfeasibleError("unicast_limit", least, Problem("unicast_limit", what, remedy))


def too_many_changes(allowed: int, needed: int) -> InfeasibleError:
    """The other limits force more changes than allowed."""
    what = (
        f"{allowed} changes are allowed, but no plan under the other limits was found with fewer "
        f"than {needed}"
    )
    remedy = f"Allow {needed}, or relax the other limits"
    return InfeasibleError("max_changes", needed, Problem("max_changes", what, remedy))
