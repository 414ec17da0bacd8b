"""Two plans with a delivery: channels, brokers and groups of both, domains, and what it costs.

What stands between two plans, or meets other traffic than planned for, is counted flow by flow,
since flows with one audience need not be delivered alike there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import NONE, Floats, Ints, Longs, expanded
from fanplan.data.interest import InterestProblem, take_audiences
from fanplan.data.reader import read_stage
from fanplan.layers.channels.changes.world import ChannelWorld, channel_world
from fanplan.layers.channels.check.evidence import ChannelTruth, Decisions
from fanplan.layers.channels.map import map_pairs
from fanplan.layers.delivery.problem import DeliveryProblem
from fanplan.layers.delivery.read import ChannelReach, domains_of
from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.delivery.recount import recounted_routes, sent_beyond
from fanplan.layers.groups.changes import Group, GroupWorld
from fanplan.layers.groups.ledger import groups_ledger
from fanplan.layers.groups.problem.build import exact_groups
from fanplan.layers.groups.problem.trees import PartTrees
from fanplan.layers.overlay.changes.shape import (
    Shape,
    ends_by_name,
    homes_standing,
    matched_trees,
    overlay_shape,
    running_shape,
)
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.network.dataset import publisher_names, read_brokers
from fanplan.plan.stored import StoredPlan

Sites = dict[str, str]
"""The multicast domain of each broker that has one."""


@dataclass(frozen=True, eq=False)
class Senders:
    """How much of each flow each publisher sends.

    The dataset knows it by audience class; flows of a class have their share of that.
    """

    flow: Longs
    publisher: Longs
    messages: Floats
    publishers: pa.Array


@dataclass(frozen=True, eq=False)
class BrokerWorld:
    """Brokers of both plans with their trees, clients and groups, under running numbers.

    ``sites`` has the domains of brokers by each plan. ``senders`` are known with a dataset only.
    ``homes``: whether by each plan only home brokers send to one subscriber alone.
    """

    old: Shape
    new: Shape
    trees: dict[int, int]
    groups: GroupWorld
    sites: tuple[Sites, Sites]
    senders: Senders | None
    homes: tuple[bool, bool]

    def domains(self, subscriber: str) -> tuple[str | None, str | None]:
        """The domain of a subscriber by each plan; None where it is not known to have one."""
        homes = home_in_shape(self.old, subscriber), home_in_shape(self.new, subscriber)
        before, after = (
            None if home is None else sites.get(home)
            for home, sites in zip(homes, self.sites, strict=True)
        )
        return before, after


@dataclass(frozen=True, eq=False)
class DeliveryWorld:
    """All that two plans deliver by; without brokers channels reach everybody."""

    channels: ChannelWorld
    brokers: BrokerWorld | None
    movers: Longs
    """subscribers who go to another multicast domain"""


def delivery_world(old: StoredPlan, new: StoredPlan, dataset: Path | None) -> DeliveryWorld:
    channels = channel_world(old, new, dataset, (ChannelReach(old), ChannelReach(new)))
    if not old.has(OverlayRecord):
        return DeliveryWorld(channels, None, np.zeros(0, np.int64))
    before, after = overlay_shape(old), overlay_shape(new)
    running = matched_trees(before, after)
    known = dataset_sites(new, dataset) if dataset else {}
    sites = sites_in(old, before, known), sites_in(new, after, known)
    senders = read_senders(dataset, channels.truth) if dataset else None
    homes = old.section(DeliveryRecord).homes, new.section(DeliveryRecord).homes
    brokers = BrokerWorld(
        before,
        running_shape(after, running),
        running,
        GroupWorld.of(old, new),
        sites,
        senders,
        homes,
    )
    return DeliveryWorld(channels, brokers, movers(brokers, channels.truth.subscribers))


def dataset_sites(plan: StoredPlan, dataset: Path) -> Sites:
    """The domains of brokers as the dataset has them."""
    names = read_brokers(dataset).names
    domain, sites = domains_of(plan, dataset, names)
    return {b: sites[d] for b, d in zip(names.to_pylist(), domain, strict=True) if d >= 0}


def sites_in(plan: StoredPlan, shape: Shape, known: Sites) -> Sites:
    """The domains of a plan's brokers: as known, or else where members of its channels are."""
    if plan.section(DeliveryRecord).domains == ("",):
        return dict.fromkeys(shape.brokers, "")
    table = plan.read("channel_domains", ("channel", "domain"))
    domain = dict(zip(*(column.to_pylist() for column in table.columns), strict=True))
    members = plan.read("channel_subscribers", ("channel", "subscriber")).to_pylist()
    found = {home_in_shape(shape, row["subscriber"]): domain[row["channel"]] for row in members}
    return known | {broker: site for broker, site in found.items() if broker is not None}


