"""The table of channel methods, and how one is run on a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fanplan.core.errors import InputError, Problem
from fanplan.core.options import GIVEN
from fanplan.core.stop import Stop, never
from fanplan.core.version import __version__
from fanplan.data.interest import InterestProblem, Rows, load_interest
from fanplan.layers.channels.bounds import best_bounds
from fanplan.layers.channels.ledger import analytic_ledger, perfect
from fanplan.layers.channels.lone import counted_fraction, kept_by, tidied
from fanplan.layers.channels.map import ChannelMap, ChannelsSection
from fanplan.layers.channels.method_params import (
    KmodesParams,
    MethodParams,
    UnicastParams,
    require_enough_flows,
    require_traffic,
)
from fanplan.layers.channels.params import ChannelPrices, ChannelsParams
from fanplan.layers.channels.published.exact import ExactParams, exact
from fanplan.layers.channels.published.genetic.params import AtomicParams, GeneticParams
from fanplan.layers.channels.published.genetic.plan import genetic, genetic_atomic
from fanplan.layers.channels.published.genetic.problem import (
    SubscriptionProblem,
    load_subscriptions,
)
from fanplan.layers.channels.published.interest_vectors import bmd, two_phase_means
from fanplan.layers.channels.published.interior_point import interior_point
from fanplan.layers.channels.published.merge import flow_merge, user_merge
from fanplan.layers.channels.published.params import (
    BmdParams,
    FirstStepParams,
    HybridParams,
    ReverseParams,
)
from fanplan.layers.channels.published.plain import (
    all_by_unicast,
    broadcast,
    random_map,
    round_robin,
)
from fanplan.layers.channels.published.second_step.reverse import reverse
from fanplan.layers.channels.published.second_step.two_step import find_second_step, hybrid
from fanplan.layers.channels.published.tock import tock
from fanplan.layers.channels.search.kmodes import kmodes

Input = InterestProblem | SubscriptionProblem

# A pure function of problem, parameters, seed and stop: the same give the same map.
Planner = Callable[[Any, Any, int, Stop], ChannelMap]


@dataclass(frozen=True)
class Method:
    """One way to plan channels. ``rows`` is what a row of its problem must be.

    A *first step* leaves everything on channels, and a second step may follow it. A method that
    maps ``subscriptions`` needs the subscription problem instead of the interest problem.
    """

    name: str
    planner: Planner
    params: type[MethodParams]
    rows: Rows
    meaning: str
    first_step: bool = False
    subscriptions: bool = False


class Run(NamedTuple):
    """A method with its parameters and its kind of rows, ready to run on a dataset."""

    method: Method
    params: MethodParams
    rows: Rows


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("kmodes", kmodes, KmodesParams, "class", "multicast and unicast decided together"),
        Method("broadcast", broadcast, MethodParams, "class", "one channel carries everything"),
        Method("round-robin", round_robin, MethodParams, "flow", "flows dealt in turn", True),
        Method("random", random_map, MethodParams, "flow", "a channel drawn for each flow", True),
        Method("tock", tock, FirstStepParams, "flow", "K-means on the true cost", True),
        Method(
            "lloyd",
            two_phase_means,
            FirstStepParams,
            "flow",
            "K-means in two phases, no rates",
            True,
        ),
        Method("bmd", bmd, BmdParams, "flow", "binary matrix decomposition", True),
        Method(
            "interior-point", interior_point, FirstStepParams, "flow", "relaxed and rounded", True
        ),
        Method("flow-merge", flow_merge, MethodParams, "class", "flows merged pair by pair", True),
        Method("user-merge", user_merge, MethodParams, "class", "users merged pair by pair", True),
        Method(
            "genetic", genetic, GeneticParams, "flow", "subscriptions mapped, evolved", False, True
        ),
        Method("genetic-atomic", genetic_atomic, AtomicParams, "flow", "flows mapped, evolved"),
        Method("reverse", reverse, ReverseParams, "flow", "all unicast, then flows to channels"),
        Method("exact", exact, ExactParams, "class", "the optimum, for tiny problems"),
        Method("unicast", all_by_unicast, UnicastParams, "class", "everything point to point"),
    )
}


def find_method(name: str, second_step: str | None = None) -> Method:
    """The method of that name, followed by a second step that moves a part of it to unicast."""
    if name not in METHODS:
        known = ", ".join(METHODS)
        raise InputError(Problem("method", f"{name!r} is not known", f"Use one of: {known}"))
    first = METHODS[name]
    if second_step is None:
        return first
    second = find_second_step(second_step)
    if not first.first_step:
        able = ", ".join(m.name for m in METHODS.values() if m.first_step)
        what = f"{second_step} cannot follow {name}, which decides on unicast itself"
        raise InputError(Problem("unicast", what, f"Leave it out, or use one of: {able}"))
    both = f"{name}+{second_step}"
    return Method(
        both, hybrid(first.planner, second_step), HybridParams, first.rows, second.meaning
    )


def asked_of(method: Method, params: MethodParams) -> ChannelsParams:
    """What was asked of a method that was told these parameters."""
    name, _, second = method.name.partition("+")
    weights, told = params.weights, params.recorded()
    changes = ("start", "change_price", "max_changes")
    if told.pop("start", False):
        told["start"] = GIVEN
    else:
        told = {name: value for name, value in told.items() if name not in changes}
    prices = ChannelPrices(weights.w1, weights.w2, weights.w3)
    return ChannelsParams.given(
        told | {"method": name, "unicast": second or None, "prices": prices}
    )


def load_problem(dataset: Path, method: Method, rows: Rows | None = None) -> Input:
    """The problem that the method takes, with its kind of rows unless others are asked for."""
    if method.subscriptions:
        return load_subscriptions(dataset)
    return load_interest(dataset, rows or method.rows)


def interest_of(problem: Input) -> InterestProblem:
    return problem.interest if isinstance(problem, SubscriptionProblem) else problem


def channels_by_method(
    problem: Input, method: Method, params: MethodParams, seed: int = 0, stop: Stop = never
) -> ChannelsSection:
    """Run a method on a problem with its kind of rows; add the ledger and the bounds."""
    interest = interest_of(problem)
    require_traffic(interest)
    require_enough_flows(interest, params.channels)
    return planned(interest, method, params, seed, method.planner(problem, params, seed, stop))


def planned(
    problem: InterestProblem, method: Method, params: MethodParams, seed: int, map: ChannelMap
) -> ChannelsSection:
    """The plan of a map that the method made with these parameters and this seed."""
    return told(problem, method, params, seed, tidied(problem, map, kept_by(params)))


def told(
    problem: InterestProblem, method: Method, params: MethodParams, seed: int, map: ChannelMap
) -> ChannelsSection:
    """The plan of a map as it is."""
    bound, single = best_bounds(problem, params.weights, params.channels)
    return ChannelsSection(
        map=map,
        rows=problem.rows,
        source=problem.source,
        params=asked_of(method, params),
        seed=seed,
        ledger=analytic_ledger(problem, map),
        perfect=perfect(problem, params.weights),
        bound=bound,
        single_bound=single,
        counted=counted_fraction(problem, map),
        flows=problem.flow_count,
        audience_classes=problem.class_count,
        seconds=problem.seconds,
        version=__version__,
    )
