"""What a plan says of every flow at every broker where it enters: hops, sends and last hops.

All is read from the tables of a checked plan and its dataset, without Spark. A *parcel* is a flow
that enters at a broker; a *way* is how it comes to the brokers that must have it. Parcels with the
same entry and the same destinations share a way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import NONE, Bools, Ints, Longs, expanded, starts_of
from fanplan.core.errors import InputError, Problem
from fanplan.data.interest import InterestProblem, load_classes
from fanplan.data.reader import read_manifest, read_stage
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.delivery.carried import Parcels, carried, distinct_pairs
from fanplan.layers.delivery.carried import ways_of_plan as read_delivery_ways
from fanplan.layers.delivery.legs import nearest_senders
from fanplan.layers.delivery.problem import client_homes
from fanplan.layers.delivery.read import domains_of
from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.groups.problem.groups import BrokerTrees, GroupsProblem
from fanplan.layers.groups.problem.trees import SharedTrees
from fanplan.layers.groups.read import read_groups, stored_keys
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.groups.simulated import group_ways
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.layers.overlay.simulated import read_trees
from fanplan.network.brokers import Routes, end_keys
from fanplan.network.dataset import given_clients, publisher_names, read_brokers, subscriber_names
from fanplan.network.latency import Timing
from fanplan.plan.axis import Axis
from fanplan.plan.stored import StoredPlan

TREE, GROUP, SHORTCUT = range(3)
KINDS = ("tree", "group", "shortcut")
"""How a message comes from one broker to the next: matched at each, or at entry alone."""

Key = tuple[str, ...]
Figures = dict[Key, int]
"""Counts by what they are of: ("link", from, to, how), ("subscriber", name, "wanted"), …"""


class Hops(NamedTuple):
    """Way ``way[i]`` leads from broker ``tail[i]`` to ``head[i]``."""

    way: Longs
    tail: Longs
    head: Longs
    kind: Longs


class Sends(NamedTuple):
    """Broker ``broker[i]`` sends parcel ``parcel[i]`` to a channel."""

    parcel: Longs
    broker: Longs
    channel: Longs


class LastHops(NamedTuple):
    """Broker ``broker[i]`` sends parcel ``parcel[i]`` to one subscriber; ``direct``: from entry."""

    parcel: Longs
    broker: Longs
    subscriber: Longs
    direct: Bools


class Copies(NamedTuple):
    """Subscriber ``subscriber[i]`` gets this many copies of parcel ``parcel[i]``; or wants it."""

    parcel: Longs
    subscriber: Longs
    copies: Longs
    wanted: Bools


@dataclass(frozen=True, eq=False)
class ClientHomes:
    """Who is at which broker, as positions; ``brokers`` is [""] where a plan has none."""

    brokers: list[str]
    subscribers: list[str]
    publishers: list[str]
    home: Ints
    entry: Ints

    def entry_of(self) -> dict[str, int]:
        return dict(zip(self.publishers, self.entry.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Ways:
    """What a plan says of parcels. Parcel i is ``flow[i]`` that enters at broker ``entry[i]``.

    Flows are numbered as in the dataset's stage `flows`. It takes the way ``way[i]``, on the tree
    of links ``edges[tree[i]]``. ``members`` are (channel, subscriber) pairs, ``domains`` where
    each channel reaches.
    """

    clients: ClientHomes
    flows: list[str]
    topics: list[str]
    flow: Longs
    entry: Longs
    way: Longs
    tree: Longs
    edges: tuple[Ints, ...]
    hops: Hops
    sends: Sends
    last: LastHops
    domains: list[str]
    members: tuple[Longs, Longs]
    audience: tuple[Longs, Longs]

    @property
    def brokers(self) -> list[str]:
        return self.clients.brokers

    @property
    def subscribers(self) -> list[str]:
        return self.clients.subscribers

    @property
    def size(self) -> int:
        """Number of ways."""
        return int(self.way.max(initial=-1)) + 1

    def parcels(self, flow: Longs, entry: Longs) -> Longs:
        """The parcel of each (flow, entry), NONE if there is none."""
        width = len(self.brokers)
        own, asked = self.flow * width + self.entry, flow * width + entry
        at = np.minimum(np.searchsorted(own, asked), max(len(own) - 1, 0))
        found = own[at] == asked if len(own) else np.zeros(len(asked), bool)
        return np.where(found, at, NONE)

    @cached_property
    def copies(self) -> Copies:
        """What each subscriber gets of each parcel, by channels and by last hops."""
        people, width = len(self.subscribers), len(self.flow)
        starts = np.searchsorted(self.members[0], np.arange(len(self.domains) + 1))
        which, at = expanded(starts, self.sends.channel)
        got = np.append(self.sends.parcel[which], self.last.parcel) * people
        got += np.append(self.members[1][at], self.last.subscriber)
        own, each = expanded(self.audience[0], self.flow)
        wanting = own * people + self.audience[1][each]
        key, copies = np.unique(np.append(got, wanting), return_counts=True)
        wanted = np.isin(key, wanting)
        parcel, subscriber = np.divmod(key, people) if width else (key, key)
        return Copies(parcel, subscriber, copies - wanted, wanted)

    def counted(self, messages: Longs, means: list[str] | None = None) -> Figures:
        """What this many ``messages`` of each parcel must cause.

        Links are told apart by the ``means`` of each hop, or by their kind.
        """
        sent = np.bincount(self.way, messages, self.size)
        links: Figures = {}
        how = means or [KINDS[kind] for kind in self.hops.kind.tolist()]
        for i, (way, tail, head) in enumerate(zip(*self.hops[:3], strict=True)):
            add(links, ("link", self.brokers[tail], self.brokers[head], how[i]), sent[way])
        return links | self._sent(messages) | self._received(messages)

    def _sent(self, messages: Longs) -> Figures:
        found: Figures = {}
        sends, last, names = self.sends, self.last, self.brokers
        width = len(names)
        key = sends.channel * width + sends.broker
        for at, count in summed_by_key(key, messages[sends.parcel]):
            add(found, ("channel", str(at // width), names[at % width]), count)
        for direct, what in ((True, "direct"), (False, "last hops")):
            own = last.direct == direct
            for at, count in summed_by_key(last.broker[own], messages[last.parcel[own]]):
                add(found, ("broker", names[at], what), count)
        return found

    def _received(self, messages: Longs) -> Figures:
        copies = self.copies
        found: Figures = {}
        times, people = messages[copies.parcel], len(self.subscribers)
        got = copies.copies > 0
        figures = {
            "wanted": times * (got & copies.wanted),
            "unwanted": times * copies.copies * ~copies.wanted,
            "twice": times * np.maximum(copies.copies - 1, 0) * copies.wanted,
            "missed": times * (~got & copies.wanted),
        }
        for what, amount in figures.items():
            totals = np.bincount(copies.subscriber, amount, people).astype(np.int64)
            for who, count in zip(self.subscribers, totals.tolist(), strict=True):
                found["subscriber", who, what] = count
        found |= {("subscriber", who, "out of order"): 0 for who in self.subscribers}
        return found


def add(figures: Figures, key: Key, count: float) -> None:
    if count:
        figures[key] = figures.get(key, 0) + int(count)


def summed_by_key(key: Longs, amounts: Longs) -> list[tuple[int, int]]:
    """Different keys, each with the sum of its amounts."""
    found, place = np.unique(key, return_inverse=True)
    totals = np.bincount(place.ravel(), amounts, len(found)).astype(np.int64)
    return [*zip(found.tolist(), totals.tolist(), strict=True)]


# ---- reading a plan


def read_clients(plan: StoredPlan, dataset: Path) -> ClientHomes:
    """Where the plan has brokers and clients; else all are at one place without a name."""
    subscribers, publishers = subscriber_names(dataset), publisher_names(dataset)
    if not (plan.has(OverlayRecord) or plan.has(GroupsRecord)):
        home, entry = (np.zeros(len(names), np.int32) for names in (subscribers, publishers))
        return ClientHomes([""], subscribers.to_pylist(), publishers.to_pylist(), home, entry)
    brokers = broker_names(plan, dataset)
    table = (
        plan.read("clients", ("client", "role", "broker"))
        if plan.has(OverlayRecord)
        else given_clients(dataset)
    )
    if not plan.has(DeliveryRecord):
        require_one_home(table)
    return ClientHomes(
        brokers.to_pylist(),
        subscribers.to_pylist(),
        publishers.to_pylist(),
        client_homes(table, "subscriber", subscribers, brokers),
        client_homes(table, "publisher", publishers, brokers),
    )


def broker_names(plan: StoredPlan, dataset: Path) -> pa.Array:
    """The brokers that a plan uses, by name."""
    if not plan.has(OverlayRecord):
        return read_brokers(dataset).names
    return pc.unique(plan.read("brokers", ("broker",))["broker"].combine_chunks()).sort()


def require_one_home(clients: pa.Table) -> None:
    """Where subscriptions of one subscriber are at several brokers, copies cannot be told apart."""
    people = clients.filter(pc.equal(clients["role"], "subscriber"))
    counts = people.group_by("client").aggregate([("broker", "count_distinct")])
    several = counts.filter(pc.greater(counts["broker_count_distinct"], 1))["client"]
    if len(several):
        what = f"subscriber {several[0].as_py()!r} is at several brokers"
        remedy = "Give all subscriptions of a subscriber the same broker"
        raise InputError(Problem("clients", what, remedy))


def require_enactable(plan: StoredPlan, dataset: Path) -> None:
    """Flows must tell who wants a message, and groups must be those of audiences."""
    if not read_manifest(dataset).exact:
        what = "its cells are coarser than the filters, so that a flow does not tell who wants it"
        raise InputError(Problem(str(dataset), what, "Ingest without --grid, and plan again"))
    groups = plan.find(GroupsRecord)
    if groups is not None and groups.params.grouping.cells is not None:
        what = "its groups come from cells, which no system can tell from a message's flow"
        raise InputError(Problem(str(plan.folder), what, "Plan groups without --cells"))
    if not (plan.has(OverlayRecord) or plan.has(GroupsRecord) or plan.has(ChannelsRecord)):
        what = f"has nothing to enact: no messages are moved by {', '.join(plan.record.layers)}"
        raise InputError(Problem(str(plan.folder), what, "Name an overlay, groups or channels"))


def read_ways(plan: StoredPlan, dataset: Path, flow: Longs, entry: Longs) -> Ways:
    """The ways of (flow, entry) pairs; flows that nobody wants, and what enters nowhere, have none.

    A subscriber wants what the dataset's audience of the flow says.
    """
    require_enactable(plan, dataset)
    return WaysReader(plan, dataset, read_clients(plan, dataset)).ways(flow, entry)


@dataclass(frozen=True, eq=False)
class WaysReader:
    """A plan and a dataset while they are read."""

    plan: StoredPlan
    dataset: Path
    clients: ClientHomes

    @cached_property
    def flow_table(self) -> pa.Table:
        return read_stage(self.dataset, "flows", ("flow", "topic", "audience_class"))

    @cached_property
    def interest(self) -> InterestProblem:
        return load_classes(self.dataset)

    @cached_property
    def classes(self) -> Longs:
        found: Longs = self.flow_table["audience_class"].to_numpy().astype(np.int64)
        return found

    @cached_property
    def flow_audiences(self) -> tuple[Longs, Longs]:
        """Where the audience of each flow starts, and who is in it."""
        starts = np.append(self.interest.indptr, self.interest.indptr[-1])
        which, at = expanded(starts, self.classes)
        sizes = np.bincount(which, minlength=len(self.classes))
        return starts_of(sizes), self.interest.audience[at].astype(np.int64)

    def ways(self, flow: Longs, entry: Longs) -> Ways:
        width = len(self.clients.brokers)
        good = (self.classes[flow] >= 0) & (flow >= 0) & (entry >= 0)
        flow, entry = distinct_pairs(flow[good], entry[good], width)
        key, parcel = np.unique(self.classes[flow] * width + entry, return_inverse=True)
        row, source = np.divmod(key, width)
        problem = self.problem(Parcels(row, source.astype(np.int32), np.ones(len(key))))
        own = end_keys(problem.tree, problem.routes.starts, problem.routes.brokers)
        number = {key: way for way, key in enumerate(dict.fromkeys(own))}
        way = np.array([number[key] for key in own], np.int64)
        edges, tree = shared_edges(problem.trees)
        parcel = parcel.ravel()
        reach = Reached(self, problem, flow, entry, parcel)
        return Ways(
            clients=self.clients,
            flows=self.flow_table["flow"].to_pylist(),
            topics=self.flow_table["topic"].to_pylist(),
            flow=flow,
            entry=entry,
            way=way[parcel],
            tree=tree[problem.tree[parcel]],
            edges=edges,
            hops=hops_of(problem, way, self.shortcuts),
            sends=reach.sends(),
            last=reach.last_hops(),
            domains=reach.channel_domains,
            members=reach.members(),
            audience=self.flow_audiences,
        )

    @property
    def shortcuts(self) -> bool:
        groups = self.plan.find(GroupsRecord)
        return groups is not None and groups.params.shortcuts

    def problem(self, parcels: Parcels) -> GroupsProblem:
        """What brokers carry of some classes, each from one entry."""
        if len(self.clients.brokers) == 1 and not self.clients.brokers[0]:
            return nothing_carried(parcels)
        if self.plan.has(DeliveryRecord):
            ways = read_delivery_ways(self.plan, self.dataset)
            return carried(ways, parcels, Routes.none())
        return self.to_homes(parcels)

    def to_homes(self, parcels: Parcels) -> GroupsProblem:
        """Without a delivery everything goes to the brokers of all who want it."""
        brokers = pa.array(self.clients.brokers)
        home = self.clients.home.astype(np.int64)
        which, at = expanded(self.interest.indptr, parcels.row)
        parcel, broker = distinct_pairs(which, home[self.interest.audience[at]], len(brokers))
        routes = Routes(
            parcels.source,
            np.searchsorted(parcel, np.arange(len(parcels.row) + 1)),
            broker.astype(np.int32),
            parcels.messages,
            np.zeros(len(parcels.row)),
        )
        if not self.plan.has(GroupsRecord):
            stored = read_trees(self.plan, brokers)
            edges = tuple(stored.links[own] for own in stored.members)
            trees = SharedTrees(edges, stored.of).hung(np.unique(routes.source))
            return GroupsProblem(
                brokers, trees, routes, trees.of(routes.source), *no_groups(routes)
            )
        groups = read_groups(self.plan, brokers)
        tree = groups.trees.of(routes.source)
        for lost in np.flatnonzero(tree == NONE)[:1]:
            what = f"broker {self.clients.brokers[routes.source[lost]]!r} sends, but is not a root"
            raise InputError(Problem("group_trees", what, "Plan groups for this traffic"))
        known = {key: group for group, key in enumerate(stored_keys(groups))}
        own = end_keys(tree, routes.starts, routes.brokers)
        group = np.array([known.get(key, NONE) for key in own], np.int32)
        ends = (groups.starts, groups.member.astype(np.int32))
        return GroupsProblem(brokers, groups.trees, routes, tree, group, groups.tree, *ends)


def no_groups(routes: Routes) -> tuple[Ints, Ints, Longs, Ints]:
    """Of a groups problem what says that all takes default routing."""
    nothing = np.empty(0, np.int32)
    return np.full(len(routes), NONE, np.int32), nothing, np.zeros(1, np.int64), nothing


def nothing_carried(parcels: Parcels) -> GroupsProblem:
    """One place, from which all are reached."""
    count = len(parcels.row)
    trees = BrokerTrees(np.zeros(1, np.int32), np.full((1, 1), NONE, np.int32))
    zeros, nothing = np.zeros(count, np.int32), np.empty(0, np.int32)
    routes = Routes(
        zeros, np.zeros(count + 1, np.int64), nothing, parcels.messages, np.zeros(count)
    )
    return GroupsProblem(pa.array([""]), trees, routes, zeros, *no_groups(routes))


def shared_edges(trees: BrokerTrees) -> tuple[tuple[Ints, ...], Longs]:
    """The different sets of links that trees consist of, and which each has."""
    found: dict[bytes, int] = {}
    edges: list[Ints] = []
    of = []
    for parent in trees.parent:
        child = np.flatnonzero(parent >= 0)
        ends = np.sort(np.stack((parent[child], child), axis=1).astype(np.int32), axis=1)
        ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
        if ends.tobytes() not in found:
            found[ends.tobytes()] = len(edges)
            edges.append(ends)
        of.append(found[ends.tobytes()])
    return tuple(edges), np.array(of, np.int64)


def hops_of(problem: GroupsProblem, way: Longs, shortcuts: bool) -> Hops:
    """The hops of each way, from one of the routes that take it."""
    timing = Timing(len(problem.brokers), None, 1.0)
    network, visits = group_ways(problem, np.ones(problem.size, bool), shortcuts, timing)
    _, first = np.unique(way, return_index=True)
    number = np.repeat(np.arange(len(way)), np.diff(visits.starts))
    link = visits.visits["link"].astype(np.int64)
    own = np.isin(number, first) & (link >= 0)
    route, link = number[own], link[own]
    ends = network.links[link >> 1].astype(np.int64)
    back = (link & 1).astype(bool)
    tail, head = np.where(back, ends[:, 1], ends[:, 0]), np.where(back, ends[:, 0], ends[:, 1])
    plain = problem.trees.parent[problem.tree[route], head] == tail
    kind = np.where(problem.group[route] < 0, TREE, np.where(plain, GROUP, SHORTCUT))
    return Hops(way[route], tail, head, kind.astype(np.int64))


@dataclass(frozen=True, eq=False)
class Reached:
    """How parcels come from brokers to people.

    ``parcel`` is the route of each (flow, entry) in the problem.
    """

    reading: WaysReader
    problem: GroupsProblem
    flow: Longs
    entry: Longs
    parcel: Longs

    @property
    def plan(self) -> StoredPlan:
        return self.reading.plan

    @cached_property
    def channel_domains(self) -> list[str]:
        """Where each channel reaches."""
        if not self.plan.has(ChannelsRecord):
            return []
        if not self.plan.has(DeliveryRecord):
            return [""] * self.plan.section(ChannelsRecord).channels
        table = self.plan.read("channel_domains", ("channel", "domain")).sort_by("channel")
        names: list[str] = table["domain"].to_pylist()
        return names

    @cached_property
    def domain(self) -> tuple[Longs, list[str]]:
        """The multicast domain of each broker, and the names of domains."""
        if not (self.plan.has(DeliveryRecord) and self.plan.has(GroupsRecord)):
            return np.zeros(len(self.problem.brokers), np.int64), [""]
        found, names = domains_of(self.plan, self.reading.dataset, self.problem.brokers)
        return found.astype(np.int64), list(names)

    def senders(self, at: Longs, domain: Longs) -> Longs:
        """Who sends a parcel on inside a domain."""
        of, _ = self.domain
        trees, problem = self.problem.trees, self.problem
        route = self.parcel[at]
        found, lost = nearest_senders(trees, problem.tree, of, problem.routes, route, domain)
        for missed in np.flatnonzero(lost)[:1]:
            what = f"nothing brings flow {self.flow[at[missed]]} to a domain"
            raise InputError(Problem("channels", what, "See what `fanplan check` says of the plan"))
        return found

    def listed(self, table: str, column: str, values: Longs) -> tuple[Longs, Longs]:
        """(parcel, value) for the rows of a table about the flow of each parcel."""
        names = self.reading.flow_table["flow"].combine_chunks()
        number = Axis("flow", names).number(self.plan.read(table, ("flow", column)))
        order = np.lexsort((values, number))
        starts = np.searchsorted(number[order], np.arange(len(names) + 1))
        which, at = expanded(starts, self.flow)
        return which, values[order][at]

    def sends(self) -> Sends:
        """Channels of each parcel, and the broker that sends to them."""
        if not self.channel_domains:
            return Sends(*np.empty((3, 0), np.int64))
        channel = self.plan.read("channel_flows", ("channel",))["channel"].to_numpy()
        parcel, on = self.listed("channel_flows", "channel", channel.astype(np.int64))
        domain = Axis("domain", pa.array(self.domain[1])).positions(pa.array(self.channel_domains))
        return Sends(parcel, self.senders(parcel, domain.astype(np.int64)[on]), on)

    def members(self) -> tuple[Longs, Longs]:
        if not self.channel_domains:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        table = self.plan.read("channel_subscribers", ("channel", "subscriber"))
        names = self.reading.clients.subscribers
        people = Axis("subscriber", pa.array(names)).number(table).astype(np.int64)
        return distinct_pairs(table["channel"].to_numpy().astype(np.int64), people, len(names))

    def last_hops(self) -> LastHops:
        """Who is sent each parcel by itself, and from where."""
        home = self.reading.clients.home.astype(np.int64)
        if not self.plan.has(ChannelsRecord):
            starts, people = self.reading.flow_audiences
            which, at = expanded(starts, self.flow)
            own = people[at]
            return LastHops(which, home[own], own, np.zeros(len(own), bool))
        table = self.plan.read("unicast", ("subscriber",))
        names = pa.array(self.reading.clients.subscribers)
        person = Axis("subscriber", names).number(table).astype(np.int64)
        parcel, own = self.listed("unicast", "subscriber", person)
        direct = self.direct()[self.reading.classes[self.flow[parcel]]]
        broker = np.where(direct, self.entry[parcel], home[own])
        inside = self.domain[0][home[own]]
        served = ~direct & (inside >= 0) & (not self.homes)
        broker[served] = self.senders(parcel[served], inside[served])
        return LastHops(parcel, broker, own, direct)

    @property
    def homes(self) -> bool:
        delivery = self.plan.find(DeliveryRecord)
        return delivery is not None and delivery.homes

    def direct(self) -> Bools:
        """Classes that are sent past brokers."""
        found = np.zeros(self.reading.interest.size, bool)
        if self.plan.has(DeliveryRecord):
            table = self.plan.read("direct_classes", ("audience_class",))
            found[table["audience_class"].to_numpy()] = True
        return found
