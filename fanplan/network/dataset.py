"""Reading the overlay problem and the client problem from a dataset and its stages made on demand.

The stages `similarity`, `routes`, `client_overlap`, `client_interest` and `client_routes` come from
the pipeline; here they are read with pyarrow alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from fanplan.core.arrays import NONE, Floats, Ints, starts_of
from fanplan.core.errors import InputError, Problem
from fanplan.data.links import LINK_COLUMNS, assumed_latency, joined_links
from fanplan.data.reader import Manifest, read_manifest, read_stage, stage_batches
from fanplan.network.brokers import (
    ClientProblem,
    Links,
    OverlayProblem,
    Routes,
    Similarity,
    no_similarity,
)

BATCH = 1 << 20


@dataclass(frozen=True, eq=False)
class Brokers:
    """Brokers by name, ascending; capacity is infinite and cost 1 where none is given."""

    names: pa.Array
    capacity: Floats
    cost: Floats

    def take(self, at: Ints) -> Brokers:
        """Those at some positions."""
        return Brokers(self.names.take(pa.array(at)), self.capacity[at], self.cost[at])


def read_brokers(dataset: Path) -> Brokers:
    """The table of brokers, or without one the brokers that clients are at.

    Every subscription and advertisement must be at one of them.
    """
    manifest = read_manifest(dataset)
    used = _broker_names(dataset, manifest)
    if "brokers" not in manifest.stages:
        if not used:
            remedy = "Add a table brokers, or a column broker to the subscriptions"
            raise InputError(Problem(str(dataset), "there are no brokers", remedy))
        names = pa.array(sorted(used), pa.string())
        return Brokers(names, np.full(len(names), np.inf), np.ones(len(names)))
    table = read_stage(dataset, "brokers", ("broker", "capacity", "cost")).sort_by("broker")
    known = table["broker"].combine_chunks()
    unknown = sorted(used.keys() - set(known.to_pylist()))
    if unknown:
        remedy = "Add it there; a row that was not understood is in quarantine"
        raise InputError(
            Problem(f"{used[name]}, broker {name!r}", "is not in the table brokers", remedy)
            for name in unknown
        )
    return Brokers(known, _filled(table, "capacity", np.inf), _filled(table, "cost", 1.0))


def _filled(table: pa.Table, name: str, default: float) -> Floats:
    column = table[name].cast(pa.float64()).fill_null(default)
    return np.array(column.to_numpy(), dtype=np.float64)


def _broker_names(dataset: Path, manifest: Manifest) -> dict[str, str]:
    """The brokers that clients name, and a table that does; no client may be without."""
    used: dict[str, str] = {}
    for stage in ("advertisements", "subscriptions"):
        if stage not in manifest.stages:
            continue
        names = distinct(dataset, stage, "broker")
        if None in names and names != {None}:
            _refuse_homeless(stage)
        used |= {name: stage for name in names if name is not None}
    return used


def require_homes(dataset: Path) -> None:
    """Every subscription and advertisement must name a broker."""
    stages = read_manifest(dataset).stages
    for stage in ("subscriptions", "advertisements"):
        if stage in stages and None in distinct(dataset, stage, "broker"):
            _refuse_homeless(stage)


def _refuse_homeless(stage: str) -> None:
    what = "some rows have no broker"
    raise InputError(Problem(stage, what, "Give every row a broker, or allocate clients first"))


def distinct(dataset: Path, stage: str, column: str) -> set[str | None]:
    found: set[str | None] = set()
    for batch in stage_batches(dataset, stage, (column,), BATCH):
        found |= set(pc.unique(batch.column(0)).to_pylist())
    return found


def publisher_names(dataset: Path) -> pa.Array:
    """All that publish or advertise, ascending."""
    stages = read_manifest(dataset).stages
    names: set[str | None] = set()
    for stage in ("publications", "advertisements"):
        if stage in stages:
            names |= distinct(dataset, stage, "publisher")
    return pa.array(sorted(name or "" for name in names), pa.string())


def subscriber_names(dataset: Path) -> pa.Array:
    """All subscribers, in the order of their numbers."""
    names = read_stage(dataset, "subscribers", ("subscriber", "subscriber_id"))
    return names.sort_by("subscriber_id")["subscriber"].combine_chunks()


def load_overlay(dataset: Path) -> OverlayProblem:
    """The overlay problem, after the pipeline made `similarity` and `routes`."""
    brokers, metrics = read_brokers(dataset), ("overlap", "cover", "interest")
    pairs = read_stage(dataset, "similarity", ("i", "j", *metrics))
    shape = (len(brokers.names), len(brokers.names))
    similarity = Similarity(*(_matrix(pairs, name, shape) for name in metrics))
    unlike = unlike_brokers(dataset, brokers, read_routes(dataset, "routes"))
    return replace(unlike, similarity=similarity)


def unlike_brokers(dataset: Path, brokers: Brokers, routes: Routes) -> OverlayProblem:
    """An overlay problem of some brokers of a dataset; nobody is like anybody."""
    manifest = read_manifest(dataset)
    return OverlayProblem(
        brokers=brokers.names,
        capacity=brokers.capacity,
        cost=brokers.cost,
        routes=routes,
        similarity=no_similarity(len(brokers.names)),
        links=read_links(dataset, brokers.names),
        seconds=manifest.seconds,
        source=manifest.key,
    )


def silent_overlay(dataset: Path, names: pa.Array) -> OverlayProblem:
    """Some brokers and the links between them, without traffic."""
    ones = np.ones(len(names))
    return unlike_brokers(dataset, Brokers(names, np.inf * ones, ones), Routes.none())


def _matrix(pairs: pa.Table, name: str, shape: tuple[int, int]) -> scipy.sparse.csr_array:
    value = pairs[name].to_numpy()
    there = value != 0
    i, j = (pairs[side].to_numpy()[there] for side in ("i", "j"))
    return scipy.sparse.coo_array((value[there], (i, j)), shape=shape).tocsr()


def read_routes(dataset: Path, stage: str) -> Routes:
    """Routes in the order of their sources and destinations."""
    columns = ("source", "destinations", "messages", "deliveries")
    return routes_of(ordered_routes(read_stage(dataset, stage, columns)))


def ordered_routes(table: pa.Table, *more: str) -> pa.Table:
    """Rows by their sources, destinations and more, in an order that storing does not change."""
    table = table.combine_chunks()
    keys = list(_route_keys(table, more))
    return table.take(pa.array(sorted(range(len(table)), key=keys.__getitem__), pa.int64()))


def routes_of(rows: pa.Table) -> Routes:
    lists = rows["destinations"].combine_chunks()
    sizes = pc.list_value_length(lists).to_numpy()
    return Routes(
        source=rows["source"].to_numpy().astype(np.int32),
        starts=starts_of(sizes),
        brokers=lists.flatten().to_numpy().astype(np.int32),
        messages=rows["messages"].to_numpy().astype(np.float64),
        deliveries=rows["deliveries"].to_numpy().astype(np.float64),
    )


def _route_keys(table: pa.Table, more: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    lists = table["destinations"].combine_chunks()
    # Big-endian, so that bytes sort as the numbers do.
    values = lists.flatten().to_numpy().astype(">i4")
    starts = starts_of(pc.list_value_length(lists).to_numpy())
    others = zip(*(table[name].to_pylist() for name in ("source", *more)), strict=True)
    for row, (source, *rest) in enumerate(others):
        yield source, values[starts[row] : starts[row + 1]].tobytes(), *rest


def read_links(dataset: Path, names: pa.Array) -> Links | None:
    """The given links between these brokers; None if there is no such table."""
    table = read_link_table(dataset)
    if table is None:
        return None
    _require_ends(table, read_brokers(dataset).names)
    return links_among(table, names)


def read_link_table(dataset: Path) -> pa.Table | None:
    """Each given link once, by names of brokers; None if there is no such table."""
    if "links" not in read_manifest(dataset).stages:
        return None
    return joined_links(read_stage(dataset, "links", LINK_COLUMNS))


def links_among(table: pa.Table, names: pa.Array) -> Links:
    """Links whose ends are both among some brokers, as positions of those."""
    assumed, timed = assumed_latency(table), table["latency_ms"].null_count < len(table)
    both = [pc.is_in(table[end], names) for end in ("a", "b")]
    table = table.filter(pc.and_(*both))
    found = [pc.index_in(table[end], names).to_numpy() for end in ("a", "b")]
    ends = np.sort(np.stack(found), axis=0).astype(np.int32)
    return Links(
        a=ends[0],
        b=ends[1],
        latency_ms=_filled(table, "latency_ms", assumed),
        bandwidth=_filled(table, "bandwidth", np.inf),
        cost=_filled(table, "cost", 0.0),
        assumed=table["latency_ms"].is_null().to_numpy(),
        timed=timed,
    )


def _require_ends(links: pa.Table, known: pa.Array) -> None:
    """Links must be between brokers; where there is a table of them, ingest saw to it."""
    for end in ("a", "b"):
        unknown = links[end].filter(pc.invert(pc.is_in(links[end], known)))
        if len(unknown):
            what = f"broker {unknown[0].as_py()!r} has no client and there is no table brokers"
            raise InputError(Problem("links", what, "Add a table brokers"))


def given_clients(dataset: Path) -> pa.Table:
    """Columns client, role, broker: where the workload has its clients, each pair once.

    A publisher that advertises at several brokers is at the first of them by name. One that
    publishes without advertising is at the broker of its own name.
    """
    stages = read_manifest(dataset).stages
    parts = [_pairs(dataset, "subscriptions", "subscriber")]
    publishers: dict[str, str] = {}
    if "advertisements" in stages:
        for row in _pairs(dataset, "advertisements", "publisher").to_pylist():
            known = publishers.get(row["client"], row["broker"])
            publishers[row["client"]] = min(known, row["broker"])
    if "publications" in stages:
        silent = distinct(dataset, "publications", "publisher") - publishers.keys() - {None}
        publishers |= {str(name): str(name) for name in silent}
    parts.append(_clients(list(publishers), "publisher", list(publishers.values())))
    return pa.concat_tables(parts)


def _clients(names: list[str], role: str, brokers: list[str]) -> pa.Table:
    text = pa.string()
    columns = {"client": names, "role": [role] * len(names), "broker": brokers}
    return pa.table({name: pa.array(values, text) for name, values in columns.items()})


def _pairs(dataset: Path, stage: str, client: str) -> pa.Table:
    """Each client at each of its brokers, once."""
    found: set[tuple[str, str]] = set()
    for batch in stage_batches(dataset, stage, (client, "broker"), BATCH):
        unique = pa.table(batch).group_by([client, "broker"]).aggregate([])
        found |= set(zip(unique[client].to_pylist(), unique["broker"].to_pylist(), strict=True))
    pairs = sorted(pair for pair in found if None not in pair)
    return _clients([one for one, _ in pairs], client, [broker for _, broker in pairs])


def load_clients(dataset: Path) -> ClientProblem:
    """The client problem, after the pipeline made the stages of clients.

    Without advertisements interest is measured: the share of a publisher's messages that a
    subscriber was sent.
    """
    manifest, brokers = read_manifest(dataset), read_brokers(dataset)
    routes = read_routes(dataset, "client_routes")
    subscribers = subscriber_names(dataset)
    publishers = publisher_names(dataset)
    sent = np.bincount(routes.source, routes.messages, len(publishers)).astype(np.float64)
    shape = (len(publishers), len(subscribers))
    if "advertisements" in manifest.stages:
        pairs = read_stage(dataset, "client_interest", ("i", "j", "interest"))
        interest = _matrix(pairs, "interest", shape)
    else:
        interest = measured_interest(routes, sent, shape)
    common = read_stage(dataset, "client_overlap", ("i", "j", "overlap"))
    return ClientProblem(
        publishers=publishers,
        subscribers=subscribers,
        rates=sent / manifest.seconds,
        interest=interest,
        common=_matrix(common, "overlap", (len(subscribers), len(subscribers))),
        routes=routes,
        brokers=brokers.names,
        capacity=brokers.capacity,
        cost=brokers.cost,
        seconds=manifest.seconds,
        source=manifest.key,
    )


def measured_interest(
    routes: Routes, sent: Floats, shape: tuple[int, int]
) -> scipy.sparse.csr_array:
    """Share of the messages of each publisher that each subscriber wants."""
    sizes = np.diff(routes.starts)
    share = np.repeat(routes.messages / sent[routes.source], sizes)
    pairs = (np.repeat(routes.source, sizes), routes.brokers)
    return scipy.sparse.coo_array((share, pairs), shape=shape).tocsr()


DOMAIN = ("multicast_domain", "site")
"""What a broker shares multicast with others by: the first of these that it has."""


def multicast_domains(dataset: Path, brokers: pa.Array) -> tuple[Ints, pa.Array]:
    """The multicast domain of each broker, and their names; NONE for brokers without multicast."""
    table = broker_places(dataset)
    at = pc.index_in(brokers, table["broker"].combine_chunks())
    domain = pc.coalesce(*(table[name].combine_chunks() for name in DOMAIN)).take(at)
    names = pa.array(sorted(set(domain.drop_null().to_pylist())), pa.string())
    return pc.index_in(domain, names).fill_null(NONE).to_numpy().astype(np.int32), names


def domain_columns(dataset: Path) -> dict[str, int]:
    """How many brokers have their domain by each column."""
    table = broker_places(dataset)
    own = len(table) - table[DOMAIN[0]].null_count
    either = len(table) - pc.coalesce(*(table[name] for name in DOMAIN)).null_count
    return dict(zip(DOMAIN, (own, either - own), strict=True))


def broker_places(dataset: Path) -> pa.Table:
    """Brokers and what their domains are by; no rows if there is no table of brokers."""
    columns = ("broker", *DOMAIN)
    if "brokers" not in read_manifest(dataset).stages:
        return pa.table({name: pa.array([], pa.string()) for name in columns})
    return read_stage(dataset, "brokers", columns)


def broker_spots(dataset: Path) -> dict[str, tuple[float, float]]:
    """Latitude and longitude of the brokers that have both."""
    if "brokers" not in read_manifest(dataset).stages:
        return {}
    table = read_stage(dataset, "brokers")
    if not {"lat", "lon"} <= set(table.column_names):
        return {}
    rows = zip(*(table[name].to_pylist() for name in ("broker", "lat", "lon")), strict=True)
    return {broker: (lat, lon) for broker, lat, lon in rows if lat is not None and lon is not None}
