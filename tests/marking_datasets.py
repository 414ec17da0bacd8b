"""Datasets of marking problems with the stage that Spark would make, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from overlays import write_manifest, write_stage

from fanplan.layers.marking.problem.marking import MarkedNetwork

COVERS = {"publishes": pa.bool_(), "broker": pa.string()}
COVERS |= {"coverers": pa.list_(pa.string()), "regions": pa.int64()}


def write_marking_dataset(
    folder: Path,
    network: MarkedNetwork,
    trees: pa.Table | None = None,
    brokers: bool = True,
    covers: Sequence[tuple[bool, str, list[str], int]] = (),
) -> Path:
    """A dataset folder with the network's nodes as brokers; raw counts are twice the others.

    Without a table of ``brokers`` they are whom clients and links name. ``covers`` are rows of
    the stage `descriptor_covers`.
    """
    names = network.nodes
    some = pa.array((network.published > 0) | (network.subscribed > 0))
    counts = {"published": network.published, "subscribed": network.subscribed}
    counts |= {f"raw_{name}": 2 * many for name, many in counts.items()}
    tables: dict[str, dict[str, Any]] = {
        "advertisements": clients(names, network.published, "publisher"),
        "subscriptions": clients(names, network.subscribed, "subscriber"),
        "descriptors": {name: pa.array(many).filter(some) for name, many in counts.items()}
        | {"broker": names.filter(some)},
    }
    if brokers:
        nothing = pa.nulls(len(names), pa.float64())
        tables["brokers"] = {"broker": names, "capacity": nothing, "cost": nothing}
    if network.links is not None:
        tables["links"] = link_columns(network)
    if trees is not None:
        tables["trees"] = dict(zip(trees.column_names, trees.columns, strict=True))
    columns = list(zip(*covers, strict=True)) or [()] * len(COVERS)
    tables["descriptor_covers"] = {
        name: pa.array(list(column), kind)
        for (name, kind), column in zip(COVERS.items(), columns, strict=True)
    }
    folder.mkdir(parents=True)
    stages = {name: write_stage(folder, name, columns) for name, columns in tables.items()}
    write_manifest(folder, 1.0, stages)
    return folder


def clients(names: pa.Array, counts: np.ndarray, role: str) -> dict[str, pa.Array]:
    own = names.filter(pa.array(counts > 0))
    return {role: own, "broker": own}


def link_columns(network: MarkedNetwork) -> dict[str, Any]:
    links = network.links
    assert links is not None
    return {
        "a": network.nodes.take(pa.array(links.a)),
        "b": network.nodes.take(pa.array(links.b)),
        "latency_ms": links.latency_ms,
        "bandwidth": pa.nulls(len(links.a), pa.float64()),
        "cost": links.cost,
    }
