"""The maps of Bickson et al. (2010) under the same limits: covers to begin with.

With them no limit leads to a worse plan than theirs for the same rows and seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from fanplan.core.stop import Stop
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.published.params import HybridParams
from fanplan.layers.channels.published.second_step.greedy import greedy
from fanplan.layers.channels.published.second_step.items import flow_items, user_items
from fanplan.layers.channels.published.tock import tock
from fanplan.layers.channels.search.model.cover import Cover, from_map
from fanplan.layers.channels.search.model.rules import channel_traffic
from fanplan.layers.channels.search.ruled.obey import is_served
from fanplan.layers.channels.search.task import Task

ORDERS = 16
"""Most orders in which Tock's K-means places the rows; the first is that of the seed."""
WORK = 2e8
"""Audiences × channels × orders that may be spent: some tenths of a second."""
KEPT = 3
"""The cheapest of its maps that are searched on."""


class Deaf:
    """Asks another stop and tells it no cost: these maps may break a limit."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop

    def __call__(self, best_cost: float) -> bool:
        return self.stop(math.inf)


class Papers:
    """Maps of Tock et al. (2005), and what the greedy second steps make of the first."""

    def __init__(self, task: Task, seed: int, stop: Stop) -> None:
        params, problem = task.params, task.problem
        channels = max(1, min(params.channels, problem.flow_count))
        limit = 1.0 if params.unicast_limit is None else params.unicast_limit
        self.task, self.seed = task, seed
        self.params = HybridParams(channels, params.weights, unicast_limit=limit)
        self.stop = Deaf(stop)
        self.map = tock(problem, self.params, seed, self.stop)

    def multicast(self) -> tuple[Cover, ...]:
        """The cheapest maps with one channel for everything that may go by multicast."""
        covers = [cover for cover in map(self.cover, self.maps()) if self.keeps(cover)]
        return tuple(sorted(covers, key=self.task.cost)[:KEPT])

    def maps(self) -> Iterator[ChannelMap]:
        yield self.map
        work = self.task.problem.nnz * self.params.channels + 1
        orders = min(ORDERS, int(WORK / work)) - 1
        for seed in np.random.default_rng([self.seed, 1]).integers(1 << 32, size=max(0, orders)):
            if self.stop(math.inf):
                break
            yield tock(self.task.problem, self.params, int(seed), self.stop)

    def hybrids(self) -> Iterator[Cover]:
        """Greedy flow and greedy user under the unicast limit, as far as they keep the others."""
        for items in (flow_items, user_items):
            moved = greedy(items, self.task.problem, self.map, self.params, self.stop)
            cover = self.cover(moved)
            if self.keeps(cover):
                yield cover

    def cover(self, map: ChannelMap) -> Cover:
        """The cover of a map, without the rows that must not go by multicast."""
        demand = self.task.demand
        cover = from_map(map, demand.size, demand.users, self.task.params.channels)
        keep = np.repeat(demand.price > 0, np.diff(cover.starts))
        kept = np.concatenate(([0], np.cumsum(keep))).astype(np.int64)
        return Cover(cover.members, kept[cover.starts], cover.channels[keep])

    def keeps(self, cover: Cover) -> bool:
        """Whether a cover keeps the limits on users, channels and rows."""
        demand, rules = self.task.demand, self.task.rules
        joined = cover.members.sum(axis=1, dtype=np.int64)
        load = channel_traffic(demand, cover, self.task.params.channels)
        obeys = np.all(joined <= rules.limit) and np.all(load <= rules.cap)
        return bool(obeys) and is_served(demand, cover, rules.hard)
