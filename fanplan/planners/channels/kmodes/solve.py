"""One cover for one demand under rules: search freely, obey, improve."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fanplan.planners.channels.kmodes.assign import Choice
from fanplan.planners.channels.kmodes.column import CANDIDATES
from fanplan.planners.channels.kmodes.cover import Cover, empty_cover, one_channel
from fanplan.planners.channels.kmodes.demand import Bytes, Demand
from fanplan.planners.channels.kmodes.exchange import exchange
from fanplan.planners.channels.kmodes.obey import (
    is_served,
    obey_limits,
    serve_by_clusters,
    serve_by_packing,
    worth_least,
)
from fanplan.planners.channels.kmodes.params import KmodesParams
from fanplan.planners.channels.kmodes.rules import Rules, improve, objective
from fanplan.planners.channels.kmodes.search import search
from fanplan.planners.stop import Stop

CLUSTER_SHARES = (0.6, 0.75, 0.9)
"""Parts of the channels that are tried as user clusters if rows must not go by unicast."""


class Solver:
    """Holds what stays the same while demand prices and rules vary.

    ``all_unicast`` is what the gains are subtracted from for the ears of ``stop``; infinite if
    gains are not those of a plan that keeps all limits.
    """

    def __init__(
        self,
        params: KmodesParams,
        random: np.random.Generator,
        stop: Stop,
        all_unicast: float,
        candidates: int = CANDIDATES,
    ) -> None:
        self.params, self.random, self.stop = params, random, stop
        self.all_unicast, self.candidates = all_unicast, candidates

    def with_swaps(self, most: int) -> Solver:
        """The same with at most so many swaps: quicker, for looking around."""
        params = replace(self.params, swaps=min(most, self.params.swaps))
        return Solver(params, self.random, self.stop, self.all_unicast, self.candidates)

    def solve(
        self, demand: Demand, soft: Demand, rules: Rules, members: Bytes | None = None
    ) -> Cover | None:
        """The best cover found, or None if no way was found to obey.

        ``soft`` is the demand with the price of hard rows as if unicast were possible.
        """
        covers = self.hard_covers(demand, soft, rules, members)
        if not rules.hard.any():
            covers = iter((self.free_cover(demand, rules, members),))
        best = best_of(demand, rules, covers)
        if best is None:
            return None
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
        """Search with one channel per row, obey, then let rows have several."""
        channels = self.params.channels
        found, choice = self.search(demand, channels, self.params, members)
        cover = obey_limits(demand, one_channel(found, choice.best), rules)
        return improve(demand, cover, rules, self.params.passes)

    def hard_covers(
        self, demand: Demand, soft: Demand, rules: Rules, members: Bytes | None
    ) -> Iterator[Cover]:
        """Covers that serve all hard rows: packed, by clusters alone, by modes and clusters."""
        channels, passes = self.params.channels, self.params.passes
        nothing = empty_cover(demand.size, demand.users, channels)
        found, choice = self.search(demand, channels, self.params, members)
        packed = obey_limits(demand, one_channel(found, choice.best), rules)
        for start in (packed, nothing):
            cover = serve_by_packing(demand, start, rules)
            if cover is not None:
                yield improve(demand, cover, rules, passes)
        if rules.width == 1:
            return
        everything = serve_by_clusters(demand, nothing, rules, np.arange(channels))
        if everything is not None:
            yield improve(demand, everything, rules, passes)
        for share in CLUSTER_SHARES:
            groups = max(1, round(share * channels))
            if groups < channels:
                cover = self.modes_and_clusters(demand, soft, rules, groups)
                if cover is not None:
                    yield improve(demand, cover, rules, passes)

    def modes_and_clusters(
        self, demand: Demand, soft: Demand, rules: Rules, groups: int
    ) -> Cover | None:
        """Some channels found as if unicast were possible, the others as user clusters."""
        modes = self.params.channels - groups
        quick = replace(self.params, swaps=self.params.swaps // 4)
        found, choice = self.search(soft, modes, quick, None)
        members = np.zeros((demand.users, self.params.channels), dtype=np.uint8)
        members[:, :modes] = found
        free = rules._replace(hard=np.zeros_like(rules.hard))
        cover = obey_limits(soft, one_channel(members, choice.best), free)
        cover = improve(soft, cover, free, self.params.passes)
        return serve_by_clusters(demand, cover, rules, worth_least(demand, cover, groups))


def best_of(demand: Demand, rules: Rules, covers: Iterator[Cover]) -> Cover | None:
    """The cover with the highest objective among those that serve the hard rows; first wins."""
    best, value = None, -np.inf
    for cover in covers:
        after = objective(demand, cover, rules)
        if after > value and is_served(demand, cover, rules.hard):
            best, value = cover, after
    return best
