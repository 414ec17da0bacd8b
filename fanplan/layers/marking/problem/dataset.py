"""Reading the marking problem from a dataset and its stage `descriptors`, with pyarrow alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import NONE, Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.data.reader import Manifest, read_manifest, read_stage, require_understood
from fanplan.layers.marking.params import GIVEN, KINDS, OVERLAY, SHARED, ControlBy, MarkingParams
from fanplan.layers.marking.problem.marking import MarkedNetwork, MarkingProblem
from fanplan.layers.marking.problem.trees import (
    given_problem,
    given_shared_problem,
    require_paths,
    shared_problem,
    source_problem,
)
from fanplan.network.brokers import Links
from fanplan.network.dataset import (
    distinct,
    links_among,
    read_brokers,
    read_link_table,
    require_homes,
)
from fanplan.workload.tables import TREES

Descriptors = Callable[[Path, pa.Array], tuple[Longs, Longs]]
"""Counts the descriptors of publishers and of subscribers at each node of a dataset."""


@dataclass(frozen=True)
class MarkedOverlay:
    """The tree of an overlay as root, parent and child; ``clients`` if they were allocated."""

    tree: pa.Table
    clients: pa.Table | None = None


def tree_table(names: pa.Array, parent: Ints) -> pa.Table:
    """The tree of an overlay, hung at its first broker, by each one's parent; others have NONE."""
    child = np.flatnonzero(parent != NONE)
    ends = {"root": np.zeros(len(child), np.int64), "parent": parent[child], "child": child}
    return pa.table({name: names.take(pa.array(ends[name])) for name in TREES.required})


def load_marking(
    dataset: Path, params: MarkingParams, overlay: MarkedOverlay | None = None
) -> MarkingProblem:
    """The marking problem, after the pipeline made `descriptors`; or those of clients, if these are
    elsewhere than in the workload."""
    network, trees = load_network(dataset, params, overlay and overlay.clients)
    if params.trees == OVERLAY:
        if overlay is None:
            what = "there is no overlay in this plan"
            raise InputError(Problem("kind of trees", what, f"Use {KINDS}, or `fanplan design`"))
        trees = overlay.tree
    if params.core:
        problem = shared_problem(network, params.core)
    elif trees is not None:
        problem = given_trees_problem(network, trees, params)
    else:
        problem = source_problem(network)
    return replace(problem, source=read_manifest(dataset).key)


def load_network(
    dataset: Path, params: MarkingParams, clients: pa.Table | None = None
) -> tuple[MarkedNetwork, pa.Table | None]:
    """The network that is marked, and its trees if given ones are wished for.

    ``clients`` has client, role and broker, where these are not those of the workload.
    """
    manifest = read_manifest(dataset)
    require_understood(dataset, manifest, network_tables(params))
    trees = read_given(dataset, manifest) if params.trees in GIVEN else None
    read = partial(read_descriptors, raw=params.raw)
    if clients is not None:
        read = partial(read_client_descriptors, clients=clients)
    return read_network(dataset, manifest, params, read), trees


def given_trees_problem(
    network: MarkedNetwork, trees: pa.Table, params: MarkingParams
) -> MarkingProblem:
    build = given_problem if params.trees == "given" else given_shared_problem
    return build(network, trees)


def require_markable(dataset: Path, params: MarkingParams) -> None:
    """Refuse what can be seen before descriptors are counted: clients stand for those here."""
    manifest = read_manifest(dataset)
    require_understood(dataset, manifest, network_tables(params))
    network = read_network(dataset, manifest, params, read_homes)
    if params.trees in GIVEN:
        given_trees_problem(network, read_given(dataset, manifest), params)
    else:
        require_paths(network, params.core)


def network_tables(params: MarkingParams) -> tuple[str, ...]:
    """The tables of the network that these trees are made from; an overlay has its own."""
    if params.trees == OVERLAY:
        return ()
    return ("links", "trees") if params.trees in GIVEN else ("links",)


def read_network(
    dataset: Path, manifest: Manifest, params: MarkingParams, read: Descriptors
) -> MarkedNetwork:
    """Brokers as nodes, with the descriptors that are read, the links between them and prices."""
    table = read_link_table(dataset)
    nodes = node_names(dataset, manifest, table, params)
    links = None if table is None else links_among(table, nodes)
    published, subscribed = read(dataset, nodes)
    return MarkedNetwork(
        nodes=nodes,
        published=published,
        subscribed=subscribed,
        links=links,
        sending=sending_prices(links, params.control_by),
        storing=np.full(len(nodes), params.prices.stored),
    )