def home_in_shape(shape: Shape, subscriber: str) -> str | None:
    """The broker of a subscriber; of several the first by name."""
    return min(shape.clients.get((subscriber, "subscriber"), ()), default=None)


def state_sites(brokers: BrokerWorld, used: set[str]) -> Sites:
    """The domains of brokers while channels of some domains are in use.

    Where the plans have other domains, those of the old one count until none is used any more:
    then what is fed to channels may be counted too high on the way, but not too low.
    """
    old, new = brokers.sites
    apart = set(old.values()).isdisjoint(new.values())
    return old if apart and used & set(old.values()) else old | new


def movers(brokers: BrokerWorld, subscribers: pa.Array) -> Longs:
    """Subscribers whose domain changes; one that comes or goes has nothing to leave or to join.

    Where multicast reaches everywhere nobody gets out of its reach.
    """
    if "" in {*brokers.sites[0].values(), *brokers.sites[1].values()}:
        return np.zeros(0, np.int64)
    found = []
    for number, name in enumerate(subscribers.to_pylist()):
        before, after = brokers.domains(name)
        if (
            before != after
            and home_in_shape(brokers.old, name)
            and home_in_shape(brokers.new, name)
        ):
            found.append(number)
    return np.array(found, np.int64)


def read_senders(dataset: Path, truth: ChannelTruth) -> Senders:
    """O(flows × publishers of a class)."""
    table = read_stage(dataset, "senders", ("publisher", "audience_class", "messages"))
    table = table.sort_by([("audience_class", "ascending"), ("publisher", "ascending")])
    row, sent = table["audience_class"].to_numpy(), table["messages"].to_numpy()
    classes = len(truth.audience_starts) - 1
    starts = np.searchsorted(row, np.arange(classes + 1))
    total = np.bincount(row, sent, classes)
    flow, at = expanded(starts, truth.classes)
    share = sent[at] / np.maximum(total[row[at]], np.finfo(float).tiny)
    messages = share * truth.messages[flow]
    used = messages > 0
    publisher = table["publisher"].to_numpy()[at].astype(np.int64)
    return Senders(flow[used], publisher[used], messages[used], publisher_names(dataset))


def problem_on(
    shape: Shape, sites: Sites, truth: ChannelTruth, senders: Senders, homes: bool
) -> DeliveryProblem:
    """The delivery problem by flows where brokers and clients stand; who has no broker is out."""
    names = pa.array(sorted(shape.brokers), pa.string())
    home = homes_standing(shape, "subscriber", truth.subscribers, names)
    entry = homes_standing(shape, "publisher", senders.publishers, names)[senders.publisher]
    key = (senders.flow * len(names) + entry)[entry >= 0]
    parcels, place = np.unique(key, return_inverse=True)
    messages: Floats = np.zeros(len(parcels))
    np.add.at(messages, place, senders.messages[entry >= 0])
    row, broker = parcels // len(names), parcels % len(names)
    trees = shape_trees(shape, names).hung(np.unique(broker).astype(np.int32))
    entering: Floats = np.zeros(len(truth.names))
    np.add.at(entering, row, messages)
    return DeliveryProblem(
        interest=interest_of_flows(truth, home, entering),
        brokers=names,
        trees=trees,
        home=np.maximum(home, 0),
        domain=domain_numbers(names, sites),
        row=row.astype(np.int32),
        tree=trees.of(broker.astype(np.int32)),
        messages=messages,
        homes=homes,
    )


