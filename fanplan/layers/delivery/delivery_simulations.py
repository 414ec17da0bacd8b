"""Simulation of a plan with delivery: what its channels and direct unicast leave to brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fanplan.core.errors import InputError, Problem
from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.ingest.derived import derived
from fanplan.layers.groups.simulated import brokers_of
from fanplan.simulation.simulated import Simulated, Times, choose_times, require_traffic

if TYPE_CHECKING:
    from fanplan.layers.delivery.simulated import LeftToBrokers
    from fanplan.plan.stored import StoredPlan
    from fanplan.simulation.messages import Messages
    from fanplan.simulation.params import SimulationParams

NOTES = (
    "Simulated is what the plan leaves to brokers, until the broker that sends it on to channels "
    "or subscribers. Channels, last hops and direct unicast take no time here.",
    "Every hop takes the latency given, a shortcut too.",
)


def simulate_delivery(
    plan: StoredPlan,
    dataset: Dataset,
    params: SimulationParams,
    times: Times | None,
    speed: float,
    seed: int,
    engine: Engine,
) -> Simulated:
    """Send traffic through the brokers of a plan, and once more as if there were only trees."""
    from fanplan.layers.delivery.simulated import left_to_brokers
    from fanplan.layers.groups.groups import group_ways
    from fanplan.layers.groups.groups_agreement import groups_agreement
    from fanplan.simulation.simulate import require_capacity, run

    require_brokers(plan)
    chosen = choose_times(dataset, times)
    make_traffic(dataset, chosen, engine)
    with engine.progress.stage(f"simulation, {chosen} times") as stage:
        left = left_to_brokers(plan, dataset.path)
        problem, naive, hop = left.problem, left.naive, params.latency_ms
        overlay = brokers_of(problem, dataset)
        require_capacity(overlay)
        messages = entering(plan, left, dataset, chosen, speed, seed)
        network, ways = group_ways(problem, left.selected, plan.groups.shortcuts, hop)
        result = run(network, ways, overlay.capacity, messages, params)
        bare = group_ways(naive, np.zeros(naive.size, bool), False, hop)
        before = run(*bare, overlay.capacity, messages, params)
        stage.rows(result.events + before.events)
    agreed = groups_agreement(plan.groups, problem, ways, messages, result, params)
    return Simulated(
        result, overlay, plan.overlay.trees, params, chosen, speed, seed, agreed, before, NOTES
    )


def require_brokers(plan: StoredPlan) -> None:
    if not plan.record.groups:
        what = "has no brokers: its channels and unicast take no time in a simulation"
        raise InputError(Problem(str(plan.folder), what, "Replay it instead"))


def make_traffic(dataset: Dataset, times: Times, engine: Engine) -> None:
    from fanplan.layers.delivery.stages import senders

    source = derived(dataset, engine)
    senders.senders(source)
    if times == "measured":
        senders.sender_times(source)


def entering(
    plan: StoredPlan, left: LeftToBrokers, dataset: Dataset, times: Times, speed: float, seed: int
) -> Messages:
    """The messages of all parcels, which are the routes of both systems."""
    from fanplan.layers.delivery.simulated import measured_messages
    from fanplan.simulation.messages import publications_of

    require_traffic(left.problem.routes, dataset)
    if times == "drawn":
        return publications_of(left.problem.routes, dataset.manifest.seconds / speed, seed)
    return measured_messages(plan, dataset.path, left.delivery, speed)
