"""An allocation of clients to brokers, and what it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fanplan.core.arrays import NONE, Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.network.brokers import ClientProblem

Load = Literal["estimate", "exact"]


@dataclass(frozen=True, eq=False)
class AllocationParams:
    """How full brokers may be: up to ``lcf`` × capacity less what is reserved (messages/s).

    ``load`` says how it is measured: by the estimate of Tajuddin (2011, Eq. 6.2), or exactly, where
    each message counts once at a broker however many of its clients want it.
    """

    lcf: float = 0.75
    load: Load = "estimate"
    reserved: Floats | None = None

    def __post_init__(self) -> None:
        if not 0 < self.lcf <= 1:
            raise InputError(Problem("lcf", f"{self.lcf:g} is not a share", "Use more than 0 to 1"))

    def room(self, problem: ClientProblem) -> Floats:
        """Messages per second of clients that each broker may process."""
        without = np.nonzero(~(problem.capacity > 0))[0]
        if len(without):
            name = problem.brokers[int(without[0])].as_py()
            what = f"broker {name!r} has no capacity"
            raise InputError(Problem("brokers", what, "Give a capacity above 0, or leave it out"))
        left = problem.capacity * self.lcf
        return left if self.reserved is None else np.maximum(left - self.reserved, 0.0)


@dataclass(frozen=True, eq=False)
class Allocation:
    """The broker of each client, as positions; clients are the publishers, then the subscribers.

    ``estimate`` and ``exact`` are the loads of all brokers (messages/s). ``lone`` are clients too
    big for the broker they are at: alone there, as no broker left could take them.
    """

    broker: Ints
    estimate: Floats
    exact: Floats
    lone: Longs
    used: Longs
    """brokers with clients, in the order in which they were deployed"""

    @property
    def brokers(self) -> int:
        """Number of brokers used."""
        return len(self.used)

    def moved_from(self, origin: Ints) -> int:
        """Clients that had a broker in ``origin`` (NONE: had none) and are not there."""
        return int(((origin != NONE) & (origin != self.broker)).sum())
