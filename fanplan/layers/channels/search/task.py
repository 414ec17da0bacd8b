"""From problem and parameters to demand and rules, checked against each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import Bytes, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.search.model.assign import weighted_sum
from fanplan.layers.channels.search.model.cover import (
    Cover,
    from_map,
    messages_sent,
    total_cover_gain,
)
from fanplan.layers.channels.search.model.demand import Demand, make_demand
from fanplan.layers.channels.search.model.rules import CoverRules, bounded, no_rules


@dataclass(frozen=True, eq=False)
class Task:
    """The demand at its true price, the rules, and which rows may use channels."""

    problem: InterestProblem
    params: KmodesParams
    demand: Demand
    """Unicast at its true price; rows kept off multicast have price 0."""
    rules: CoverRules

    @property
    def all_unicast(self) -> float:
        """What everything costs by unicast."""
        sizes = self.problem.audience_sizes.astype(np.float64)
        return self.params.weights.unicast * weighted_sum(self.problem.messages, sizes)

    @property
    def free(self) -> bool:
        """Whether every cover keeps all limits."""
        p = self.params
        limited = bounded(self.rules, p.channels)
        return not (limited or p.unicast_limit is not None or p.pinned or p.max_changes is not None)

    def cost(self, cover: Cover) -> float:
        """C′ of Bickson et al. (2010), Eq. 1."""
        return self.all_unicast - total_cover_gain(self.demand, cover)

    def unicast_fraction(self, cover: Cover) -> float:
        """Share of the messages sent that go by unicast."""
        multicast, unicast = messages_sent(self.demand, cover)
        sent = unicast + multicast
        return unicast / sent if sent > 0 else 0.0

    def priced(self, hard: Bytes, more: float = 0.0) -> Demand:
        """The demand with unicast dearer by ``more``, and out of the question for hard rows."""
        price = np.where(self.demand.price > 0, self.demand.price + more, 0.0)
        forbidding = self.params.channels * (self.demand.w2 + self.demand.w1 * self.demand.users)
        return self.demand.with_price(np.where(hard != 0, price + forbidding, price))


def make_task(problem: InterestProblem, params: KmodesParams) -> Task:
    """Check the parameters against the problem and make both ready for kernels."""
    users, channels = len(problem.subscribers), params.channels
    problems = [
        *row_problems("pinned", params.pinned, problem.size),
        *row_problems("off_multicast", params.off_multicast, problem.size),
        *start_problems(problem, params),
    ]
    limits = params.max_channels_per_subscriber
    if limits is not None and not isinstance(limits, int) and len(limits) != users:
        what = f"{len(limits)} limits for {users} subscribers"
        problems.append(Problem("max_channels_per_subscriber", what, "Give one for each"))
    if problems:
        raise InputError(problems)
    price = np.full(problem.size, params.weights.unicast)
    price[list(params.off_multicast)] = 0.0
    demand = make_demand(problem, params.weights, price)
    return Task(problem, params, demand, make_rules(demand, params, channels))


def make_rules(demand: Demand, params: KmodesParams, channels: int) -> CoverRules:
    rules = no_rules(demand, channels)
    hard = np.full(demand.size, params.multicast_only, dtype=np.uint8)
    hard[list(params.pinned)] = 1
    if params.start is not None:
        rules = rules.with_start(from_map(params.start, demand.size, demand.users, channels))
    return rules._replace(
        hard=hard,
        limit=channel_limits(params, demand.users),
        cap=np.inf if params.max_channel_rate is None else float(params.max_channel_rate),
        width=channels if params.multiple else 1,
        change=params.change_price,
    )


def channel_limits(params: KmodesParams, users: int) -> Longs:
    """Per user the most channels to join; no more than there are."""
    limits = params.max_channels_per_subscriber
    if limits is None:
        limits = params.channels
    return np.minimum(np.broadcast_to(np.asarray(limits, dtype=np.int64), users), params.channels)


def row_problems(name: str, rows: Iterable[int], size: int) -> list[Problem]:
    unknown = [row for row in rows if not 0 <= row < size]
    if not unknown:
        return []
    return [Problem(name, f"there is no row {unknown[0]}", f"Use rows from 0 to {size - 1}")]


def start_problems(problem: InterestProblem, params: KmodesParams) -> list[Problem]:
    start = params.start
    if start is None:
        return []
    fits = (
        start.assigned.left.max(initial=0) < problem.size
        and start.members.right.max(initial=0) < len(problem.subscribers)
        and start.assigned.right.max(initial=0) < params.channels
        and start.members.left.max(initial=0) < params.channels
    )
    if fits:
        return []
    what = "it names rows, subscribers or channels that the problem does not have"
    return [Problem("start", what, "Translate it to the rows and subscribers of this problem")]
