"""How long messages take between brokers: what links say, and what is assumed where they do not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bools, Floats, Ints, Longs
from fanplan.network.brokers import Links
from fanplan.network.paths import LinksByTail, shortest_tree, ways_of
from fanplan.network.trees import distances


class Latency(NamedTuple):
    """What ways between two brokers take, and which of them are not wholly known."""

    ms: Floats
    assumed: Bools


@dataclass(frozen=True, eq=False)
class Timing:
    """Latencies between brokers, by the links that are given; None: any two may be linked.

    Where no latency is known a link takes ``hop_ms``.
    """

    brokers: int
    links: Links | None
    hop_ms: float

    def over_links(self, ends: Ints) -> Latency:
        """Of links, rows of two positions: their own latency, or if not given a way's."""
        one, other = np.sort(ends, axis=1).astype(np.int64).T
        if self.links is None:
            return self.on_ways(one, other)
        key = self.links.a.astype(np.int64) * self.brokers + self.links.b
        order, wanted = np.argsort(key, kind="stable"), one * self.brokers + other
        given = np.isin(wanted, key)
        # Given links ask for the way from broker 0 to itself, for which no tree is searched.
        taken = self.on_ways(np.where(given, 0, one), np.where(given, 0, other))
        at = order[np.searchsorted(key, wanted[given], sorter=order)]
        taken.ms[given], taken.assumed[given] = self._each.ms[at], self._each.assumed[at]
        return taken

    def on_ways(self, one: Ints | Longs, other: Ints | Longs) -> Latency:
        """From some brokers to others on the shortest ways over links, 0 from one to itself.

        Where no links lead, a way takes as long as one link of which nothing is known. O(different
        brokers in ``one`` × links × log links).
        """
        taken = Latency(np.where(one == other, 0.0, self.hop_ms), one != other)
        if self.links is None:
            return taken
        order = np.argsort(one, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(one[order])) + 1):
            if (one[rows] != other[rows]).any():
                self._fill(taken, rows, int(one[rows[0]]), other[rows])
        return taken

    def _fill(self, taken: Latency, rows: Longs, root: int, targets: Ints | Longs) -> None:
        wanted = np.zeros(self.brokers, bool)
        wanted[targets] = True
        tree = shortest_tree(root, self._ways, wanted)
        there = tree.depth[targets] >= 0
        taken.ms[rows[there]] = distances(tree, self._each.ms)[targets[there]]
        unknown = distances(tree, self._each.assumed.astype(np.float64))
        taken.assumed[rows[there]] = unknown[targets[there]] > 0

    @cached_property
    def _each(self) -> Latency:
        """Of the given links, once for each direction."""
        assert self.links is not None
        size = 2 * len(self.links.a)
        if not self.links.timed:
            return Latency(np.full(size, self.hop_ms), np.ones(size, bool))
        assumed = self.links.assumed
        unknown = np.zeros(size, bool) if assumed is None else np.tile(assumed, 2)
        return Latency(np.tile(self.links.latency_ms, 2), unknown)

    @cached_property
    def _ways(self) -> LinksByTail:
        assert self.links is not None
        return ways_of(*self.links.both_ways(), self._each.ms, self.brokers)

    @property
    def assumed_ms(self) -> float:
        """What is assumed of a link without a latency."""
        if self.links is None or not self.links.timed or self.links.assumed is None:
            return self.hop_ms
        return float(self.links.latency_ms[self.links.assumed].max(initial=0.0))
