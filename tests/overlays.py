"""Tiny datasets with brokers and stored overlays, made from Python lists without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse
from sealing import seal_dataset

from fanplan.data.reader import read_manifest
from fanplan.layers.overlay.linking import ChosenTrees, overlay_layer
from fanplan.layers.overlay.params import AllocateParams, OverlayParams
from fanplan.layers.overlay.record import AllocationRecord, LimitsRecord, write_overlay
from fanplan.network.brokers import Links, OverlayProblem, Routes, no_similarity
from fanplan.network.trees import Trees
from fanplan.plan.seal import table_hashes, write_plan_record
from fanplan.verbs.plan import plan_record

KEY = "key-1"


def routes_of(found: dict[tuple[int, tuple[int, ...]], float]) -> Routes:
    """Routes from {(source, destinations): messages}; a delivery per destination."""
    ends = sorted(found)
    sizes = [len(reached) for _, reached in ends]
    messages = np.array([found[end] for end in ends], float)
    return Routes(
        np.array([source for source, _ in ends], np.int32),
        np.cumsum([0, *sizes]),
        np.array([one for _, reached in ends for one in reached], np.int32),
        messages,
        messages * sizes,
    )


def problem_of(
    routes: Routes, capacity: Sequence[float], seconds: float, links: Links | None = None
) -> OverlayProblem:
    size = len(capacity)
    names = pa.array([f"b{i}" for i in range(size)])
    limits = np.array(capacity, float)
    similarity = no_similarity(size)
    return OverlayProblem(names, limits, np.ones(size), routes, similarity, links, seconds, KEY)


def write_stage(dataset: Path, name: str, columns: dict[str, Any]) -> int:
    """One file of a stage; how many rows it has."""
    (dataset / name).mkdir()
    table = pa.table(columns)
    pq.write_table(table, dataset / name / "part.parquet")
    if (dataset / "manifest.json").exists():
        seal_dataset(dataset)
    return len(table)


def write_manifest(dataset: Path, seconds: float, stages: dict[str, int], **more: Any) -> None:
    manifest = {
        "key": KEY,
        "inputs": KEY,
        "seconds": seconds,
        "cover": "overlap",
        "grid": "atomic",
        "exact": True,
        "stages": {name: {"rows": rows} for name, rows in stages.items()},
        **more,
    }
    (dataset / "manifest.json").write_text(json.dumps(manifest))
    seal_dataset(dataset)


def broker_columns(problem: OverlayProblem) -> dict[str, Any]:
    limits = pa.array(problem.capacity, mask=np.isinf(problem.capacity))
    return {"broker": problem.brokers, "capacity": limits, "cost": problem.cost}


def link_columns(problem: OverlayProblem) -> dict[str, Any]:
    links = problem.links
    assert links is not None
    return {
        "a": problem.brokers.take(pa.array(links.b)),
        "b": problem.brokers.take(pa.array(links.a)),
        "latency_ms": links.latency_ms,
        "bandwidth": pa.array(links.bandwidth, mask=np.isinf(links.bandwidth)),
        "cost": links.cost,
    }


def route_columns(routes: Routes) -> dict[str, Any]:
    return end_columns(routes) | {"messages": routes.messages, "deliveries": routes.deliveries}


def end_columns(routes: Routes) -> dict[str, Any]:
    starts = pa.array(routes.starts, pa.int32())
    return {
        "source": routes.source,
        "destinations": pa.ListArray.from_arrays(starts, pa.array(routes.brokers, pa.int32())),
    }


def write_plan(
    folder: Path,
    dataset: Path,
    problem: OverlayProblem,
    trees: Trees,
    clients: dict[str, list[str]] | None = None,
) -> Path:
    """A plan of these trees; with clients it is one that allocates them."""
    allocation = AllocationRecord(lcf=1.0, bound=1, cost=1.0)
    nobody: dict[str, list[str]] = {"client": [], "role": [], "broker": []}
    schema = pa.schema([(name, pa.string()) for name in nobody])
    decided = ChosenTrees(
        params=AllocateParams() if clients else OverlayParams(),
        similarity=scipy.sparse.csr_array((problem.size, problem.size)),
        clients=pa.table(clients or nobody, schema=schema),
        limits=LimitsRecord(),
        allocation=allocation if clients else None,
        client_load=np.zeros(problem.size) if clients else None,
    )
    layer = overlay_layer(problem, trees, decided, 0, "1")
    folder.mkdir()
    write_overlay(layer, folder)
    write_plan_record(plan_record((layer,), read_manifest(dataset), table_hashes(folder)), folder)
    return folder
