"""Datasets of groups with the stages that Spark would make, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from overlays import route_columns, write_manifest, write_stage

from fanplan.problem.overlay import Routes

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
