"""The delivery problem: one choice between channels, groups, unicast and default routing.

Traffic enters at a broker and must reach subscribers, each of whom has a home broker. Brokers are
linked by trees. Some brokers share a multicast domain, a site for example: a channel of the domain
reaches every subscriber of its brokers, and so does a message to one of them alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import NONE, Bools, Floats, Ints, Longs, starts_of
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.data.build import equal_audiences
from fanplan.data.interest import InterestProblem, load_classes, take_audiences
from fanplan.data.reader import read_stage
from fanplan.layers.groups.problem.build import NOWHERE
from fanplan.layers.groups.problem.groups import BrokerTrees
from fanplan.layers.groups.problem.trees import TreeSource
from fanplan.network.dataset import publisher_names
from fanplan.network.trees import depths

EVERYWHERE = np.zeros(1, np.int32)
"""The domain of the only broker there is, where there are none: multicast reaches everybody."""


@dataclass(frozen=True, eq=False)
class DeliveryProblem:
    """Who wants which traffic, where it enters, and what can carry it.

    Row c of ``interest`` is an audience class. ``home[s]`` is the broker of subscriber s,
    ``domain[b]`` the multicast domain of broker b, from 0; NONE: there is no multicast. Parcel i is
    the part of class ``row[i]`` that enters at the root of tree ``tree[i]``. With ``homes`` only
    the home broker may send to one subscriber alone; without, any broker of its domain.
    """

    interest: InterestProblem
    brokers: pa.Array
    trees: BrokerTrees
    home: Ints
    domain: Ints
    row: Ints
    tree: Ints
    messages: Floats
    homes: bool = False

    def __post_init__(self) -> None:
        problems = [*self._sizes()] or [*self._parcels()]
        if problems:
            raise InputError(problems)

    @property
    def domains(self) -> int:
        return int(self.domain.max(initial=NONE)) + 1

    @cached_property
    def gateways(self) -> Ints:
        """Trees × domains: the broker of the domain that is nearest to the root."""
        return nearest_brokers(self.trees.root, self.trees.parent, self.domain, self.domains)

    @cached_property
    def segments(self) -> Segments:
        return segments_of(self)

    @cached_property
    def beyond(self) -> Longs:
        """How many want each parcel whom the broker where it enters does not reach by itself."""
        interest, root = self.interest, self.trees.root[self.tree]
        return count_beyond(
            interest.indptr, interest.audience, self.home, self.domain, self.row, root, self.homes
        )

    def _sizes(self) -> Iterator[Problem]:
        brokers, parcels = len(self.brokers), len(self.messages)
        sizes = {"home": len(self.interest.subscribers), "domain": brokers}
        for name, size in (sizes | {"row": parcels, "tree": parcels}).items():
            if len(getattr(self, name)) != size:
                what = f"{len(getattr(self, name))} numbers for {size}"
                yield Problem(name, what, "Give one for each")
        if self.trees.brokers != brokers:
            what = f"{brokers} names for {self.trees.brokers} brokers of trees"
            yield Problem("brokers", what, "Give a name for each")

    def _parcels(self) -> Iterator[Problem]:
        totals = np.bincount(self.row, self.messages, self.interest.size)
        if len(totals) > self.interest.size:
            yield Problem("row", f"{self.row.max()} is not a class", "Number classes from 0")
        elif not np.allclose(totals, self.interest.messages, rtol=1e-6, atol=1e-6):
            row = int(np.argmax(np.abs(totals - self.interest.messages)))
            what = f"{totals[row]:g} messages enter, {self.interest.messages[row]:g} are wanted"
            yield Problem(f"class {row}", what, "Give all its parcels")


@dataclass(frozen=True, eq=False)
class Segments:
    """Audiences split by multicast domain, those without one first.

    Class c has the segments ``starts[c]:starts[c + 1]``. Segment k is in ``domain[k]`` and has the
    subscribers ``people[bounds[k]:bounds[k + 1]]``, ascending.
    """

    starts: Longs
    domain: Ints
    bounds: Longs
    people: Ints

    @property
    def row(self) -> Longs:
        """The class of each segment."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @property
    def shared(self) -> Bools:
        """Whether a channel could serve a segment: it has a domain, and two or more subscribers."""
        return (self.domain >= 0) & (np.diff(self.bounds) > 1)


