"""How many cells a grid has is known before it is laid, and too many are refused with a remedy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from overlays import write_manifest, write_stage

from fanplan.core.errors import InputError
from fanplan.layers.groups.params import GroupsParams
from fanplan.layers.groups.problem.grid import (
    equal_cell_edges,
    read_group_grid,
    require_coarse_grid,
    require_few_marks,
)

TOP = np.nextafter(9.0, 10.0)
AXES = [(0, 0, [0.0, 2.0, 3.0]), (0, 1, [0.0, 1.0, TOP]), (2, 0, [0.0, TOP])]
"""Topic, axis and edges: a list of three values with numbers from 0 to 9, and numbers alone."""


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    numbers = [pa.array([axis[i] for axis in AXES], pa.int32()) for i in (0, 1)]
    edges = pa.array([axis[2] for axis in AXES], pa.list_(pa.float64()))
    topics = {"topic": ["b", "a", "c"], "topic_id": pa.array([1, 0, 2], pa.int32())}
    grid = {"topic_id": numbers[0], "axis": numbers[1], "edges": edges}
    rows = {
        name: write_stage(tmp_path, name, t) for name, t in (("topics", topics), ("grid", grid))
    }
    write_manifest(tmp_path, 1.0, rows, dimensions=2)
    return tmp_path


def test_cells_are_counted_and_too_many_are_refused_with_what_fits(dataset: Path) -> None:
    # Topic a has three values, topic b is plain, topic c has numbers alone.
    assert require_coarse_grid(dataset, 10) == 3 * 10 + 1 + 10
    assert require_coarse_grid(dataset, 10, most=41) == 41
    told = "topic 'a': 10 cells per axis are 30 cells, and 41 with all topics; the limit is 40"
    with pytest.raises(InputError, match=re.escape(f"{told}. Use at most 9 cells")):
        require_coarse_grid(dataset, 10, most=40)
    assert require_coarse_grid(dataset, 9, most=40) == 37
    with pytest.raises(InputError, match="Use exact groups, without cells"):
        require_coarse_grid(dataset, 10, most=4)
    with pytest.raises(InputError, match="the limit is 20,000,000"):
        require_coarse_grid(dataset, 10**7)


def test_too_many_marks_are_refused_with_about_what_fits() -> None:
    require_few_marks(1e6, 100, 2, most=1_000_000)
    with pytest.raises(InputError, match=r"100 cells per axis: .* Use about 50 cells"):
        require_few_marks(4e6, 100, 2, most=1_000_000)


def test_edges_are_equal_cells_or_values(dataset: Path) -> None:
    assert equal_cell_edges(0.0, 3.0, 7).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert equal_cell_edges(0.0, TOP, 3).tolist() == [0.0, 3.0, 6.0, TOP]
    assert equal_cell_edges(-1.0, 2.0, 1).tolist() == [-1.0, 2.0]
    grid = read_group_grid(dataset / "grid", 3)
    assert grid.cells.tolist() == [0, 2 * 2, 5, 6]
    assert grid.edges.tolist() == [*AXES[0][2], *AXES[1][2], *AXES[2][2]]


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ({"cells": 0}, "cells: 0 is out of range"),
        ({"mark": "some"}, "mark: 'some' is unknown"),
        ({"least": float("nan")}, "least: nan is not a finite number"),
    ],
)
def test_groupings_that_mean_nothing_are_refused(wish: dict[Any, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        GroupsParams(**wish)
