"""What a delivery costs that stands between two plans, or meets other traffic than planned for.

It is counted flow by flow, since flows with one audience need not be delivered alike there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import NONE, Floats, Ints, Longs
from fanplan.data.build import take_audiences
from fanplan.data.interest import InterestProblem
from fanplan.data.reader import read_stage
from fanplan.layers.channels.changes.world import relation_sides
from fanplan.layers.channels.check.evidence import ChannelTruth, Decisions
from fanplan.layers.channels.map import map_pairs
from fanplan.layers.delivery.problem import DeliveryProblem
from fanplan.layers.delivery.recount import recounted_routes
from fanplan.layers.groups.changes import Group
from fanplan.layers.groups.ledger import groups_ledger
from fanplan.layers.groups.problem.build import exact_groups
from fanplan.layers.groups.problem.trees import PartTrees
from fanplan.layers.overlay.changes.shape import Shape
from fanplan.layers.overlay.changes.states import homes, positions
from fanplan.network.dataset import publisher_names

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


def read_senders(dataset: Path, truth: ChannelTruth) -> Senders:
    """O(flows × publishers of a class)."""
    table = read_stage(dataset, "senders", ("publisher", "audience_class", "messages"))
    table = table.sort_by([("audience_class", "ascending"), ("publisher", "ascending")])
    row, sent = table["audience_class"].to_numpy(), table["messages"].to_numpy()
    classes = len(truth.audience_starts) - 1
    starts = np.searchsorted(row, np.arange(classes + 1))
    total = np.bincount(row, sent, classes)
    counts = np.diff(starts)[truth.classes]
    flow = np.repeat(np.arange(len(truth.classes)), counts)
    within = np.arange(len(flow)) - np.repeat(np.cumsum(counts) - counts, counts)
    at = starts[truth.classes[flow]] + within
    share = sent[at] / np.maximum(total[row[at]], np.finfo(float).tiny)
    messages = share * truth.messages[flow]
    used = messages > 0
    publisher = table["publisher"].to_numpy()[at].astype(np.int64)
    return Senders(flow[used], publisher[used], messages[used], publisher_names(dataset))


def problem_on(
    shape: Shape, sites: Sites, truth: ChannelTruth, senders: Senders
) -> DeliveryProblem:
    """The delivery problem by flows where brokers and clients stand; who has no broker is out."""
    names = pa.array(sorted(shape.brokers), pa.string())
    home = homes(shape, "subscriber", truth.subscribers, names)
    entry = homes(shape, "publisher", senders.publishers, names)[senders.publisher]
    key = (senders.flow * len(names) + entry)[entry >= 0]
    parcels, place = np.unique(key, return_inverse=True)
    messages: Floats = np.zeros(len(parcels))
    np.add.at(messages, place, senders.messages[entry >= 0])
    row, broker = parcels // len(names), parcels % len(names)
    trees = shape_trees(shape, names).hung(np.unique(broker).astype(np.int32))
    entering: Floats = np.zeros(len(truth.names))
    np.add.at(entering, row, messages)
    return DeliveryProblem(
        interest=interest_of(truth, home, entering),
        brokers=names,
        trees=trees,
        home=np.maximum(home, 0),
        domain=domains_of(names, sites),
        row=row.astype(np.int32),
        tree=trees.of(broker.astype(np.int32)),
        messages=messages,
    )


def domains_of(brokers: pa.Array, sites: Sites) -> Ints:
    """The domain of each broker, numbered by name."""
    number = {site: i for i, site in enumerate(sorted(set(sites.values())))}
    found = [number[sites[b]] if b in sites else NONE for b in brokers.to_pylist()]
    return np.array(found, np.int32)


def shape_trees(shape: Shape, names: pa.Array) -> PartTrees:
    numbers = sorted(shape.trees)
    first = numbers[0]
    of = [numbers.index(shape.of.get(broker, first)) for broker in names.to_pylist()]
    edges = tuple(positions(sorted(shape.trees[number]), names) for number in numbers)
    everybody = np.arange(len(names), dtype=np.int32)
    return PartTrees(edges, np.array(of, np.int32), everybody, len(names))


def interest_of(truth: ChannelTruth, home: Ints, messages: Floats) -> InterestProblem:
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
    assigned, members = (
        map_pairs(*relation_sides(r)) for r in (decisions.channels, decisions.members)
    )
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