@dataclass(frozen=True, eq=False)
class DomainInterest:
    """What the subscribers of one domain want: an interest problem of their own.

    Its rows are different audiences within the domain; segment ``segment[i]`` has row ``row[i]``.
    """

    problem: InterestProblem
    segment: Longs
    row: Longs


def load_delivery(
    dataset: Path,
    brokers: pa.Array,
    clients: pa.Table,
    source: TreeSource,
    domain: Ints,
    homes: bool,
) -> DeliveryProblem:
    """Traffic that enters where publishers are, on trees hung there.

    ``clients`` has client, role and broker; who is at several is taken to be at the first by name.
    """
    interest = load_classes(dataset)
    home = client_homes(clients, "subscriber", interest.subscribers, brokers)
    entry = client_homes(clients, "publisher", publisher_names(dataset), brokers)
    row, broker, messages = entering_parcels(dataset, interest, entry)
    trees = source.hung(np.unique(broker))
    tree = trees.of(broker)
    for lost in broker[tree == NONE][:1]:
        what = f"broker {brokers[int(lost)].as_py()!r} sends, but is not a root"
        raise InputError(Problem("trees", what, "Give a tree for every broker that sends"))
    return DeliveryProblem(interest, brokers, trees, home, domain, row, tree, messages, homes)


def load_flat(dataset: Path) -> DeliveryProblem:
    """The problem of a dataset without brokers: whoever publishes, channels reach everybody."""
    interest = load_classes(dataset)
    nowhere = np.full((1, 1), NONE, np.int32)
    return DeliveryProblem(
        interest=interest,
        brokers=pa.array([NOWHERE]),
        trees=BrokerTrees(np.zeros(1, np.int32), nowhere),
        home=np.zeros(len(interest.subscribers), np.int32),
        domain=EVERYWHERE,
        row=np.arange(interest.size, dtype=np.int32),
        tree=np.zeros(interest.size, np.int32),
        messages=interest.messages,
    )


def client_homes(clients: pa.Table, role: str, names: pa.Array, brokers: pa.Array) -> Ints:
    """The broker of each client, as positions."""
    rows = clients.filter(pc.equal(clients["role"], role)).sort_by(
        [("client", "ascending"), ("broker", "descending")]
    )
    at, broker = pc.index_in(rows["client"], names), pc.index_in(rows["broker"], brokers)
    home = np.full(len(names), NONE, np.int32)
    known = np.flatnonzero(at.is_valid().to_numpy())
    # Of several the last counts, and brokers descend.
    home[at.fill_null(NONE).to_numpy()[known]] = broker.fill_null(NONE).to_numpy()[known]
    for lost in np.flatnonzero(home == NONE)[:1]:
        what = "has no broker"
        remedy = "Give it one in the workload, or allocate clients"
        raise InputError(Problem(f"{role} {names[int(lost)].as_py()!r}", what, remedy))
    return home


def entering_parcels(
    dataset: Path, interest: InterestProblem, entry: Ints
) -> tuple[Ints, Ints, np.ndarray]:
    """Class, broker and messages of what enters; shares of what the class has in all."""
    table = read_stage(dataset, "senders", ("publisher", "audience_class", "messages"))
    row = table["audience_class"].to_numpy().astype(np.int64)
    broker = entry[table["publisher"].to_numpy()].astype(np.int64)
    brokers = int(broker.max(initial=0)) + 1
    key, place = np.unique(row * brokers + broker, return_inverse=True)
    sent = np.bincount(place, table["messages"].to_numpy(), len(key))
    row, broker = key // brokers, key % brokers
    totals = np.bincount(row, sent, interest.size)
    used = sent > 0
    row, broker, sent = row[used], broker[used], sent[used]
    # Where totals are the same, as with measured rates, whole numbers stay whole.
    messages = sent * (interest.messages[row] / totals[row])
    return row.astype(np.int32), broker.astype(np.int32), messages


