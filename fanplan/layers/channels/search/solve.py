"""One cover for one demand under rules: search freely, obey, improve."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from fanplan.core.arrays import Bytes
from fanplan.core.stop import Stop
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.search.effort import Effort
from fanplan.layers.channels.search.free.search import search_free
from fanplan.layers.channels.search.model.cover import Cover, empty_cover, one_channel
from fanplan.layers.channels.search.model.demand import Demand
from fanplan.layers.channels.search.model.rules import (
    CoverRules,
    improve_cover,
    objective,
)
from fanplan.layers.channels.search.ruled.exchange import exchange, reopen
from fanplan.layers.channels.search.ruled.flips import can_flip, flip_members
from fanplan.layers.channels.search.ruled.obey import (
    is_served,
    obey_limits,
    serve_by_clusters,
    serve_by_packing,
    worth_least,
)

CLUSTER_SHARES = (0.6, 0.66, 0.72, 0.9)
"""Parts of the channels that are tried as user clusters if rows must not go by unicast."""
LOOK = 2
"""Passes that a cover gets before the best is chosen."""
DEEP = 3
"""The best covers that are searched on if none may go by unicast; the best of them is kept."""
REOPENED = 2
"""Times ``swaps``: channels that are reopened in each of them."""
LARGE = 60_000
"""Pairs of row and subscriber from which only the best cover is searched on, and a quarter as
long: each step costs more there and gains less."""


def unknown_cost(_cover: Cover) -> float:
    return math.inf


@dataclass(frozen=True)
class Solver:
    """Holds what stays the same while demand prices and rules vary.

    ``cost`` is what a cover that obeys costs, as far as that is known. ``known`` are covers that
    obey and serve everybody, beside those found.
    """

    effort: Effort
    cost: Callable[[Cover], float] = unknown_cost
    known: tuple[Cover, ...] = ()

    @property
    def params(self) -> KmodesParams:
        result: KmodesParams = self.effort.params
        return result

    @property
    def stop(self) -> Stop:
        return self.effort.stop

    def with_swaps(self, most: int) -> Solver:
        """The same with at most so many swaps: quicker, for looking around."""
        return replace(self, effort=self.effort.with_swaps(most))

    def solve(
        self,
        demand: Demand,
        soft: Demand,
        rules: CoverRules,
        members: Bytes | None = None,
        deep: int = DEEP,
    ) -> Cover | None:
        """The best cover found, or None if no way was found to obey.

        ``soft`` is the demand with the price of hard rows as if unicast were possible.
        """
        if rules.hard.any():
            covers = self.hard_covers(demand, soft, rules, members)
            best = self.best_hard(demand, rules, covers, deep)
        else:
            best = self.improved(demand, self.free_cover(demand, rules, members), rules)
        if best is None:
            return None
        self.stop(self.cost(best))
        return exchange(demand, best, rules, self.params.swaps, self.effort)

    def free_cover(self, demand: Demand, rules: CoverRules, members: Bytes | None) -> Cover:
        """Search with one channel per row, then obey."""
        found, choice = search_free(demand, self.params.channels, self.effort, members)
        return obey_limits(demand, one_channel(found, choice.best), rules)

    def hard_covers(
        self, demand: Demand, soft: Demand, rules: CoverRules, members: Bytes | None
    ) -> Iterator[Cover]:
        """Covers that serve all hard rows: packed, by clusters alone, by modes and clusters."""
        channels = self.params.channels
        nothing = empty_cover(demand.size, demand.users, channels)
        for start in (self.free_cover(demand, rules, members), nothing):
            cover = serve_by_packing(demand, start, rules)
            if cover is not None:
                yield improve_cover(demand, cover, rules, LOOK, self.stop)
        for cover in self.known:
            yield improve_cover(demand, cover, rules, LOOK, self.stop)
        # Clusters serve a row by one channel per group, so they need several channels per row.
        if rules.width == 1:
            return
        everything = serve_by_clusters(demand, nothing, rules, np.arange(channels))
        if everything is not None:
            yield improve_cover(demand, everything, rules, LOOK, self.stop)
        for share in CLUSTER_SHARES:
            groups = max(1, round(share * channels))
            if groups < channels:
                cover = self.modes_and_clusters(demand, soft, rules, groups)
                if cover is not None:
                    yield improve_cover(demand, cover, rules, LOOK, self.stop)

    def best_hard(
        self, demand: Demand, rules: CoverRules, covers: Iterator[Cover], deep: int
    ) -> Cover | None:
        """The best of the covers after the search has gone on from the best few."""
        best = ranked_covers(demand, rules, covers, self.enough)
        if not best:
            return None
        if not deep or not can_flip(demand, best[0], rules):
            return self.improved(demand, best[0], rules)
        most = deep if len(demand.audience) < LARGE else 1
        deeper = (self.deepened(demand, cover, rules) for cover in best[:most])
        return best_of(demand, rules, deeper, self.enough)

    def enough(self, cover: Cover) -> bool:
        return self.stop(self.cost(cover))

    def deepened(self, demand: Demand, cover: Cover, rules: CoverRules) -> Cover:
        """A better cover by reopened channels, other user clusters and flips."""
        cover = self.improved(demand, cover, rules)
        trials = REOPENED * self.params.swaps // (1 if len(demand.audience) < LARGE else 4)
        cover = reopen(demand, cover, rules, trials, self.effort)
        others = self.reclustered(demand, cover, rules)
        return best_of(demand, rules, (cover, *others), self.enough) or cover

    def reclustered(self, demand: Demand, cover: Cover, rules: CoverRules) -> Iterator[Cover]:
        """The cover with other user clusters in the place of its smallest channels."""
        smallest = np.argsort(cover.members.sum(axis=0, dtype=np.int64), kind="stable")
        for share in CLUSTER_SHARES:
            freed = np.sort(smallest[: max(1, round(share * len(smallest)))])
            other = serve_by_clusters(demand, cover, rules, freed)
            if other is not None:
                yield self.improved(demand, other, rules)

    def improved(self, demand: Demand, cover: Cover, rules: CoverRules) -> Cover:
        """Both steps, and flips where nobody may be left to unicast."""
        passes = self.params.passes
        cover = improve_cover(demand, cover, rules, passes, self.stop)
        if not can_flip(demand, cover, rules) or self.stop(self.cost(cover)):
            return cover
        cover = flip_members(demand, cover, rules)
        return improve_cover(demand, cover, rules, passes, self.stop)

    def modes_and_clusters(
        self, demand: Demand, soft: Demand, rules: CoverRules, groups: int
    ) -> Cover | None:
        """Some channels found as if unicast were possible, the others as user clusters."""
        modes = self.params.channels - groups
        found, choice = search_free(soft, modes, self.effort)
        members = np.zeros((demand.users, self.params.channels), dtype=np.uint8)
        members[:, :modes] = found
        free = rules._replace(hard=np.zeros_like(rules.hard))
        cover = obey_limits(soft, one_channel(members, choice.best), free)
        cover = improve_cover(soft, cover, free, self.params.passes, self.stop)
        return serve_by_clusters(demand, cover, rules, worth_least(demand, cover, groups))


def best_of(
    demand: Demand,
    rules: CoverRules,
    covers: Iterable[Cover],
    enough: Callable[[Cover], bool] | None = None,
) -> Cover | None:
    """The cover with the highest objective among those that serve the hard rows; first wins.

    ``enough`` is asked with the best so far whether it must do.
    """
    return next(iter(ranked_covers(demand, rules, covers, enough)), None)


def ranked_covers(
    demand: Demand,
    rules: CoverRules,
    covers: Iterable[Cover],
    enough: Callable[[Cover], bool] | None = None,
) -> list[Cover]:
    """The covers that serve the hard rows, highest objective first, as far as was looked."""
    found: list[tuple[float, int, Cover]] = []
    for cover in covers:
        if is_served(demand, cover, rules.hard):
            found.append((-objective(demand, cover, rules), len(found), cover))
        if found and enough is not None and enough(min(found)[2]):
            break
    return [cover for _, _, cover in sorted(found, key=lambda item: item[:2])]
