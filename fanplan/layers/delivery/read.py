"""The delivery of a stored plan, in the numbers of its dataset."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Bools, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.data.reader import read_stage
from fanplan.layers.channels.check.evidence import ChannelTruth
from fanplan.layers.channels.map import MapPairs, map_pairs
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.delivery.problem import EVERYWHERE, DeliveryProblem, load_delivery, load_flat
from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.delivery.recount import recounted_routes
from fanplan.layers.groups.problem.groups import BrokerTrees
from fanplan.layers.groups.problem.trees import GivenTrees
from fanplan.network.brokers import Routes
from fanplan.network.dataset import multicast_domains, read_brokers
from fanplan.plan.axis import Axis
from fanplan.plan.stored import StoredPlan


@dataclass(frozen=True, eq=False)
class StoredDelivery:
    """What the tables of a plan say of a delivery problem.

    ``assigned`` has (class, channel), ``members`` (channel, subscriber), ``domain`` that of each
    channel, ``names`` those of domains.
    """

    problem: DeliveryProblem
    assigned: MapPairs
    members: MapPairs
    domain: Ints
    direct: Bools
    names: tuple[str, ...]


def read_delivery(plan: StoredPlan, dataset: Path, trees: BrokerTrees | None) -> StoredDelivery:
    """Channels, their domains and direct classes; without trees there are no brokers."""
    problem, names = stored_problem(plan, dataset, trees)
    table = plan.read("channel_domains", ("channel", "domain")).sort_by("channel")
    domain = pc.index_in(table["domain"], pa.array(names, pa.string()))
    numbers = table["channel"].to_numpy()
    if domain.null_count or not np.array_equal(
        numbers, np.arange(plan.section(ChannelsRecord).channels)
    ):
        what = "a channel has no domain, or one that is not there"
        raise InputError(Problem("channel_domains", what, "Write the plan again"))
    for of in ("channel_flows", "channel_subscribers"):
        used = plan.read(of, ("channel",))["channel"].to_numpy()
        if len(used) and not 0 <= used.min() <= used.max() < len(numbers):
            raise InputError(Problem(of, "a channel is not there", "Write the plan again"))
    return StoredDelivery(
        problem=problem,
        assigned=class_channels(plan, dataset),
        members=channel_members(plan, problem.interest.subscribers),
        domain=domain.to_numpy().astype(np.int32),
        direct=direct_classes(plan, problem.interest.size),
        names=names,
    )


def stored_problem(
    plan: StoredPlan, dataset: Path, trees: BrokerTrees | None
) -> tuple[DeliveryProblem, tuple[str, ...]]:
    """The problem on the plan's own trees, with clients where the plan has them."""
    if trees is None:
        return load_flat(dataset), ("",)
    brokers = read_brokers(dataset).names
    domain, names = domains_of(plan, dataset, brokers)
    clients = plan.read("clients", ("client", "role", "broker"))
    homes = plan.section(DeliveryRecord).homes
    return load_delivery(dataset, brokers, clients, GivenTrees(trees), domain, homes), names


def domains_of(plan: StoredPlan, dataset: Path, brokers: pa.Array) -> tuple[Ints, tuple[str, ...]]:
    """Domains are those of the dataset, unless the plan has one for all."""
    if plan.section(DeliveryRecord).domains == ("",):
        return np.repeat(EVERYWHERE, len(brokers)), ("",)
    domain, names = multicast_domains(dataset, brokers)
    return domain, tuple(names.to_pylist())


def left_by_plan(plan: StoredPlan, dataset: Path, trees: BrokerTrees) -> Routes:
    """What channels and direct unicast leave to brokers."""
    stored = read_delivery(plan, dataset, trees)
    return recounted_routes(
        stored.problem,
        stored.assigned,
        stored.members,
        plan.section(ChannelsRecord).channels,
        stored.direct,
    )


def class_channels(plan: StoredPlan, dataset: Path) -> MapPairs:
    """The channels of each audience class; all its flows must have the same."""
    flows = read_stage(dataset, "flows", ("flow", "audience_class"))
    table = plan.read("channel_flows", ("channel", "flow"))
    at = pc.index_in(table["flow"], flows["flow"].combine_chunks()).fill_null(-1).to_numpy()
    of = flows["audience_class"].to_numpy()
    found = map_pairs(of[at[at >= 0]], table["channel"].to_numpy()[at >= 0])
    sizes = np.bincount(of[of >= 0])
    if len(table) != int(sizes[found.left].sum()):
        what = "flows with the same audience are on different channels"
        raise InputError(Problem("channel_flows", what, "Write the plan again"))
    return found


def channel_members(plan: StoredPlan, subscribers: pa.Array) -> MapPairs:
    table = plan.read("channel_subscribers", ("channel", "subscriber"))
    at = pc.index_in(table["subscriber"], subscribers).fill_null(-1).to_numpy()
    return map_pairs(table["channel"].to_numpy()[at >= 0], at[at >= 0])


def direct_classes(plan: StoredPlan, classes: int) -> Bools:
    numbers = plan.read("direct_classes", ("audience_class",))["audience_class"].to_numpy()
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < classes:
        what = f"one is outside 0 to {classes - 1}"
        raise InputError(Problem("direct_classes", what, "Write the plan again"))
    direct = np.zeros(classes, bool)
    direct[numbers] = True
    return direct


@dataclass(frozen=True)
class ChannelReach:
    """Where the channels of a plan reach, and what passes them by."""

    plan: StoredPlan

    def domains(self) -> tuple[str, ...]:
        table = self.plan.read("channel_domains", ("channel", "domain")).sort_by("channel")
        return tuple(table["domain"].to_pylist())

    def direct(self, truth: ChannelTruth) -> Longs:
        return direct_flows(self.plan, truth)

    def fixed(self) -> bool:
        return ChannelsRecord.layer in self.plan.section(DeliveryRecord).params.fixed


def direct_flows(plan: StoredPlan, truth: ChannelTruth) -> Longs:
    """Flows of the classes that a plan sends directly."""
    flows = plan.read("flows", ("flow", "audience_class"))
    direct = plan.read("direct_classes", ("audience_class",))["audience_class"]
    chosen = flows.filter(pc.is_in(flows["audience_class"], direct.combine_chunks()))
    at = Axis("flow", truth.names).number(chosen.select(["flow"]))
    return np.sort(at[at >= 0]).astype(np.int64)