def require_senders(dataset: Path) -> None:
    """Of all that is wanted somebody is known to send it, after the pipeline made `senders`."""
    interest = load_classes(dataset)
    table = read_stage(dataset, "senders", ("audience_class", "messages"))
    row, sent = (table[name].to_numpy() for name in ("audience_class", "messages"))
    totals = np.bincount(row, sent, interest.size)
    for lost in np.flatnonzero((totals <= 0) & (interest.messages > 0))[:1]:
        what = f"nobody is known to send what audience class {lost} wants"
        raise InputError(Problem(str(dataset), what, "Name publishers in the publications"))


def segments_of(problem: DeliveryProblem) -> Segments:
    """O(audiences · log)."""
    interest = problem.interest
    row = interest.pair_rows
    domain = problem.domain[problem.home[interest.audience]]
    order = np.lexsort((interest.audience, domain, row))
    key = row[order] * (problem.domains + 1) + domain[order] + 1
    first = np.flatnonzero(np.diff(key, prepend=-1))
    counts = np.bincount(row[order][first], minlength=interest.size)
    return Segments(
        starts=starts_of(counts),
        domain=domain[order][first].astype(np.int32),
        bounds=np.append(first, len(row)).astype(np.int64),
        people=interest.audience[order],
    )


def local_interest(problem: DeliveryProblem, domain: int, messages: Floats) -> DomainInterest:
    """Interest inside a domain, where segment k has ``messages[k]``; those without any are out."""
    segments = problem.segments
    own = np.flatnonzero((segments.domain == domain) & (messages > 0))
    rows, alike = equal_audiences(segments.bounds, segments.people, own)
    sizes = np.diff(segments.bounds)[rows]
    reduced = replace(
        problem.interest,
        indptr=starts_of(sizes),
        audience=take_audiences(segments.bounds, segments.people, rows),
        messages=np.bincount(alike, messages[own], len(rows)).astype(np.float64),
        bytes=np.zeros(len(rows)),
        flows=np.bincount(alike, minlength=len(rows)).astype(np.int64),
        classes=np.arange(len(rows), dtype=np.int32),
        wanted=None,
    )
    return DomainInterest(reduced, own, alike)


def shared_pairs(problem: DeliveryProblem, row: Ints, person: Ints) -> Bools:
    """Of (class, subscriber) pairs those whom a channel could serve together with another."""
    segments, width = problem.segments, problem.domains + 1
    key = row.astype(np.int64) * width + problem.domain[problem.home[person]]
    at = np.searchsorted(segments.row * width + segments.domain, key)
    result: Bools = segments.shared[at]
    return result


@compiled
def count_beyond(
    indptr: Longs, audience: Ints, home: Ints, domain: Ints, row: Ints, root: Ints, homes: bool
) -> Longs:
    """Of each parcel's audience those who are neither at its broker nor, unless only homes send,
    in its domain."""
    count = np.zeros(len(row), np.int64)
    for i in range(len(row)):
        z = NONE if homes else domain[root[i]]
        for subscriber in audience[indptr[row[i]] : indptr[row[i] + 1]]:
            at = home[subscriber]
            count[i] += at != root[i] and (z < 0 or domain[at] != z)
    return count


@compiled
def nearest_brokers(root: Ints, parent: Ints, domain: Ints, domains: int) -> Ints:
    """Of each tree and domain the broker with fewest hops from the root, ties to the first."""
    found = np.full((len(root), domains), NONE, np.int32)
    for tree in range(len(root)):
        hops = depths(parent[tree])
        best = np.full(domains, np.iinfo(np.int64).max)
        for broker in range(len(domain)):
            z = domain[broker]
            if z < 0 or (broker != root[tree] and parent[tree, broker] < 0):
                continue
            if hops[broker] < best[z]:
                best[z], found[tree, z] = hops[broker], broker
    return found
