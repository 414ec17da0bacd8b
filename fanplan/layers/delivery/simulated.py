"""A plan with delivery as the simulator wants it: what is left to brokers, and the naive system."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bools, Floats, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.ingest.derived import derived
from fanplan.data.links import HOP
from fanplan.data.reader import INGEST_AGAIN, read_stage
from fanplan.layers.channels.map import map_pairs
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.delivery.legs import SentOn, by_last_hops, legs_to_people, sent_on
from fanplan.layers.delivery.problem import DeliveryProblem, client_homes
from fanplan.layers.delivery.read import StoredDelivery, read_delivery
from fanplan.layers.delivery.recount import recounted_routes
from fanplan.layers.groups.problem.build import exact_groups
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.read import read_groups, stored_keys
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.groups.simulated import brokers_of, group_ways, groups_agreement, timing_of
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.network.brokers import OverlayProblem, end_keys
from fanplan.network.dataset import publisher_names, read_brokers, read_links
from fanplan.network.latency import Latency, Timing
from fanplan.plan.stored import StoredPlan
from fanplan.simulation.legs import DelayCounts
from fanplan.simulation.messages import Messages, as_publications
from fanplan.simulation.params import SimulationParams
from fanplan.simulation.simulate import SimulationResult, require_capacity, run_messages
from fanplan.simulation.simulated import (
    AssumedLatency,
    Delays,
    Simulated,
    Times,
    choose_times,
    require_messages,
)
from fanplan.simulation.spread import RouteVisits, SimulatedNetwork, idle_delays


@dataclass(frozen=True, eq=False)
class LeftToBrokers:
    """Traffic between brokers with the plan, and by content-based routing of everything.

    Both have a route for each parcel of the delivery. Of the groups of ``problem`` those
    ``selected`` are set up; the naive system has none, and no channels and no direct unicast.
    """

    stored: StoredDelivery
    channels: int
    problem: GroupsProblem
    selected: Bools
    naive: GroupsProblem

    @property
    def delivery(self) -> DeliveryProblem:
        return self.stored.problem

    def sent_on(self) -> SentOn:
        """How the plan comes from brokers to people."""
        return sent_on(self.stored, self.channels, self.problem.routes)

    def sent_on_naively(self) -> SentOn:
        return by_last_hops(self.delivery, self.naive.routes)


def left_to_brokers(plan: StoredPlan, dataset: Path) -> LeftToBrokers:
    """Read a plan and the dataset it was made for, after the pipeline made `senders`."""
    groups = read_groups(plan, read_brokers(dataset).names)
    stored = read_delivery(plan, dataset, groups.trees)
    channels = plan.section(ChannelsRecord).channels
    problem = candidate_groups(stored, channels)
    own = end_keys(problem.span, problem.starts, problem.members)
    known = {key: group for group, key in enumerate(own)}
    selected = np.zeros(problem.size, bool)
    for group, key in enumerate(stored_keys(groups)):
        if key not in known:
            what = f"no traffic has just the members of group {group}"
            remedy = "See what `fanplan check` says of the plan"
            raise InputError(Problem(str(plan.folder), what, remedy))
        selected[known[key]] = True
    return LeftToBrokers(stored, channels, problem, selected, naive_groups(stored.problem))


def candidate_groups(stored: StoredDelivery, channels: int) -> GroupsProblem:
    """The groups that could be set up for what channels and direct unicast leave."""
    problem = stored.problem
    routes = recounted_routes(problem, stored.assigned, stored.members, channels, stored.direct)
    return exact_groups(problem.brokers, problem.trees, routes)


def naive_groups(problem: DeliveryProblem) -> GroupsProblem:
    """Everything to the home broker of everybody who wants it."""
    problem = replace(problem, homes=True)
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
    "Brokers and the links between them are simulated: how what the plan leaves to them comes to "
    "the broker that sends it on. From there a message on a channel and a direct one take the "
    "shortest way over links, and {client_ms:g} ms more to the client.",
    "A shortcut takes the latency of the shortest way.",
)
WIDE = "Bandwidths of links do not count: shortcuts and direct messages share links, too."


def notes_of(overlay: OverlayProblem, params: SimulationParams) -> tuple[str, ...]:
    """What is simulated, and what is not."""
    narrow = overlay.links is not None and np.isfinite(overlay.links.bandwidth).any()
    told = tuple(note.format(client_ms=params.client_ms) for note in NOTES)
    return (*told, WIDE) if narrow else told


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
    record, chosen = plan.section(GroupsRecord), choose_times(dataset, times)
    make_traffic(dataset, chosen, engine)
    with engine.progress.stage(f"simulation, {chosen} times") as stage:
        left = left_to_brokers(plan, dataset.path)
        overlay = brokers_of(left.problem, dataset)
        require_capacity(overlay)
        messages = entering_all(plan, left, dataset, chosen, speed, seed)
        timing = timing_of(overlay, params)
        sending = Sending(messages, overlay, timing, params)
        network, ways = group_ways(left.problem, left.selected, record.params.shortcuts, timing)
        run = sending.run(network, ways, left.sent_on())
        bare = group_ways(left.naive, np.zeros(left.naive.size, bool), False, timing)
        before = sending.run(*bare, left.sent_on_naively())
        stage.rows(run.result.events + before.result.events)
    return Simulated(
        run.result,
        overlay,
        plan.section(OverlayRecord).trees,
        params,
        chosen,
        speed,
        seed,
        groups_agreement(record, left.problem, network, ways, messages, run.result, params),
        run.assumed,
        before.result,
        Delays(run.delays, before.delays),
        notes_of(overlay, params),
    )


class Ran(NamedTuple):
    """What brokers did, and how long deliveries to subscribers took."""

    result: SimulationResult
    delays: DelayCounts
    assumed: AssumedLatency


@dataclass(frozen=True, eq=False)
class Sending:
    """The messages that enter, and the world they enter."""

    messages: Messages
    overlay: OverlayProblem
    timing: Timing
    params: SimulationParams

    def run(self, network: SimulatedNetwork, ways: RouteVisits, sent: SentOn) -> Ran:
        """Through brokers, then on to people."""
        taken = sent.latencies(self.timing)
        legs = legs_to_people(ways, sent, taken, self.params.client_ms)
        result = run_messages(network, ways, self.overlay.capacity, self.messages, self.params)
        ones = np.ones(len(result.served))
        delays = legs.after(result.served, result.served_ms, ones)
        return Ran(result, delays, assumed_ways(result, sent, taken, self.timing))


def assumed_ways(
    result: SimulationResult, sent: SentOn, taken: Latency, timing: Timing
) -> AssumedLatency:
    """Of ways between two brokers, over links and from senders to home brokers, each once."""
    size = timing.brokers
    hops = result.links.astype(np.int64) @ (size, 1)
    ends = np.sort(np.stack((sent.sender, sent.home), axis=1)) @ (size, 1)
    away = sent.sender != sent.home
    key = np.concatenate((hops, ends[away]))
    unknown = np.concatenate((result.assumed, taken.assumed[away]))
    return AssumedLatency(len(np.unique(key[unknown])), len(np.unique(key)), timing.assumed_ms)


def planned_delays(plan: StoredPlan, dataset: Path) -> DelayCounts:
    """Of deliveries on an idle network, from entry to subscriber: ms, or hops if none is known."""
    left, shortcuts = left_to_brokers(plan, dataset), plan.section(GroupsRecord).params.shortcuts
    names = left.delivery.brokers
    timing = Timing(len(names), read_links(dataset, names), HOP)
    network, ways = group_ways(left.problem, left.selected, shortcuts, timing)
    sent = left.sent_on()
    legs = legs_to_people(ways, sent, sent.latencies(timing), 0.0)
    messages = np.repeat(left.delivery.messages, np.diff(ways.starts))
    visits = np.flatnonzero(ways.visits["serves"])
    return legs.after(visits, idle_delays(ways, network.latency_ms)[visits], messages[visits])


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


def entering_all(
    plan: StoredPlan, left: LeftToBrokers, dataset: Dataset, times: Times, speed: float, seed: int
) -> Messages:
    """The messages of all parcels, which are the routes of both systems."""
    from fanplan.simulation.messages import publications_of

    require_messages(left.problem.routes, dataset)
    if times == "drawn":
        return publications_of(left.problem.routes, dataset.manifest.seconds / speed, seed)
    return measured_messages(plan, dataset.path, left.delivery, speed)
