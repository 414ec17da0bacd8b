"""Are so many brokers enough? Yes with an allocation, no with a bound, or unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fanplan.errors import InfeasibleError, InputError, Problem
from fanplan.planners.allocation.allocation import Allocation, AllocationParams
from fanplan.planners.allocation.best import best_allocation
from fanplan.planners.allocation.bound import fewest_brokers
from fanplan.planners.stop import Stop
from fanplan.problem.overlay import ClientProblem


@dataclass(frozen=True, eq=False)
class Enough:
    """``answer``, the proven least number of brokers, and the best allocation if there is one."""

    answer: Literal["yes", "no", "unknown"]
    bound: int
    allocation: Allocation | None


def enough(
    problem: ClientProblem, brokers: int, params: AllocationParams, seed: int, stop: Stop
) -> Enough:
    """Whether clients fit on ``brokers`` of the given brokers, nobody being too big for theirs."""
    if brokers < 1:
        raise InputError(Problem("brokers", f"{brokers} hold nobody", "Ask for at least 1"))
    bound = fewest_brokers(problem, params)
    if bound > min(brokers, len(problem.brokers)):
        return Enough("no", bound, None)
    try:
        found = best_allocation(problem, params, seed, stop)
    except InfeasibleError:
        return Enough("unknown", bound, None)
    fits = found.brokers <= brokers and len(found.lone) == 0
    return Enough("yes" if fits else "unknown", bound, found)
