"""Designs over given links: parallel ones count as one, in every layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from delivery_datasets import world_of, write_world
from ready import stages_are_there

import fanplan

PLAIN = (
    ("b0", "b1", 1.0),
    ("b1", "b2", 20.0),
    ("b2", "b3", 2.0),
    ("b3", "b4", 7.0),
    ("b4", "b5", 5.0),
    ("b0", "b5", 3.0),
)
PARALLEL = (
    ("b0", "b1", 4.0),
    *PLAIN,
    ("b1", "b0", None),
    ("b2", "b1", 21.0),
    ("b2", "b3", 2.0),
)
Planner = Callable[[fanplan.Dataset], fanplan.Made]
PLANNERS: dict[str, Planner] = {
    "overlay": fanplan.overlay,
    "mark": lambda dataset: fanplan.mark(dataset, "per-source"),
    "groups": lambda dataset: fanplan.groups(dataset, trees="per-publisher"),
    "design": lambda dataset: fanplan.design(dataset, channels=2),
}


@pytest.mark.parametrize("planner", PLANNERS.values(), ids=PLANNERS)
def test_parallel_links_change_nothing(planner: Planner, tmp_path: Path) -> None:
    """Every layer plans as if each link were there once, with its lowest latency."""
    plans = []
    with stages_are_there():
        for name, links in (("plain", PLAIN), ("parallel", PARALLEL)):
            folder = write_world(tmp_path / name, replace(world_of(4), links=links))
            plans.append(planner(fanplan.open_dataset(folder)).save(tmp_path / f"{name}.plan"))
    tables = [{t.name: pq.read_table(t) for t in plan.glob("*.parquet")} for plan in plans]
    assert tables[0].keys() == tables[1].keys()
    assert all(tables[0][name].equals(tables[1][name]) for name in tables[0])