def domain_numbers(brokers: pa.Array, sites: Sites) -> Ints:
    """The domain of each broker, numbered by name."""
    number = {site: i for i, site in enumerate(sorted(set(sites.values())))}
    found = [number[sites[b]] if b in sites else NONE for b in brokers.to_pylist()]
    return np.array(found, np.int32)


def shape_trees(shape: Shape, names: pa.Array) -> PartTrees:
    numbers = sorted(shape.trees)
    first = numbers[0]
    of = [numbers.index(shape.of.get(broker, first)) for broker in names.to_pylist()]
    edges = tuple(ends_by_name(sorted(shape.trees[number]), names) for number in numbers)
    everybody = np.arange(len(names), dtype=np.int32)
    return PartTrees(edges, np.array(of, np.int32), everybody, len(names))


def interest_of_flows(truth: ChannelTruth, home: Ints, messages: Floats) -> InterestProblem:
    """Who wants each flow, of those who have a broker."""
    audience = take_audiences(truth.audience_starts, truth.audience, truth.classes.astype(np.int64))
    flows = len(truth.classes)
    flow = np.repeat(np.arange(flows), np.diff(truth.audience_starts)[truth.classes])
    known = home[audience] >= 0
    return InterestProblem(
        indptr=np.searchsorted(flow[known], np.arange(flows + 1)),
        audience=audience[known],
        messages=messages,
        bytes=np.zeros(flows),
        flows=np.ones(flows, np.int64),
        classes=truth.classes,
        seconds=truth.manifest.seconds,
        subscribers=truth.subscribers,
        source=truth.manifest.key,
        rows="flow",
    )


def unicast_beyond(problem: DeliveryProblem, decisions: Decisions, direct: Longs) -> float:
    """Messages of direct flows that go past brokers to somebody in another domain."""
    flow, person = decisions.unicast.sides()
    past = np.isin(flow, direct)
    return float(sent_beyond(problem, flow[past], person[past]).sum())


def broker_ledger(
    problem: DeliveryProblem, decisions: Decisions, direct: Longs, used: Iterable[Group]
) -> dict[str, float]:
    """What brokers do: a message goes by the group of just the brokers that it must reach, if one
    is in use, else by default routing."""
    used = list(used)
    state = {
        "entries": float(sum(len(group.entries) for group in used)),
        "overhead": sum(group.control for group in used),
    }
    if not problem.messages.any():
        return dict.fromkeys(("link_messages", "matches_total", "groups", "grouped"), 0.0) | state
    past = np.zeros(problem.interest.size, bool)
    past[direct] = True
    channels = len(decisions.members.starts) - 1
    assigned, members = (map_pairs(*r.sides()) for r in (decisions.channels, decisions.members))
    routes = recounted_routes(problem, assigned, members, channels, past)
    groups = exact_groups(problem.brokers, problem.trees, routes)
    known = {(group.root, group.members) for group in used}
    names = np.array(problem.brokers.to_pylist(), object)
    chosen = [
        (names[problem.trees.root[tree]], frozenset(names[groups.members[first:end]])) in known
        for tree, first, end in zip(groups.span, groups.starts, groups.starts[1:], strict=False)
    ]
    found = groups_ledger(groups, np.array(chosen, bool))
    by_group = (groups.group >= 0) & np.append(chosen, False).astype(bool)[groups.group]
    return {
        "link_messages": float(found.received.sum()),
        "matches_total": found.matches,
        "groups": float(sum(chosen)),
        "grouped": float(routes.messages[by_group].sum()),
        **state,
    }
