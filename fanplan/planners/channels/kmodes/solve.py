"""One cover for one demand under rules: search freely, obey, improve."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from fanplan.planners.channels.kmodes.assign import Choice
from fanplan.planners.channels.kmodes.column import CANDIDATES
from fanplan.planners.channels.kmodes.cover import Cover, empty_cover, one_channel
from fanplan.planners.channels.kmodes.demand import Bytes, Demand
from fanplan.planners.channels.kmodes.exchange import exchange
from fanplan.planners.channels.kmodes.flips import can_flip, flip_members
from fanplan.planners.channels.kmodes.obey import (
    is_served,
    obey_limits,
    serve_by_clusters,
    serve_by_moves,
    serve_by_packing,
    worth_least,
)
from fanplan.planners.channels.kmodes.params import KmodesParams
from fanplan.planners.channels.kmodes.rules import Rules, bounded, improve, objective
from fanplan.planners.channels.kmodes.search import search
from fanplan.planners.stop import Stop

CLUSTER_SHARES = (0.6, 0.7, 0.9)
"""Parts of the channels that are tried as user clusters if rows must not go by unicast."""
LOOK = 2
"""Passes that a cover gets before the best is chosen."""
MOVED_STARTS = 2
"""Orders in which rows are moved one by one if none may go by unicast."""


def unknown(cover: Cover) -> float:
    return math.inf


class Solver:
    """Holds what stays the same while demand prices and rules vary.

    ``all_unicast`` is what the gains are subtracted from for the ears of ``stop``; infinite if
    gains are not those of a plan that keeps all limits. ``cost`` is what a cover that obeys costs,
    as far as that is known.
    """

    def __init__(
        self,
        params: KmodesParams,
        random: np.random.Generator,
        stop: Stop,
        all_unicast: float,
        candidates: int = CANDIDATES,
        cost: Callable[[Cover], float] = unknown,
    ) -> None:
        self.params, self.random, self.stop = params, random, stop
        self.all_unicast, self.candidates, self.cost = all_unicast, candidates, cost

    def with_swaps(self, most: int) -> Solver:
        """The same with at most so many swaps: quicker, for looking around."""
        params = replace(self.params, swaps=min(most, self.params.swaps))
        return Solver(params, self.random, self.stop, self.all_unicast, self.candidates, self.cost)

    def solve(
        self, demand: Demand, soft: Demand, rules: Rules, members: Bytes | None = None
    ) -> Cover | None:
        """The best cover found, or None if no way was found to obey.

        ``soft`` is the demand with the price of hard rows as if unicast were possible.
        """
        if rules.hard.any():
            covers = self.hard_covers(demand, soft, rules, members)
            best = best_of(demand, rules, covers, lambda cover: self.stop(self.cost(cover)))
        else:
            best = self.free_cover(demand, rules, members)
        if best is None:
            return None
        best = self.improved(demand, best, rules)
        self.stop(self.cost(best))
        params = self.params
        return exchange(demand, best, rules, params.swaps, self.random, self.stop, self.all_unicast)

    def search(
        self, demand: Demand, channels: int, params: KmodesParams, members: Bytes | None
    ) -> tuple[Bytes, Choice]:
        return search(
            demand,
            channels,
            params,
            self.random,
            self.stop,
            self.all_unicast,
            members,
            self.candidates,
        )

    def free_cover(self, demand: Demand, rules: Rules, members: Bytes | None) -> Cover:
        """Search with one channel per row, then obey."""
        channels = self.params.channels
        found, choice = self.search(demand, channels, self.params, members)
        return obey_limits(demand, one_channel(found, choice.best), rules)

    def hard_covers(
        self, demand: Demand, soft: Demand, rules: Rules, members: Bytes | None
    ) -> Iterator[Cover]:
        """Covers that serve all hard rows: packed, by clusters alone, by modes and clusters."""
        channels = self.params.channels
        nothing = empty_cover(demand.size, demand.users, channels)
        found, choice = self.search(demand, channels, self.params, members)
        packed = obey_limits(demand, one_channel(found, choice.best), rules)
        for start in (packed, nothing):
            cover = serve_by_packing(demand, start, rules)
            if cover is not None:
                yield improve(demand, cover, rules, LOOK, self.stop)
        if rules.hard.all() and not bounded(rules, channels):
            for _ in range(MOVED_STARTS):
                cover = serve_by_moves(demand, channels, self.params.passes, self.random)
                yield improve(demand, cover, rules, LOOK, self.stop)
        if rules.width == 1:
            return
        everything = serve_by_clusters(demand, nothing, rules, np.arange(channels))
        if everything is not None:
            yield improve(demand, everything, rules, LOOK, self.stop)
        for share in CLUSTER_SHARES:
            groups = max(1, round(share * channels))
            if groups < channels:
                cover = self.modes_and_clusters(demand, soft, rules, groups)
                if cover is not None:
                    yield improve(demand, cover, rules, LOOK, self.stop)

    def improved(self, demand: Demand, cover: Cover, rules: Rules) -> Cover:
        """Both steps, and flips where nobody may be left to unicast."""
        passes = self.params.passes
        cover = improve(demand, cover, rules, passes, self.stop)
        if not can_flip(cover, rules) or self.stop(self.cost(cover)):
            return cover
        cover = flip_members(demand, cover, rules)
        return improve(demand, cover, rules, passes, self.stop)

    def modes_and_clusters(
        self, demand: Demand, soft: Demand, rules: Rules, groups: int
    ) -> Cover | None:
        """Some channels found as if unicast were possible, the others as user clusters."""
        modes = self.params.channels - groups
        found, choice = self.search(soft, modes, self.params, None)
        members = np.zeros((demand.users, self.params.channels), dtype=np.uint8)
        members[:, :modes] = found
        free = rules._replace(hard=np.zeros_like(rules.hard))
        cover = obey_limits(soft, one_channel(members, choice.best), free)
        cover = improve(soft, cover, free, self.params.passes, self.stop)
        return serve_by_clusters(demand, cover, rules, worth_least(demand, cover, groups))


def best_of(
    demand: Demand,
    rules: Rules,
    covers: Iterator[Cover],
    enough: Callable[[Cover], bool] | None = None,
) -> Cover | None:
    """The cover with the highest objective among those that serve the hard rows; first wins.

    ``enough`` is asked with the best so far whether it must do.
    """
    best, value = None, -np.inf
    for cover in covers:
        after = objective(demand, cover, rules)
        if after > value and is_served(demand, cover, rules.hard):
            best, value = cover, after
        if best is not None and enough is not None and enough(best):
            break
    return best
