"""The publications of a trial: what each must cause, by the plan and by the exact selectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.core.errors import InputError, Problem
from fanplan.data.reader import read_manifest, read_stage
from fanplan.live.entry import DEFAULT, Entry, EntryTables, read_entry
from fanplan.plan.stored import StoredPlan
from fanplan.systems.publications import Timed, published_batches, read_published
from fanplan.systems.ways import Figures, Ways, read_clients, read_ways

DESCENT = "out of order"


@dataclass(frozen=True, eq=False)
class Traffic:
    """Publications that somebody wants, in the order of their times.

    Publication i is of parcel ``parcel[i]`` of the ways. ``wanted`` has a number for each pair of a
    publication and a subscriber whose selectors ask for it, ascending.
    """

    ways: Ways
    tables: EntryTables
    published: Timed
    flow: Longs
    parcel: Longs
    wanted: Longs
    unwanted_by_all: int
    first: int = 0

    def since(self, first: int) -> Traffic:
        """The same, but nothing is expected of publications before ``first``."""
        later = self.wanted[self.wanted >= first * len(self.ways.subscribers)]
        return replace(self, wanted=later, first=first)

    @property
    def size(self) -> int:
        return len(self.parcel)

    @property
    def messages(self) -> Longs:
        """How many publications each parcel has."""
        own = self.parcel[self.first :]
        return np.bincount(own, minlength=len(self.ways.flow)).astype(np.int64)

    @cached_property
    def copies(self) -> Longs:
        """How many copies of each parcel subscribers get."""
        own = self.ways.copies
        return np.bincount(own.parcel, own.copies, len(self.ways.flow)).astype(np.int64)


def read_traffic(plan: StoredPlan, dataset: Path, most: int | None = None) -> Traffic:
    """The first publications of a dataset on the ways of its plan, without Spark."""
    tables = read_entry(dataset)
    entry, published = Entry(tables), read_published(dataset, tables, most)
    flow, broker = entry_points(entry, published, read_clients(plan, dataset).entry_of())
    if (flow == DEFAULT).any():
        what = f"{(flow == DEFAULT).sum():,} publications are in flows that it does not have"
        raise InputError(Problem(str(dataset), what, "Ingest the workload again, and plan again"))
    sent = flow >= 0
    ways = read_ways(plan, dataset, flow[sent], broker[sent])
    offsets, people = entry.audiences(published.topic[sent], published.x[sent])
    pair = np.repeat(np.arange(int(sent.sum())), np.diff(offsets)) * len(ways.subscribers) + people
    return Traffic(
        ways=ways,
        tables=tables,
        published=published.only(sent),
        flow=flow[sent],
        parcel=ways.parcels(flow[sent], broker[sent]),
        wanted=np.sort(pair),
        unwanted_by_all=int((~sent).sum()),
    )


def entry_points(entry: Entry, sent: Timed, at: Mapping[str, int]) -> tuple[Longs, Longs]:
    """The flow of each publication, and the broker where it enters."""
    broker = np.array([at[name] for name in sent.publishers], np.int64)[sent.publisher]
    return entry.flows(sent.topic, sent.x), broker


def planned_ways(plan: StoredPlan, dataset: Path) -> Ways:
    """The ways of all that was published; of a workload without publications, of all flows.

    Publications are looked at some at a time: what is kept are different pairs of flow and broker.
    """
    if "publications" in read_manifest(dataset).stages:
        tables, at = read_entry(dataset), read_clients(plan, dataset).entry_of()
        finder, found = Entry(tables), np.empty((0, 2), np.int64)
        for some in published_batches(dataset, tables):
            pairs = np.stack(entry_points(finder, some, at), axis=1)
            found = np.unique(np.concatenate((found, pairs[pairs[:, 0] >= 0])), axis=0)
        return read_ways(plan, dataset, found[:, 0], found[:, 1])
    flows = len(read_stage(dataset, "flows", ("flow",)))
    entries = np.unique(read_clients(plan, dataset).entry).astype(np.int64)
    flow, entry = np.repeat(np.arange(flows), len(entries)), np.tile(entries, flows)
    return read_ways(plan, dataset, flow, entry)


def received_figures(traffic: Traffic, who: Longs, number: Longs, path: Longs) -> Figures:
    """What subscribers got, from all copies in the order in which each of them got its own.

    ``path`` tells apart on what a copy came: on one, publications of a source and flow keep order.
    """
    people, names = len(traffic.ways.subscribers), traffic.ways.subscribers
    pair = number * people + who
    found, copies = np.unique(pair, return_counts=True)
    asked = np.isin(found, traffic.wanted, assume_unique=True)
    missed = traffic.wanted[~np.isin(traffic.wanted, found, assume_unique=True)]
    source = traffic.published.publisher[number].astype(np.int64)
    order = np.lexsort((np.arange(len(number)), traffic.flow[number], source, path, who))
    same = np.ones(max(len(order) - 1, 0), bool)
    for group in (who, path, source, traffic.flow[number]):
        same &= group[order][1:] == group[order][:-1]
    back = order[1:][same & (np.diff(number[order]) < 0)]
    totals = {
        "wanted": np.bincount(found[asked] % people, minlength=people),
        "unwanted": np.bincount(found[~asked] % people, copies[~asked], people),
        "twice": np.bincount(found[asked] % people, copies[asked] - 1, people),
        "missed": np.bincount(missed % people, minlength=people),
        DESCENT: np.bincount(who[back], minlength=people),
    }
    return {
        ("subscriber", name, what): int(count)
        for what, counts in totals.items()
        for name, count in zip(names, counts.tolist(), strict=True)
    }
