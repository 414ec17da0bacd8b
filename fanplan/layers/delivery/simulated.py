"""A plan with delivery as the simulator wants it: what is left to brokers, and the naive system."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fanplan.core.arrays import Bools, Floats, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.ingest.derived import derived
from fanplan.data.reader import INGEST_AGAIN, read_stage
from fanplan.layers.channels.map import map_pairs
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.delivery.problem import DeliveryProblem, client_homes
from fanplan.layers.delivery.read import StoredDelivery, read_delivery
from fanplan.layers.delivery.recount import recounted_routes
from fanplan.layers.groups.carried import group_keys, stored_keys
from fanplan.layers.groups.problem.build import exact_groups
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.read import read_groups
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.groups.simulated import brokers_of
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.network.dataset import publisher_names, read_brokers
from fanplan.plan.stored import StoredPlan
from fanplan.simulation.messages import Messages, as_publications
from fanplan.simulation.simulated import Simulated, Times, choose_times, require_messages

if TYPE_CHECKING:
    from fanplan.simulation.params import SimulationParams


@dataclass(frozen=True, eq=False)
class LeftToBrokers:
    """Traffic between brokers with the plan, and by content-based routing of everything.

    Both have a route for each parcel of ``delivery``. Of the groups of ``problem`` those
    ``selected`` are set up; the naive system has none, and no channels and no direct unicast.
    """

    delivery: DeliveryProblem
    problem: GroupsProblem
    selected: Bools
    naive: GroupsProblem


def left_to_brokers(plan: StoredPlan, dataset: Path) -> LeftToBrokers:
    """Read a plan and the dataset it was made for, after the pipeline made `senders`."""
    groups = read_groups(plan, read_brokers(dataset).names)
    stored = read_delivery(plan, dataset, groups.trees)
    problem = groups_of(stored, plan.section(ChannelsRecord).channels)
    own = group_keys(problem.span, problem.starts, problem.members)
    known = {key: group for group, key in enumerate(own)}
    selected = np.zeros(problem.size, bool)
    for group, key in enumerate(stored_keys(groups)):
        if key not in known:
            what = f"no traffic has just the members of group {group}"
            remedy = "See what `fanplan check` says of the plan"
            raise InputError(Problem(str(plan.folder), what, remedy))
        selected[known[key]] = True
    return LeftToBrokers(stored.problem, problem, selected, naive_groups(stored.problem))


def groups_of(stored: StoredDelivery, channels: int) -> GroupsProblem:
    """The groups that could be set up for what channels and direct unicast leave."""
    problem = stored.problem
    routes = recounted_routes(problem, stored.assigned, stored.members, channels, stored.direct)
    return exact_groups(problem.brokers, problem.trees, routes)


def naive_groups(problem: DeliveryProblem) -> GroupsProblem:
    """Everything to the home broker of everybody who wants it."""
    none = map_pairs(np.empty(0, np.int32), np.empty(0, np.int32))
    routes = recounted_routes(problem, none, none, 1, np.zeros(problem.interest.size, bool))
    return exact_groups(problem.brokers, problem.trees, routes)


def measured_messages(
    plan: StoredPlan, dataset: Path, problem: DeliveryProblem, speed: float
) -> Messages:
    """The publications of all parcels, when they were sent, after the pipeline made `sender_times`.

    The first is at 0.
    """
    time, route = sendings(plan, dataset, problem)
    if not np.array_equal(np.bincount(route, minlength=len(problem.row)), problem.messages):
        what = "the times of publications are not those of its traffic"
        raise InputError(Problem(str(dataset), what, INGEST_AGAIN))
    order = np.lexsort((route, time))
    return as_publications((time[order] - time.min()) * (1000.0 / speed), route[order])


def sendings(plan: StoredPlan, dataset: Path, problem: DeliveryProblem) -> tuple[Floats, Longs]:
    """Time in seconds and parcel of every publication that somebody wants."""
    table = read_stage(dataset, "sender_times", ("publisher", "audience_class", "times"))
    clients = plan.read("clients", ("client", "role", "broker"))
    entry = client_homes(clients, "publisher", publisher_names(dataset), problem.brokers)
    size = len(problem.brokers)
    own = problem.row.astype(np.int64) * size + problem.trees.root[problem.tree]
    row = table["audience_class"].to_numpy().astype(np.int64)
    key = row * size + entry[table["publisher"].to_numpy()]
    order = np.argsort(own, kind="stable")
    at = order[np.minimum(np.searchsorted(own[order], key), len(own) - 1)]
    lists = table["times"].combine_chunks()
    counts = lists.value_lengths().to_numpy()
    return lists.flatten().to_numpy(), np.repeat(at, counts)


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
    from fanplan.layers.groups.simulated import group_ways, groups_agreement
    from fanplan.simulation.simulate import require_capacity, run_messages

    require_brokers(plan)
    record, chosen = plan.section(GroupsRecord), choose_times(dataset, times)
    make_traffic(dataset, chosen, engine)
    with engine.progress.stage(f"simulation, {chosen} times") as stage:
        left = left_to_brokers(plan, dataset.path)
        problem, naive, hop = left.problem, left.naive, params.latency_ms
        overlay = brokers_of(problem, dataset)
        require_capacity(overlay)
        messages = entering(plan, left, dataset, chosen, speed, seed)
        network, ways = group_ways(problem, left.selected, record.params.shortcuts, hop)
        result = run_messages(network, ways, overlay.capacity, messages, params)
        bare = group_ways(naive, np.zeros(naive.size, bool), False, hop)
        before = run_messages(*bare, overlay.capacity, messages, params)
        stage.rows(result.events + before.events)
    agreed = groups_agreement(record, problem, ways, messages, result, params)
    return Simulated(
        result,
        overlay,
        plan.section(OverlayRecord).trees,
        params,
        chosen,
        speed,
        seed,
        agreed,
        before,
        NOTES,
    )


def require_brokers(plan: StoredPlan) -> None:
    if not plan.has(GroupsRecord):
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

    require_messages(left.problem.routes, dataset)
    if times == "drawn":
        return publications_of(left.problem.routes, dataset.manifest.seconds / speed, seed)
    return measured_messages(plan, dataset.path, left.delivery, speed)
