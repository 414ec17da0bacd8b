"""What the tables of a plan with delivery leave to brokers, for any traffic.

Where a class goes is read from the plan alone: its channels and its unicast pairs, whoever wants
them now.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Bools, Floats, Ints, Longs
from fanplan.layers.delivery.problem import client_homes, nearest_brokers
from fanplan.layers.delivery.read import domains_of
from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.groups.problem.groups import BrokerTrees, GroupsProblem
from fanplan.layers.groups.problem.trees import SharedTrees
from fanplan.layers.groups.read import StoredGroups, read_groups
from fanplan.layers.overlay.simulated import read_trees
from fanplan.network.brokers import Routes, end_keys
from fanplan.network.trees import Trees
from fanplan.plan.stored import StoredPlan


@dataclass(frozen=True, eq=False)
class Parcels:
    """Messages of class ``row[i]`` that enter at broker ``source[i]``."""

    row: Longs
    source: Ints
    messages: Floats


@dataclass(frozen=True, eq=False)
class DeliveryWays:
    """Where a plan sends its classes, in positions of its own brokers.

    ``last_row`` and ``last_broker`` are pairs of a class and a broker that must send it to
    somebody; ``heard_row`` and ``heard_domain`` of a class and a domain one broker of which must
    get it. ``lost`` are channels of domains in which there is no broker. With ``homes`` only its
    home broker sends to one subscriber alone.
    """

    brokers: pa.Array
    domain: Ints
    domains: int
    trees: Trees
    groups: StoredGroups
    last_row: Longs
    last_broker: Longs
    heard_row: Longs
    heard_domain: Longs
    lost: Longs
    homes: bool

    def beyond(self, source: Ints, home: Ints) -> Bools:
        """Whether a message leaves the domain, or broker, of its entry on its way to a home."""
        apart: Bools = source != home
        if not self.homes:
            there = self.domain[home]
            apart &= (there < 0) | (there != self.domain[source])
        return apart

    def hung(self, roots: Ints) -> BrokerTrees:
        """The trees of the overlay, hung where traffic enters."""
        edges = tuple(self.trees.links[own] for own in self.trees.members)
        return SharedTrees(edges, self.trees.of).hung(roots)


def ways_of_plan(plan: StoredPlan, dataset: Path) -> DeliveryWays:
    """Read the plan's tables; of the dataset only the sites of brokers."""
    brokers = pc.unique(plan.read("brokers", ("broker",))["broker"].combine_chunks()).sort()
    domain, names = domains_of(plan, dataset, brokers)
    row, broker = last_hops(plan, brokers)
    # Where any broker of a domain serves all of it, what has a last hop there is heard there.
    homes = plan.section(DeliveryRecord).homes
    inside = (domain[broker] >= 0) & (not homes)
    channels = plan.read("channel_domains", ("channel", "domain"))
    at = pc.index_in(channels["domain"], pa.array(names, pa.string())).fill_null(-1).to_numpy()
    lost = channels["channel"].to_numpy()[~np.isin(at, domain[domain >= 0])]
    heard, where = heard_domains(plan, channels["channel"].to_numpy(), at, lost)
    heard = np.append(heard, row[inside])
    where = np.append(where, domain[broker[inside]].astype(np.int64))
    return DeliveryWays(
        brokers, domain, len(names), read_trees(plan, brokers), read_groups(plan, brokers),
        row[~inside], broker[~inside], *distinct_pairs(heard, where, len(names)), lost, homes,
    )  # fmt: skip


def last_hops(plan: StoredPlan, brokers: pa.Array) -> tuple[Longs, Longs]:
    """Pairs of a class and the home of somebody who gets it by a last hop."""
    table = plan.read("unicast", ("flow", "subscriber"))
    row = classes_of(plan, table["flow"])
    direct = plan.read("direct_classes", ("audience_class",))["audience_class"].to_numpy()
    near = np.flatnonzero((row >= 0) & ~np.isin(row, direct))
    people = table["subscriber"].take(pa.array(near)).combine_chunks()
    names = pc.unique(people)
    home = client_homes(
        plan.read("clients", ("client", "role", "broker")), "subscriber", names, brokers
    )
    at = home[pc.index_in(people, names).to_numpy()].astype(np.int64)
    return distinct_pairs(row[near], at, len(brokers))


