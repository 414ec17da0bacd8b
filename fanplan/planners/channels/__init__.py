"""Channel planners: one file per method, and the table of methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fanplan import __version__
from fanplan.errors import InputError, Problem
from fanplan.evaluation.bounds import lower_bound
from fanplan.plan.analytic import analytic_ledger, perfect
from fanplan.plan.types import ChannelMap, Plan
from fanplan.planners.channels.broadcast import broadcast
from fanplan.planners.channels.params import ChannelParams, UnicastParams, require_flows
from fanplan.planners.channels.random_map import random_map
from fanplan.planners.channels.round_robin import round_robin
from fanplan.planners.channels.unicast import unicast
from fanplan.planners.stop import Stop, never
from fanplan.problem.interest import InterestProblem, Rows


class Planner(Protocol):
    """A pure function: the same problem, parameters and seed give the same map."""

    def __call__(
        self, problem: InterestProblem, params: ChannelParams, seed: int, stop: Stop
    ) -> ChannelMap: ...


@dataclass(frozen=True)
class Method:
    """One way to plan channels. ``rows`` is what a row of its problem must be."""

    name: str
    planner: Planner
    params: type[ChannelParams]
    rows: Rows
    meaning: str


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("broadcast", broadcast, ChannelParams, "class", "one channel carries everything"),
        Method("round-robin", round_robin, ChannelParams, "flow", "flows dealt in turn"),
        Method("random", random_map, ChannelParams, "flow", "a channel drawn for each flow"),
        Method("unicast", unicast, UnicastParams, "class", "everything point to point"),
    )
}


def find_method(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        known = ", ".join(METHODS)
        raise InputError(Problem("method", f"{name!r} is not known", f"Use one of: {known}"))
    return METHODS[name]


def plan_channels(
    problem: InterestProblem,
    method: Method,
    params: ChannelParams,
    seed: int = 0,
    stop: Stop = never,
) -> Plan:
    """Run a method on a problem with its kind of rows; add the ledger and the bound."""
    require_flows(problem)
    map = method.planner(problem, params, seed, stop)
    return Plan(
        map=map,
        rows=problem.rows,
        source=problem.source,
        method=method.name,
        params=params.recorded(),
        weights=params.weights,
        seed=seed,
        ledger=analytic_ledger(problem, map),
        perfect=perfect(problem, params.weights),
        bound=lower_bound(problem, params.weights, params.channels),
        flows=problem.flow_count,
        audience_classes=problem.class_count,
        seconds=problem.seconds,
        version=__version__,
    )