def node_names(
    dataset: Path, manifest: Manifest, links: pa.Table | None, params: MarkingParams
) -> pa.Array:
    """The table `brokers`; without one, whom clients and links name, or without links the trees."""
    known = read_brokers(dataset).names
    if "brokers" in manifest.stages:
        return known
    columns: list[pa.ChunkedArray] = []
    if links is not None:
        columns = [links["a"], links["b"]]
    elif params.trees in GIVEN:
        columns = read_given(dataset, manifest).columns
    return pa.array(sorted(set(known.to_pylist()).union(*(c.to_pylist() for c in columns))))


def read_given(dataset: Path, manifest: Manifest) -> pa.Table:
    if "trees" not in manifest.stages:
        what = "there is no table trees in the workload"
        raise InputError(Problem("trees", what, f"Add it, or use {SHARED}CORE or per-source"))
    return read_stage(dataset, "trees", TREES.required)


def read_homes(dataset: Path, nodes: pa.Array) -> tuple[Longs, Longs]:
    """One wherever somebody advertises, and wherever somebody subscribes."""
    require_clients(dataset)
    roles = (distinct(dataset, stage, "broker") for stage in ("advertisements", "subscriptions"))
    published, subscribed = (
        pc.is_in(nodes, pa.array(sorted(map(str, names)), pa.string())).to_numpy(False)
        for names in roles
    )
    return published.astype(np.int64), subscribed.astype(np.int64)


def require_clients(dataset: Path) -> None:
    """There must be advertisements, and each of them and of the subscriptions names a broker."""
    if "advertisements" not in read_manifest(dataset).stages:
        what, remedy = "there is no such table", "Say who publishes what, and at which broker"
        raise InputError(Problem("advertisements", what, remedy))
    require_homes(dataset)


def read_descriptors(dataset: Path, nodes: pa.Array, raw: bool) -> tuple[Longs, Longs]:
    """How many descriptors publishers and subscribers have at each node."""
    names = [f"raw_{name}" if raw else name for name in ("published", "subscribed")]
    table = read_stage(dataset, "descriptors", ("broker", *names))
    at = pc.index_in(table["broker"], nodes).to_numpy()
    counts = np.zeros((2, len(nodes)), np.int64)
    counts[:, at] = [table[name].to_numpy() for name in names]
    return required_regions(counts)


def read_client_descriptors(
    dataset: Path, nodes: pa.Array, clients: pa.Table
) -> tuple[Longs, Longs]:
    """How many descriptors the clients have who were allocated to each node; all of them count."""
    table = read_stage(dataset, "client_descriptors", ("client", "role", "regions"))
    placed = table.join(clients, keys=["client", "role"], join_type="inner")
    counts = np.zeros((2, len(nodes)), np.int64)
    at = pc.index_in(placed["broker"], nodes).to_numpy()
    side = np.where(pc.equal(placed["role"], "publisher").to_numpy(), 0, 1)
    np.add.at(counts, (side, at), placed["regions"].to_numpy())
    return required_regions(counts)


def require_regions(dataset: Path, allocated: bool) -> None:
    """Some regions of publishers and some of subscribers, after the pipeline counted them."""
    if allocated:
        table = read_stage(dataset, "client_descriptors", ("role", "regions"))
        publishes = pc.equal(table["role"], "publisher").to_numpy()
        regions = table["regions"].to_numpy()
        required_regions(np.stack((regions * publishes, regions * ~publishes)))
    else:
        names = ("published", "subscribed")
        table = read_stage(dataset, "descriptors", names)
        required_regions(np.stack([table[name].to_numpy() for name in names]))


def required_regions(counts: np.ndarray) -> tuple[Longs, Longs]:
    """Of publishers and of subscribers; there must be some of both."""
    for table, total in zip(("advertisements", "subscriptions"), counts.sum(axis=1), strict=True):
        if not total:
            raise InputError(Problem(table, "there is no region", "Give at least one"))
    return counts[0], counts[1]


def sending_prices(links: Links | None, sending: ControlBy) -> Floats | None:
    """The price of a descriptor on each link; None for 1."""
    if sending == "one":
        return None
    if links is None or (sending == "latency" and not links.timed):
        what = f"there are no links that have a {sending}"
        raise InputError(Problem("control_by", what, "Add them to a table links, or use one"))
    return links.latency_ms if sending == "latency" else links.cost
