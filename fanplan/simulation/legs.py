"""Where brokers end: the last part of the way to subscribers, and how long it all takes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import Floats, Longs, expanded
from fanplan.network.carried import ratio

CHUNK = 1 << 22
"""Deliveries that are looked at together."""

PERCENTILES = (50, 90, 99)
"""Of delays, that are told."""

DIGITS = 6
"""Delays that differ by less than a nanosecond are the same."""


@dataclass(frozen=True, eq=False)
class DelayCounts:
    """This many deliveries (``count``) take each of the delays ``ms``, which ascend."""

    ms: Floats
    count: Floats

    @property
    def mean_ms(self) -> float:
        return ratio(float(np.dot(self.ms, self.count)), float(self.count.sum()))

    def within_ms(self, percent: float) -> float:
        """The delay that this many of a hundred deliveries do not exceed; 0 without any."""
        if not len(self.ms):
            return 0.0
        below = np.cumsum(self.count)
        at = np.searchsorted(below, below[-1] * (percent / 100.0) * (1 - 1e-12))
        return float(self.ms[min(int(at), len(self.ms) - 1)])

    def figures(self) -> dict[str, float]:
        """In numbers, as JSON."""
        return {
            "deliveries": float(self.count.sum()),
            "delivered_mean_ms": self.mean_ms,
            **{f"delivered_p{percent}_ms": self.within_ms(percent) for percent in PERCENTILES},
            "delivered_max_ms": float(self.ms.max(initial=0.0)),
        }


def delay_counts(ms: Floats, count: Floats) -> DelayCounts:
    """Equal delays as one."""
    different, where = np.unique(np.round(ms, DIGITS), return_inverse=True)
    return DelayCounts(different, np.bincount(where, count, len(different)).astype(np.float64))


@dataclass(frozen=True, eq=False)
class Legs:
    """Last parts of ways: from visit v ``starts[v]:starts[v + 1]``, to ``people`` after ``ms``."""

    starts: Longs
    ms: Floats
    people: Longs

    def after(self, visits: Longs, delays: Floats, messages: Floats) -> DelayCounts:
        """What deliveries take in all if this many messages are at visits after these delays."""
        total = DelayCounts(np.empty(0), np.empty(0))
        ends = np.cumsum(np.diff(self.starts)[visits])
        cuts = np.searchsorted(ends, np.arange(CHUNK, ends[-1] if len(ends) else 0, CHUNK))
        for part in np.split(np.arange(len(visits)), cuts):
            one = self._each(visits[part], delays[part], messages[part])
            total = delay_counts(
                np.concatenate((total.ms, one.ms)), np.concatenate((total.count, one.count))
            )
        return total

    def _each(self, visits: Longs, delays: Floats, messages: Floats) -> DelayCounts:
        which, leg = expanded(self.starts, visits)
        return delay_counts(delays[which] + self.ms[leg], messages[which] * self.people[leg])


def legs_of(visit: Longs, ms: Floats, people: Longs, visits: int) -> Legs:
    """Legs by the visits they start at."""
    order = np.argsort(visit, kind="stable")
    starts = np.searchsorted(visit[order], np.arange(visits + 1))
    return Legs(starts.astype(np.int64), ms[order], people[order])
