"""Simulation of a plan with groups: matched once, over shortcuts; the rest by default routing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fanplan.core.errors import InputError, Problem
from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.ingest.derived import derived
from fanplan.layers.groups.stages.make import make_group_stages
from fanplan.simulation.simulated import Simulated, Times, choose_times, require_traffic

if TYPE_CHECKING:
    from fanplan.layers.groups.problem.groups import GroupsProblem
    from fanplan.network.brokers import OverlayProblem
    from fanplan.plan.stored import StoredPlan
    from fanplan.simulation.messages import Messages
    from fanplan.simulation.params import SimulationParams


def simulate_groups(
    plan: StoredPlan,
    dataset: Dataset,
    params: SimulationParams,
    times: Times | None,
    speed: float,
    seed: int,
    engine: Engine,
) -> Simulated:
    """Send traffic over the trees and the groups of a plan; every hop takes the latency given."""
    from fanplan.layers.groups.carried import carried_groups
    from fanplan.layers.groups.groups import group_ways
    from fanplan.layers.groups.groups_agreement import groups_agreement
    from fanplan.simulation.simulate import require_capacity, run

    chosen = times_of_groups(plan, dataset, times)
    make_traffic(plan, dataset, chosen, engine)
    with engine.progress.stage(f"simulation, {chosen} times") as stage:
        problem = carried_groups(plan, dataset.path).problem
        overlay = brokers_of(problem, dataset)
        require_capacity(overlay)
        everything = np.ones(problem.size, bool)
        network, ways = group_ways(problem, everything, plan.groups.shortcuts, params.latency_ms)
        messages = entering(problem, dataset, chosen, speed, seed)
        result = run(network, ways, overlay.capacity, messages, params)
        stage.rows(result.events)
    agreed = groups_agreement(plan.groups, problem, ways, messages, result, params)
    trees = len(problem.trees.root)
    return Simulated(result, overlay, trees, params, chosen, speed, seed, agreed)


def times_of_groups(plan: StoredPlan, dataset: Dataset, asked: Times | None) -> Times:
    """Times are known by destinations, not by cells: groups of cells draw them."""
    if plan.groups.grouping.cells is None:
        return choose_times(dataset, asked)
    if asked == "measured":
        what = "times of messages in cells are not known"
        raise InputError(Problem("times", what, "Draw them"))
    return choose_times(dataset, "drawn")


def make_traffic(plan: StoredPlan, dataset: Dataset, times: Times, engine: Engine) -> None:
    from fanplan.layers.overlay.stages.routes import broker_sendings

    make_group_stages(dataset, plan.groups.grouping, engine)
    if times == "measured":
        broker_sendings(derived(dataset, engine))


def entering(
    problem: GroupsProblem, dataset: Dataset, times: Times, speed: float, seed: int
) -> Messages:
    """The messages that enter; the first measured time is 0."""
    from fanplan.simulation.messages import publications, publications_of
    from fanplan.simulation.traffic import read_sendings

    require_traffic(problem.routes, dataset)
    if times == "drawn":
        return publications_of(problem.routes, dataset.manifest.seconds / speed, seed)
    time, route = read_sendings(dataset.path, "sendings", problem.routes)
    return publications((time - time[0]) * (1000.0 / speed), route)


def brokers_of(problem: GroupsProblem, dataset: Dataset) -> OverlayProblem:
    """The brokers with their capacities, as figures of a run are told by."""
    from fanplan.network.brokers import OverlayProblem, no_similarity
    from fanplan.network.dataset import read_brokers

    brokers, manifest = read_brokers(dataset.path), dataset.manifest
    return OverlayProblem(
        brokers=brokers.names,
        capacity=brokers.capacity,
        cost=brokers.cost,
        routes=problem.routes,
        similarity=no_similarity(len(brokers.names)),
        links=None,
        seconds=manifest.seconds,
        source=manifest.key,
    )
