"""From problem and parameters to demand and rules, checked against each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import Bools, Bytes, Floats, Longs, starts_of
from fanplan.core.errors import InputError, Problem
from fanplan.core.prices import Weights
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import completed
from fanplan.layers.channels.lone import LEAST
from fanplan.layers.channels.map import ChannelMap, map_pairs
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.search.model.assign import weighted_sum
from fanplan.layers.channels.search.model.cover import (
    Cover,
    from_map,
    total_cover_gain,
    unserved_pairs,
)
from fanplan.layers.channels.search.model.demand import Demand, demand_of
from fanplan.layers.channels.search.model.rules import CoverRules, bounded, no_rules


@dataclass(frozen=True, eq=False)
class Task:
    """The demand at its true price, the rules, and which rows a limit on unicast counts."""

    problem: InterestProblem
    params: KmodesParams
    demand: Demand
    """Unicast at its true price; rows kept off multicast have price 0, rows apart no audience."""
    rules: CoverRules
    counted: Bools
    """Rows with messages that several want, or one if channels may be lone: these count."""
    apart: Bools
    """Rows that nothing but unicast pays for, as one wants them and unicast is not dearer."""

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
        told = p.unicast_limit is not None or p.pinned or p.max_changes is not None
        return not (limited or told or self.dear)

    @property
    def dear(self) -> bool:
        """Whether a channel with one member would cost less than unicast, but must not be."""
        return self.params.weights.w3 > 1 and not self.params.lone

    def cost(self, cover: Cover) -> float:
        """C′ of Bickson et al. (2010), Eq. 1."""
        return self.all_unicast - total_cover_gain(self.demand, cover)

    def map(self, cover: Cover) -> ChannelMap:
        """The map of a cover, with unicast to all whom its channels do not serve."""
        rows = np.repeat(np.arange(self.demand.size), np.diff(cover.starts))
        members = map_pairs(*np.nonzero(cover.members.T))
        channels = cover.members.shape[1]
        return completed(self.problem, channels, map_pairs(rows, cover.channels), members)

    def unicast_fraction(self, cover: Cover) -> float:
        """Share of the messages sent that go by unicast and count."""
        rows, _ = unserved_pairs(self.demand, cover)
        unicast = self.demand.rate[rows]
        sent = self.beside + unicast.sum() + np.dot(self.demand.rate, np.diff(cover.starts))
        return float(unicast[self.counted[rows]].sum() / sent) if sent > 0 else 0.0

    @property
    def beside(self) -> float:
        """Messages of rows apart, which are sent by unicast beside all that is decided."""
        return float(self.demand.rate[self.apart].sum())

    def priced(self, hard: Bytes, more: float = 0.0) -> Demand:
        """The demand with unicast that counts dearer by ``more``, and impossible for hard rows."""
        price = self.demand.price + np.where((self.demand.price > 0) & self.counted, more, 0.0)
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
    several = (problem.audience_sizes >= LEAST) | params.lone
    counted = several & (problem.messages > 0)
    apart = ~several & (price <= params.weights.w1 + params.weights.w2)
    # Where changes are counted, what a row costs on the channels that it has counts too.
    apart[list(params.pinned)] = False
    apart &= params.start is None
    demand = demand_without(problem, params.weights, price, apart)
    rules = make_rules(demand, params, channels, counted)
    return Task(problem, params, demand, rules, counted, apart)


def demand_without(
    problem: InterestProblem, weights: Weights, price: Floats, apart: Bools
) -> Demand:
    """The demand in which nobody wants the rows apart."""
    sizes, users = problem.audience_sizes, len(problem.subscribers)
    indptr, audience = starts_of(sizes * ~apart), problem.audience[~np.repeat(apart, sizes)]
    return demand_of(indptr, audience, problem.messages, price, users, weights.w1, weights.w2)


def make_rules(demand: Demand, params: KmodesParams, channels: int, counted: Bools) -> CoverRules:
    rules = no_rules(demand, channels)
    hard = (counted & params.multicast_only).astype(np.uint8)
    hard[list(params.pinned)] = 1
    if params.start is not None:
        start = from_map(params.start, demand.size, demand.users, channels)
        rules = rules._replace(start=start)
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
