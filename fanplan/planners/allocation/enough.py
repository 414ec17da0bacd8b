"""Are so many brokers enough? Yes with an allocation, no with a bound, or unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fanplan.errors import InfeasibleError, InputError, Problem
from fanplan.planners.allocation.allocation import Allocation, AllocationParams
from fanplan.planners.allocation.best import best_allocation
from fanplan.planners.allocation.bound import fewest_brokers, least_impact
from fanplan.planners.allocation.loads import clients_of
from fanplan.planners.stop import Stop
from fanplan.problem.interest import Longs
from fanplan.problem.overlay import ClientProblem


@dataclass(frozen=True, eq=False)
class Enough:
    """``answer``, and what it rests on.

    ``bound`` is the proven least number of brokers. ``allocation`` is the best one found, if any.
    ``would_do`` is a number of brokers that is enough, with more of the largest kind if it exceeds
    those given. ``too_big`` are clients that no broker can hold: with any, no number is enough,
    and ``capacity`` is what the largest of them needs (messages/s).
    """

    answer: Literal["yes", "no", "unknown"]
    bound: int
    allocation: Allocation | None
    would_do: int | None
    too_big: Longs
    capacity: float


def enough(
    problem: ClientProblem, brokers: int, params: AllocationParams, seed: int, stop: Stop
) -> Enough:
    """Whether clients fit on ``brokers`` of the given brokers, nobody being too big for theirs."""
    if brokers < 1:
        raise InputError(Problem("brokers", f"{brokers} hold nobody", "Ask for at least 1"))
    bound = fewest_brokers(problem, params)
    least = least_impact(problem, params, clients_of(problem))
    too_big = np.flatnonzero(least > params.room(problem).max() * (1 + 1e-9))
    capacity = float(least.max(initial=0.0)) / params.lcf
    found, would_do = searched(problem, params, seed, stop)
    if bound > min(brokers, len(problem.brokers)) or len(too_big):
        return Enough("no", bound, found, None if len(too_big) else would_do, too_big, capacity)
    fits = found is not None and found.brokers <= brokers and len(found.lone) == 0
    return Enough("yes" if fits else "unknown", bound, found, would_do, too_big, capacity)


def searched(
    problem: ClientProblem, params: AllocationParams, seed: int, stop: Stop
) -> tuple[Allocation | None, int | None]:
    """The best allocation, and a number of brokers that is enough for everybody to have one."""
    try:
        found = best_allocation(problem, params, seed, stop)
    except InfeasibleError as error:
        return None, int(error.value)
    return found, found.brokers if len(found.lone) == 0 else None
