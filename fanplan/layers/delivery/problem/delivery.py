"""The delivery problem: one choice between channels, groups, unicast and default routing.

Traffic enters at a broker and must reach subscribers, each of whom has a home broker. Brokers are
linked by trees. Some brokers share a multicast domain, a site for example: a channel of the domain
reaches every subscriber of its brokers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import NONE, Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.data.build import equal_audiences, take_audiences
from fanplan.data.interest import InterestProblem
from fanplan.layers.groups.problem.groups import BrokerTrees
from fanplan.network.trees import depths


@dataclass(frozen=True, eq=False)
class DeliveryProblem:
    """Who wants which traffic, where it enters, and what can carry it.

    Row c of ``interest`` is an audience class. ``home[s]`` is the broker of subscriber s,
    ``domain[b]`` the multicast domain of broker b, from 0; NONE: there is no multicast. Parcel i is
    the part of class ``row[i]`` that enters at the root of tree ``tree[i]``.
    """

    interest: InterestProblem
    brokers: pa.Array
    trees: BrokerTrees
    home: Ints
    domain: Ints
    row: Ints
    tree: Ints
    messages: Floats

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
        return nearest(self.trees.root, self.trees.parent, self.domain, self.domains)

    @cached_property
    def segments(self) -> Segments:
        return segments_of(self)

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
            yield Problem("row", f"{self.row.max()} is no class", "Number classes from 0")
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


def segments_of(problem: DeliveryProblem) -> Segments:
    """O(audiences · log)."""
    interest = problem.interest
    row = np.repeat(np.arange(interest.size), interest.audience_sizes)
    domain = problem.domain[problem.home[interest.audience]]
    order = np.lexsort((interest.audience, domain, row))
    key = row[order] * (problem.domains + 1) + domain[order] + 1
    first = np.flatnonzero(np.diff(key, prepend=-1))
    counts = np.bincount(row[order][first], minlength=interest.size)
    return Segments(
        starts=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        domain=domain[order][first].astype(np.int32),
        bounds=np.append(first, len(row)).astype(np.int64),
        people=interest.audience[order],
    )


@dataclass(frozen=True, eq=False)
class Local:
    """What the subscribers of one domain want: an interest problem of their own.

    Its rows are different audiences within the domain; segment ``segment[i]`` has row ``row[i]``.
    """

    problem: InterestProblem
    segment: Longs
    row: Longs


def local_interest(problem: DeliveryProblem, domain: int, messages: Floats) -> Local:
    """Interest inside a domain, where segment k has ``messages[k]``; those without any are out."""
    segments = problem.segments
    own = np.flatnonzero((segments.domain == domain) & (messages > 0))
    rows, alike = equal_audiences(segments.bounds, segments.people, own)
    sizes = np.diff(segments.bounds)[rows]
    reduced = replace(
        problem.interest,
        indptr=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        audience=take_audiences(segments.bounds, segments.people, rows),
        messages=np.bincount(alike, messages[own], len(rows)).astype(np.float64),
        bytes=np.zeros(len(rows)),
        flows=np.bincount(alike, minlength=len(rows)).astype(np.int64),
        classes=np.arange(len(rows), dtype=np.int32),
    )
    return Local(reduced, own, alike)


@compiled
def nearest(root: Ints, parent: Ints, domain: Ints, domains: int) -> Ints:
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