def heard_domains(
    plan: StoredPlan, channel: Longs, domain: Longs, lost: Longs
) -> tuple[Longs, Longs]:
    """Pairs of a class and the domain of a channel that has it."""
    table = plan.read("channel_flows", ("channel", "flow"))
    row, on = classes_of(plan, table["flow"]), table["channel"].to_numpy()
    of = np.full(int(max(channel.max(initial=-1), on.max(initial=-1))) + 1, -1, np.int64)
    of[channel] = domain
    there = (row >= 0) & (of[on] >= 0) & ~np.isin(on, lost)
    return distinct_pairs(row[there], of[on][there], int(domain.max(initial=0)) + 1)


def classes_of(plan: StoredPlan, flows: pa.ChunkedArray) -> Longs:
    """The class of each flow by the plan's table; −1 for one that is not there."""
    table = plan.read("flows", ("flow", "audience_class"))
    at = pc.index_in(flows, table["flow"].combine_chunks()).fill_null(-1).to_numpy()
    known = np.append(table["audience_class"].to_numpy().astype(np.int64), -1)
    result: Longs = known[at]
    return result


def distinct_pairs(row: Longs, value: Longs, width: int) -> tuple[Longs, Longs]:
    """Different pairs, in order."""
    return np.divmod(np.unique(row * width + value), width)


# ---- from parcels to groups


def carried(ways: DeliveryWays, parcels: Parcels, others: Routes) -> GroupsProblem:
    """What brokers carry: parcels as the plan has it, and other routes as they are.

    A route takes the group with its root and just its destinations, or default routing.
    """
    stored = ways.groups
    roots = stored.trees.root[stored.tree]
    sources = np.concatenate((parcels.source, others.source, roots)).astype(np.int32)
    trees = ways.hung(np.unique(sources))
    routes = both(parcel_routes(ways, parcels, trees), others)
    tree, span = trees.of(routes.source), trees.of(roots)
    members = stored.member.astype(np.int32)
    known = {key: group for group, key in enumerate(end_keys(span, stored.starts, members))}
    own = end_keys(tree, routes.starts, routes.brokers)
    group = np.array([known.get(key, -1) for key in own], np.int32)
    return GroupsProblem(ways.brokers, trees, routes, tree, group, span, stored.starts, members)


def parcel_routes(ways: DeliveryWays, parcels: Parcels, trees: BrokerTrees) -> Routes:
    """The brokers that each parcel needs.

    Those with a last hop to make; and of a domain that has only channels the nearest to the entry,
    or none if it is the domain of the entry.
    """
    near, end = of_class(parcels.row, ways.last_row, ways.last_broker)
    size, width = len(ways.brokers), ways.domains + 1
    opened = ways.last_row * width + ways.domain[ways.last_broker]
    alone = ~np.isin(ways.heard_row * width + ways.heard_domain, opened)
    far, domain = of_class(parcels.row, ways.heard_row[alone], ways.heard_domain[alone])
    foreign = ways.domain[parcels.source[far]] != domain
    far, domain = far[foreign], domain[foreign]
    gateways = nearest_brokers(trees.root, trees.parent, ways.domain, ways.domains)
    gateway = gateways[trees.of(parcels.source[far]), domain].astype(np.int64)
    key = np.concatenate((near * size + end, far * size + gateway))
    parcel, broker = np.divmod(np.sort(key), size)
    starts = np.searchsorted(parcel, np.arange(len(parcels.row) + 1))
    nothing = np.zeros(len(parcels.row))
    return Routes(
        parcels.source.astype(np.int32), starts, broker.astype(np.int32), parcels.messages, nothing
    )


def of_class(row: Longs, owner: Longs, value: Longs) -> tuple[Longs, Longs]:
    """(parcel, value) for the values of the class of each parcel; owners ascend."""
    first, last = (np.searchsorted(owner, row, side) for side in ("left", "right"))
    sizes = last - first
    parcel = np.repeat(np.arange(len(row)), sizes)
    within = np.arange(len(parcel)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return parcel, value[first[parcel] + within]


def both(one: Routes, other: Routes) -> Routes:
    """Routes one after the other."""
    return Routes(
        np.concatenate((one.source, other.source)),
        np.concatenate((one.starts, one.starts[-1] + other.starts[1:])),
        np.concatenate((one.brokers, other.brokers)),
        np.concatenate((one.messages, other.messages)),
        np.concatenate((one.deliveries, other.deliveries)),
    )
