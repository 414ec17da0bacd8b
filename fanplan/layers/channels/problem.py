"""Channels on switches with tables of limited size: who wants what at which hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Floats, Ints, Longs, starts_of
from fanplan.core.errors import InputError, Problem, similar
from fanplan.data.interest import InterestProblem
from fanplan.data.reader import read_manifest, read_stage
from fanplan.network.dataset import given_clients, read_link_table
from fanplan.network.fabric import Fabric, make_fabric

OPTION = "max_switch_entries"
ROOTS = 64
"""Switches that trees may be hung up at."""


@dataclass(frozen=True, eq=False)
class SwitchProblem:
    """Rows of traffic by host.

    Row i goes from the host ``source[i]`` to the hosts ``hosts[starts[i]:starts[i + 1]]``,
    ascending, each with so many subscribers who want it (``copies``). Switch s holds at most
    ``limit[s]`` entries. ``home`` is the host of each subscriber.
    """

    fabric: Fabric
    starts: Longs
    hosts: Ints
    copies: Ints
    source: Ints
    messages: Floats
    limit: Longs
    roots: Ints
    home: Ints

    @property
    def size(self) -> int:
        return len(self.messages)


def switch_problem(
    fabric: Fabric, interest: InterestProblem, home: Ints, source: Ints, limit: Longs
) -> SwitchProblem:
    """The problem of rows that enter at hosts; ``home`` is the host of each subscriber."""
    row = np.repeat(np.arange(interest.size, dtype=np.int64), interest.audience_sizes)
    keys = row * len(fabric.hosts) + home[interest.audience]
    if not bool((np.diff(keys) > 0).all()):
        keys, copies = np.unique(keys, return_counts=True)
    else:
        copies = np.ones(len(keys), np.int32)
    row, host = np.divmod(keys, len(fabric.hosts))
    starts = starts_of(np.bincount(row, minlength=interest.size))
    return SwitchProblem(
        fabric,
        starts,
        host.astype(np.int32),
        copies.astype(np.int32),
        source,
        interest.messages,
        limit,
        fabric.roots(ROOTS),
        home,
    )


def load_switch_problem(
    dataset: Path, interest: InterestProblem, limit: int | Mapping[str, int]
) -> SwitchProblem:
    """The problem of a dataset, whose rows are flows."""
    links = read_link_table(dataset)
    if links is None:
        remedy = "Add a table links, with the switches"
        raise InputError(Problem(OPTION, "no network is known", remedy))
    clients = given_clients(dataset)
    hosts = pa.array(clients["broker"].unique().to_pylist(), pa.string()).sort()
    fabric = make_fabric(links["a"].combine_chunks(), links["b"].combine_chunks(), hosts)
    home = home_hosts(clients, interest.subscribers, hosts)
    source = flow_sources(dataset, hosts)
    return switch_problem(fabric, interest, home, source, table_sizes(fabric, limit))


def home_hosts(clients: pa.Table, subscribers: pa.Array, hosts: pa.Array) -> Ints:
    """The host of each subscriber; of several the first by name."""
    mine = clients.filter(pc.equal(clients["role"], "subscriber"))
    first = mine.group_by("client").aggregate([("broker", "min")])
    at = pc.index_in(subscribers.cast(pa.string()), first["client"].combine_chunks())
    if at.null_count:
        name = subscribers.filter(at.is_null())[0].as_py()
        what = f"{name!r} is at no broker, so it hangs at no switch"
        raise InputError(Problem("subscriptions", what, "Add a column broker"))
    found = pc.index_in(first["broker_min"].combine_chunks().take(at), hosts)
    result: Ints = found.to_numpy().astype(np.int32)
    return result


def flow_sources(dataset: Path, hosts: pa.Array) -> Ints:
    """Where each wanted flow enters: at the first broker, by name, that advertises its topic."""
    flows = read_stage(dataset, "flows", ("topic", "audience_class"))
    topics = flows.filter(pc.greater_equal(flows["audience_class"], 0))["topic"].combine_chunks()
    at = pa.nulls(len(topics), pa.int32())
    if "advertisements" in read_manifest(dataset).stages:
        sent = read_stage(dataset, "advertisements", ("topic", "broker")).drop_null()
        first = sent.group_by("topic").aggregate([("broker", "min")])
        place = pc.index_in(topics, first["topic"].combine_chunks())
        at = pc.index_in(first["broker_min"].combine_chunks().take(place), hosts)
    if at.null_count:
        name = topics.filter(at.is_null())[0].as_py()
        what = f"nobody advertises {name!r} at a broker, so it is not known where it enters"
        raise InputError(Problem("advertisements", what, "Advertise it by name, with a broker"))
    result: Ints = at.to_numpy().astype(np.int32)
    return result


def table_sizes(fabric: Fabric, limit: int | Mapping[str, int]) -> Longs:
    """The most entries of each switch; where nothing is said, as many as there can be."""
    if isinstance(limit, int):
        return np.full(len(fabric.switches), limit)
    names = fabric.switches.to_pylist()
    strange = [name for name in limit if name not in set(names)][:10]
    if strange:
        raise InputError(
            Problem(OPTION, f"there is no switch {n!r}", similar(n, names) or "Leave it out")
            for n in strange
        )
    unlimited = np.iinfo(np.int64).max
    return np.array([limit.get(name, unlimited) for name in names], np.int64)
