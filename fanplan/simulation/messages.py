"""The messages that enter a simulation, and when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import Floats, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.network.brokers import Routes


@dataclass(frozen=True, eq=False)
class Messages:
    """Message i enters at ``time_ms[i]`` at the source of route ``route[i]``.

    A message with ``control`` set travels like a publication and loads the same brokers and links,
    but goes first, is counted apart, and its arrivals are no deliveries.
    """

    time_ms: Floats
    route: Longs
    control: np.ndarray

    def __post_init__(self) -> None:
        if not len(self.time_ms) == len(self.route) == len(self.control):
            what = f"{len(self.time_ms)} times, {len(self.route)} routes, {len(self.control)} marks"
            raise InputError(Problem("messages", what, "Give as many of each"))
        if not (np.isfinite(self.time_ms) & (self.time_ms >= 0)).all():
            what = "a time is negative or not finite"
            raise InputError(Problem("messages", what, "Give milliseconds from 0"))

    def __len__(self) -> int:
        return len(self.route)

    def in_order(self) -> Messages:
        """By time; at one time control messages first, the rest as they are."""
        order = np.lexsort((~self.control, self.time_ms))
        return Messages(self.time_ms[order], self.route[order], self.control[order])


def publications(time_ms: Floats, route: Longs) -> Messages:
    """Messages that are all publications."""
    time = np.asarray(time_ms, np.float64)
    return Messages(time, np.asarray(route, np.int64), np.zeros(len(route), bool))


def publications_of(routes: Routes, seconds: float, seed: int) -> Messages:
    """As many publications as the routes have messages, at random times of the window.

    Where a total is no whole number, the rest is the chance of one more. O(messages).
    """
    rest, timing = (np.random.default_rng((seed, purpose)) for purpose in range(2))
    count = np.floor(routes.messages + rest.random(len(routes))).astype(np.int64)
    route = np.repeat(np.arange(len(routes)), count)
    return publications(timing.uniform(0.0, 1000.0 * seconds, len(route)), route)
