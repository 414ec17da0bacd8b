"""Datasets of groups with the stages that Spark would make, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from group_worlds import CELLS, EDGES, World, routes_of
from overlays import route_columns, write_manifest, write_stage
from sealing import seal_dataset

from fanplan.network.brokers import Routes
from fanplan.simulation.messages import merged_routes

Pair = tuple[int, int]


def write_group_dataset(
    folder: Path,
    names: list[str],
    routes: Routes,
    links: list[Pair] | None = None,
    trees: pa.Table | None = None,
    latency: list[float] | None = None,
    homes: bool = True,
) -> Path:
    """A dataset with a publisher and a subscriber at every broker, and the stage `routes`.

    Without ``homes`` a subscription has no broker.
    """
    nothing = pa.nulls(len(names), pa.float64())
    at = pa.array([*names[:-1], names[-1] if homes else None])
    tables: dict[str, dict[str, Any]] = {
        "brokers": {"broker": pa.array(names), "capacity": nothing, "cost": nothing},
        "advertisements": {"publisher": [f"p{n}" for n in names], "broker": pa.array(names)},
        "subscriptions": {"subscriber": [f"s{n}" for n in names], "broker": at},
        "routes": route_columns(routes),
    }
    if links is not None:
        a, b = np.array(links, np.int32).reshape(-1, 2).T
        known = pa.array(names)
        tables["links"] = {
            "a": known.take(pa.array(a)),
            "b": known.take(pa.array(b)),
            "latency_ms": pa.array(latency or [1.0] * len(links), pa.float64()),
            "bandwidth": pa.nulls(len(links), pa.float64()),
            "cost": pa.nulls(len(links), pa.float64()),
        }
    if trees is not None:
        tables["trees"] = dict(zip(trees.column_names, trees.columns, strict=True))
    folder.mkdir(parents=True)
    stages = {name: write_stage(folder, name, columns) for name, columns in tables.items()}
    write_manifest(folder, 2.0, stages)
    return folder


def write_cell_dataset(folder: Path, world: World, full: bool) -> Path:
    """The dataset of a world with one topic, and the stages of groups from its nine cells."""
    routes, cell = routes_of(world)
    links = [(int(a), int(b)) for a, b in world.links]
    write_group_dataset(folder, world.names.to_pylist(), merged_routes(routes)[0], links)
    marks = [world.marked(c) for c in range(len(CELLS))]
    may = [bool(who) and (whole or not full) for who, whole in marks]
    classes = sorted({who for (who, _), good in zip(marks, may, strict=True) if good})
    of = [classes.index(marks[c][0]) if may[c] else -1 for c in range(len(CELLS))]
    cells = [c for c in range(len(CELLS)) if may[c]]
    number = pa.int32()
    write_stage(folder, "topics", {"topic": ["world"], "topic_id": pa.array([0], number)})
    grid = {"topic_id": [0, 0], "axis": pa.array([0, 1], number), "edges": [EDGES, EDGES]}
    write_stage(folder, "group_grid", grid)
    # The domain of a number ends just above its largest.
    ends = [EDGES[0], np.nextafter(EDGES[-1], np.inf)]
    write_stage(folder, "grid", grid | {"edges": [ends, ends]})
    write_stage(
        folder,
        "group_classes",
        {
            "cell_class": pa.array(range(len(classes)), number),
            "brokers": pa.array(classes, pa.list_(number)),
        },
    )
    own = {
        "cell": pa.array(cells, pa.int64()),
        "cell_class": pa.array([of[c] for c in cells], number),
    }
    write_stage(folder, "group_cells", own)
    sent = route_columns(routes)
    write_stage(folder, "cell_routes", {"cell": pa.array(cell, pa.int64()), **sent})
    by_class = {"cell_class": pa.array([of[c] for c in cell], number)}
    write_stage(folder, "group_routes", {**by_class, **sent})
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["stages"]["topics"] = {"rows": 1}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return seal_dataset(folder)
