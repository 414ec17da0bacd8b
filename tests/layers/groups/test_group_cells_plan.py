"""Plans with groups of cells: tables, check, matcher and replay, on small worlds of boxes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from group_datasets import write_cell_dataset
from group_worlds import CELLS, World, cell_of, random_world
from hypothesis import given, settings
from hypothesis import strategies as st
from ready import stages_are_there

import fanplan
from fanplan.core.errors import InputError
from fanplan.layers.groups.cells import placed_cells, stored_matcher
from fanplan.layers.groups.problem.grid import grid_of
from fanplan.layers.registry import load_plan
from fanplan.verbs.check import check_plan


@pytest.fixture(autouse=True)
def _stages_are_there() -> Iterator[None]:
    """The datasets here come with the stages that Spark would make."""
    with stages_are_there():
        yield


def planned(folder: Path, world: World, full: bool, select: str = "top:100%") -> tuple[Path, Path]:
    dataset = write_cell_dataset(folder / "dataset", world, full)
    made = fanplan.groups(
        fanplan.Dataset(dataset), select, cells=3, mark="cover" if full else "overlap"
    )
    return dataset, made.save(folder / "plan")


@settings(max_examples=8)
@given(st.integers(0, 10**6), st.sampled_from([1, 3]), st.booleans(), st.integers(1, 100))
def test_the_plan_says_which_publication_is_whose(
    tmp_path_factory: pytest.TempPathFactory, seed: int, roots: Any, full: bool, percent: int
) -> None:
    world = random_world(seed, roots)
    folder = tmp_path_factory.mktemp("world")
    dataset, plan = planned(folder, world, full, f"top:{percent}%")
    assert check_plan(plan, dataset).violations == ()
    matcher = stored_matcher(load_plan(plan))
    roots_of = pq.read_table(plan / "virtual_groups.parquet")["root"].to_pylist()
    members: dict[int, set[str]] = {}
    for row in pq.read_table(plan / "group_members.parquet").to_pylist():
        members.setdefault(row["group"], set()).add(row["broker"])
    sent = dict.fromkeys(members, 0)
    for source, x, y in world.sent:
        if not matcher.topics:
            break
        root = matcher.roots.index(f"b{source}")
        group = int(matcher.match(0, np.array([[x, y]]), root)[0])
        if group < 0:
            continue
        marked, _ = world.marked(cell_of(x, y))
        assert (roots_of[group], members[group]) == (f"b{source}", {f"b{b}" for b in marked})
        sent[group] += 1
    stated = pq.read_table(plan / "virtual_groups.parquet")["messages"].to_pylist()
    assert [sent[group] for group in range(len(stated))] == stated
    again = fanplan.replay(plan, fanplan.Dataset(dataset))
    assert (again.ok, again.json()["missed"]) == (True, 0)


# b0 over b1 and b2. b1 wants the left two columns of cells, b2 all of the first.
LINKS = np.array([(0, 1), (0, 2)], np.int32)
BOXES = [[], [(0.0, 4.0, 0.0, 6.0)], [(0.0, 2.0, 0.0, 6.0)]]
SENT = [(0, 1.0, 1.0), (0, 1.0, 3.0), (0, 3.0, 1.0), (0, 5.0, 5.0)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    with stages_are_there():
        return planned(tmp_path_factory.mktemp("made"), World(LINKS, BOXES, SENT), True)


@pytest.fixture
def plan(made: tuple[Path, Path], tmp_path: Path) -> Path:
    return shutil.copytree(made[1], tmp_path / "plan")


def edit(folder: Path, table: str, change: Callable[..., Any]) -> None:
    path = folder / f"{table}.parquet"
    content = change(pq.read_table(path).to_pylist())
    pq.write_table(pa.Table.from_pylist(content, schema=pq.read_schema(path)), path)


def test_a_group_has_all_cells_that_its_members_marked(made: tuple[Path, Path]) -> None:
    rows = pq.read_table(made[1] / "group_cells.parquet").to_pylist()
    columns = {row["cell"][0]: row["group"] for row in rows}
    assert {tuple(row["cell"]) for row in rows} == {cell for cell in CELLS if cell[0] < 2}
    assert len(set(columns.values())) == 2
    axes = pq.read_table(made[1] / "group_axes.parquet").to_pylist()
    assert [(row["topic"], row["axis"]) for row in axes] == [("world", 0), ("world", 1)]


def test_placed_cells_have_their_own_ends() -> None:
    axes = [[np.array([0.0, 2.0, 5.0]), np.array([1.0, 3.0])], [], [np.array([7.0, 8.0, 9.5])]]
    grid = grid_of(axes)
    rows = placed_cells(grid, np.arange(grid.cells[-1])).to_pylist()
    boxes = [
        (topic, list(cell), [a[i] for a, i in zip(own, cell, strict=True)])
        for topic, own in enumerate(axes)
        for cell in product(*(range(len(axis) - 1) for axis in own))
    ]
    assert [(row["topic_id"], row["cell"], row["lo"]) for row in rows] == boxes
    for row in rows:
        ends = [a[i + 1] for a, i in zip(axes[row["topic_id"]], row["cell"], strict=True)]
        assert row["hi"] == ends


WRONG = {
    "missing": ("group_cells", lambda r: r[1:], "group_cells: missing (1): group 0"),
    "twice": ("group_cells", lambda r: [*r, r[0]], "group_cells: given twice (1): group 0"),
    "strange": (
        "group_cells",
        lambda r: [*r, r[0] | {"cell": [2, 2]}],
        "group_cells: not marked by its members (1): group 0, cell 8 (a part of it)",
    ),
    "another group's": (
        "group_cells",
        lambda r: [*r, r[0] | {"group": 1 - r[0]["group"]}],
        "group_cells: not marked by its members (1): group 1",
    ),
    "no cell": (
        "group_cells",
        lambda r: [r[0] | {"cell": [3, 0]}],
        "[3, 0] is not a cell of its topic",
    ),
    "words": (
        "group_cells",
        lambda r: [r[0] | {"description": "x"}, *r[1:]],
        "group_cells: description differs from the dataset (1): 'x'",
    ),
    "short": ("group_cells", lambda r: [r[0] | {"cell": [1]}], "[1] is not a cell of its topic"),
    "topic": (
        "group_axes",
        lambda r: [x | {"topic": "x"} for x in r],
        "is not a cell of its topic",
    ),
    "edges": (
        "group_axes",
        lambda r: [r[0] | {"edges": [0.0, 1.0, 4.0, 6.0]}, r[1]],
        "its cells are not those of the plan",
    ),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_with_cells_is_named(made: tuple[Path, Path], plan: Path, wrong: Any) -> None:
    table, change, named = wrong
    edit(plan, table, change)
    said = check_plan(plan, made[0]).violations
    assert any(named in text for text in said), said


def test_subscriptions_that_changed_are_missed(made: tuple[Path, Path], tmp_path: Path) -> None:
    """Now b2 wants the second column too; the plan's group for it has b1 alone."""
    boxes = [[], BOXES[1], BOXES[1]]
    other = write_cell_dataset(tmp_path / "other", World(LINKS, boxes, SENT), True)
    found = fanplan.replay(made[1], fanplan.Dataset(other))
    assert (found.ok, found.json()["missed"]) == (False, 1)


def test_a_grid_that_is_too_fine_is_refused_before_work(made: tuple[Path, Path]) -> None:
    with pytest.raises(InputError, match=r"topic 'world': 9000 cells per axis .* Use at most 4472"):
        fanplan.groups(fanplan.Dataset(made[0]), cells=9000)


def test_exact_groups_have_no_table_of_cells(made: tuple[Path, Path], tmp_path: Path) -> None:
    exact = fanplan.groups(fanplan.Dataset(made[0])).save(tmp_path / "plan")
    assert not (exact / "group_cells.parquet").exists()
    with pytest.raises(InputError, match="its groups are exact"):
        stored_matcher(load_plan(exact))
