"""What passes brokers and links, and why: the flows of a plan on their ways, for its page."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Floats, Longs, expanded, listed_by, starts_of
from fanplan.core.errors import InputError
from fanplan.data.described import ranges_at
from fanplan.data.reader import read_stage
from fanplan.layers.delivery.carried import Parcels
from fanplan.layers.delivery.problem import entering_parcels
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.network.brokers import end_keys
from fanplan.page.details import Fact, Related, Shelf
from fanplan.page.network import link_name
from fanplan.plan.stored import StoredPlan
from fanplan.systems.ways import KINDS, Hops, WaysReader, hops_of, read_clients, require_enactable

MOST = 15
"""Flows that are told of a broker or a link: those with most messages."""
NAMED = 4
"""Brokers that a reason names."""
OWN = "its own clients"
HOW = dict(zip(KINDS, ("matched at each broker", "in a group", "by a shortcut"), strict=True))


def passing_shelves(plan: StoredPlan, dataset: Path) -> list[Shelf]:
    """Shelves of brokers, links, groups and publishers; none if the ways cannot be told.

    That is so without brokers, where cells are coarser than filters, and where it is not stored
    who sends what.
    """
    if not (dataset / "senders").is_dir():
        return []
    try:
        require_enactable(plan, dataset)
        reading = WaysReader(plan, dataset, read_clients(plan, dataset))
        return [] if reading.clients.brokers == [""] else Passing(reading).shelves()
    except InputError:
        # A page tells what it can; what is wrong with the input is what `ask` and `export` say.
        return []


@dataclass(frozen=True, eq=False)
class Passing:
    """Every audience class from where it enters. A parcel is a class that enters at a broker."""

    reading: WaysReader

    @cached_property
    def parcels(self) -> Parcels:
        entry = self.reading.clients.entry
        row, source, messages = entering_parcels(self.reading.dataset, self.reading.interest, entry)
        return Parcels(row.astype(np.int64), source, messages)

    @cached_property
    def rate(self) -> Floats:
        """Messages per second of each parcel."""
        return self.parcels.messages / self.reading.interest.seconds

    @cached_property
    def problem(self) -> GroupsProblem:
        return self.reading.problem(self.parcels)

    @cached_property
    def way(self) -> Longs:
        """Parcels with the same entry and destinations share a way."""
        routes = self.problem.routes
        keys = end_keys(self.problem.tree, routes.starts, routes.brokers)
        number = {key: way for way, key in enumerate(dict.fromkeys(keys))}
        return np.array([number[key] for key in keys], np.int64)

    @cached_property
    def hops(self) -> Hops:
        return hops_of(self.problem, self.way, self.reading.shortcuts)

    @cached_property
    def crossings(self) -> tuple[Longs, Longs]:
        """Every hop with every parcel that makes it."""
        starts, order = listed_by(self.way, int(self.way.max(initial=-1)) + 1)
        hop, at = expanded(starts, self.hops.way)
        return hop, order[at]

    @cached_property
    def flow(self) -> tuple[list[str], Longs]:
        """The names of the busiest flow of each class that has one, and where each class stands."""
        columns = ("flow", "audience_class", "messages")
        table = read_stage(self.reading.dataset, "flows", columns)
        row, messages = (table[name].to_numpy() for name in columns[1:])
        wanted = np.flatnonzero(row >= 0)
        order = wanted[np.lexsort((wanted, -messages[wanted], row[wanted]))]
        classes, first = np.unique(row[order], return_index=True)
        place = np.full(self.reading.interest.size, -1, np.int64)
        place[classes] = np.arange(len(classes))
        names: list[str] = table["flow"].take(order[first]).to_pylist()
        return names, place

    def shelves(self) -> list[Shelf]:
        brokers = Shelf("broker", self.names, (), [self.entering(), self.through()])
        own = [brokers, self.links(), *self.groups(), self.publishers()]
        used = [related.items for shelf in own for related in shelf.related]
        return [*own, self.flows(np.unique(np.concatenate(used)))]

    def flow_of(self, parcel: Longs) -> Longs:
        return self.flow[1][self.parcels.row[parcel]]

    def entering(self) -> Related:
        key = self.parcels.source.astype(np.int64)
        starts, parcel, totals = self.busiest(key, np.arange(len(key)), len(self.names))
        columns = [Fact("rate", self.rate[parcel].tolist(), "rate"), self.alike(parcel)]
        about = ("Enters here", "flow", self.flow[0], starts, self.flow_of(parcel), columns)
        return Related(*about, back="Enters at", totals=totals)

    def through(self) -> Related:
        """What comes to each broker from others."""
        hop, parcel = self.crossings
        starts, own, totals = self.busiest(self.hops.head[hop], parcel, len(self.names))
        hop, parcel = hop[own], parcel[own]
        tail = [self.names[i] for i in self.hops.tail[hop].tolist()]
        columns = [
            Fact("rate", self.rate[parcel].tolist(), "rate"),
            Fact("from", tail),
            Fact("why", self.reasons(hop, parcel, OWN)),
        ]
        about = ("Comes here, and why", "flow", self.flow[0], starts, self.flow_of(parcel))
        return Related(*about, columns, totals=totals)

    def links(self) -> Shelf:
        """What passes links and shortcuts, in either direction."""
        hop, parcel = self.crossings
        ends = np.sort(np.stack((self.hops.tail, self.hops.head)), axis=0)
        key, link = np.unique(ends[0] * len(self.names) + ends[1], return_inverse=True)
        pairs = [divmod(int(one), len(self.names)) for one in key]
        starts, own, totals = self.busiest(link.ravel()[hop], parcel, len(key))
        hop, parcel = hop[own], parcel[own]
        ways = zip(self.hops.tail[hop].tolist(), self.hops.head[hop].tolist(), strict=True)
        columns = [
            Fact("rate", self.rate[parcel].tolist(), "rate"),
            Fact("direction", [f"{self.names[a]} → {self.names[b]}" for a, b in ways]),
            Fact("how", [HOW[KINDS[kind]] for kind in self.hops.kind[hop].tolist()]),
            Fact("why", self.reasons(hop, parcel)),
        ]
        about = ("What passes, and why", "flow", self.flow[0], starts, self.flow_of(parcel))
        related = Related(*about, columns, totals=totals)
        return Shelf(
            "link", [link_name(self.names[a], self.names[b]) for a, b in pairs], (), [related]
        )

    def groups(self) -> list[Shelf]:
        group = self.problem.group.astype(np.int64)
        own = np.flatnonzero(group >= 0)
        if not len(own):
            return []
        count = self.problem.size
        starts, parcel, totals = self.busiest(group[own], own, count)
        parcel = own[parcel]
        columns = [Fact("rate", self.rate[parcel].tolist(), "rate"), self.alike(parcel)]
        about = ("Flows in it", "flow", self.flow[0], starts, self.flow_of(parcel), columns)
        related = Related(*about, back="In groups", totals=totals)
        return [Shelf("group", [str(i) for i in range(count)], (), [related])]

    def publishers(self) -> Shelf:
        table = read_stage(
            self.reading.dataset, "senders", ("publisher", "audience_class", "messages")
        )
        who, row, messages = (column.to_numpy() for column in table.columns)
        own = np.flatnonzero((messages > 0) & (self.flow[1][row] >= 0))
        who, row, rate = who[own], row[own], messages[own] / self.reading.interest.seconds
        names = self.reading.clients.publishers
        starts, order, totals = first_of_each(who.astype(np.int64), rate, len(names))
        columns = [Fact("rate", rate[order].tolist(), "rate")]
        about = ("Sends", "flow", self.flow[0], starts, self.flow[1][row[order]], columns)
        return Shelf("publisher", names, (), [Related(*about, back="Sent by", totals=totals)])

    def flows(self, used: Longs) -> Shelf:
        """What the flows are that others name, by their place among the busiest of classes."""
        columns = ("flow", "topic", "messages", "audience_class")
        table = read_stage(self.reading.dataset, "flows", columns)
        table = table.filter(pc.greater_equal(table["audience_class"], 0)).combine_chunks()
        names = pa.array([self.flow[0][i] for i in used.tolist()], table["flow"].type)
        place = np.sort(pc.index_in(names, table["flow"].combine_chunks()).to_numpy())
        own = table.take(place)
        rate = own["messages"].to_numpy() / self.reading.interest.seconds
        facts = [
            Fact("what it is", ranges_at(self.reading.dataset, place), "words"),
            Fact("topic", own["topic"].to_pylist()),
            Fact("sent", rate.tolist(), "rate"),
        ]
        return Shelf("flow", own["flow"].to_pylist(), facts)

    @property
    def names(self) -> list[str]:
        return self.reading.clients.brokers

    def alike(self, parcel: Longs) -> Fact:
        """How many flows have the same audience, and go the same way."""
        flows = self.reading.interest.flows[self.parcels.row[parcel]]
        return Fact("flows like it", flows.tolist())

    def busiest(self, key: Longs, parcel: Longs, count: int) -> tuple[Longs, Longs, list[int]]:
        return first_of_each(key, self.rate[parcel], count)

    def reasons(self, hop: Longs, parcel: Longs, own: str = "") -> list[str]:
        """For whom a parcel makes a hop: the brokers beyond that must have it.

        The one where the hop ends is called ``own``, or by its name.
        """
        hops, routes = self.hops, self.problem.routes
        below: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        needed = np.isin(hops.way, hops.way[hop])
        for way, tail, head in zip(*(column[needed].tolist() for column in hops[:3]), strict=True):
            below[way][tail].append(head)
        found = []
        for h, p in zip(hop.tolist(), parcel.tolist(), strict=True):
            beyond = reached(below[int(hops.way[h])], int(hops.head[h]))
            ends = routes.brokers[routes.starts[p] : routes.starts[p + 1]].tolist()
            names = {int(hops.head[h]): own} if own else {}
            found.append(self.words([end for end in ends if end in beyond], names))
        return found

    def words(self, ends: list[int], called: dict[int, str]) -> str:
        names = [called.get(end, self.names[end]) for end in ends]
        names.sort(key=lambda name: name not in called.values())
        more = len(names) - NAMED
        named = [*names[:NAMED], *([f"{more} more brokers"] if more > 0 else [])]
        return f"for {', '.join(named)}" if named else "on the group's way"


def reached(below: dict[int, list[int]], start: int) -> set[int]:
    """All brokers that a way comes to from one on."""
    found, left = {start}, [start]
    while left:
        for head in below.get(left.pop(), ()):
            if head not in found:
                found.add(head)
                left.append(head)
    return found


def first_of_each(key: Longs, rate: Floats, count: int) -> tuple[Longs, Longs, list[int]]:
    """The busiest few of each key: where they start, their positions, and how many there are."""
    order = np.lexsort((np.arange(len(key)), -rate, key))
    starts = np.searchsorted(key[order], np.arange(count + 1))
    sizes = np.diff(starts)
    rank = np.arange(len(order)) - np.repeat(starts[:-1], sizes)
    return starts_of(np.minimum(sizes, MOST)), order[rank < MOST], sizes.tolist()
