"""The cells whose messages a group has: as tables of a plan, and read from there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Floats, Ints, Longs, starts_of
from fanplan.core.errors import InputError, Problem
from fanplan.data.described import load_regions
from fanplan.data.interest import take_audiences
from fanplan.data.reader import read_stage
from fanplan.layers.groups.problem.dataset import CellMap
from fanplan.layers.groups.problem.grid import GroupGrid, edges_of, grid_of, numbers_of, places_of
from fanplan.layers.groups.problem.matchers import CellMatcher, match_groups, matcher_of
from fanplan.layers.groups.record import GroupsRecord
from fanplan.plan.axis import whole
from fanplan.plan.stored import StoredPlan

CHECK = "See what `fanplan check` says of the plan"


def topic_names(dataset: Path) -> pa.Array:
    """Names of topics in the order of their numbers."""
    return whole(read_stage(dataset, "topics", ("topic", "topic_id")).sort_by("topic_id")["topic"])


def cells_of_groups(cells: CellMap, groups: Longs) -> tuple[Longs, Longs]:
    """Pairs of a place in ``groups`` and the number of a cell of the group there."""
    order = np.argsort(cells.cell_class, kind="stable").astype(np.int32)
    known = int(max(cells.cell_class.max(initial=-1), cells.group_class.max(initial=-1))) + 1
    starts = np.searchsorted(cells.cell_class[order], np.arange(known + 1)).astype(np.int64)
    classes = cells.group_class[groups].astype(np.int64)
    place = np.repeat(np.arange(len(groups)), np.diff(starts)[classes])
    return place, cells.cell[take_audiences(starts, order, classes)]


def cell_tables(cells: CellMap, dataset: Path, best: Longs) -> dict[str, pa.Table]:
    """The cells of groups by topic and place, and the edges of their grid."""
    group, number = cells_of_groups(cells, best)
    placed, topics = placed_cells(cells.grid, number), topic_names(dataset)
    table = {
        "group": group,
        "topic": topics.take(placed["topic_id"]),
        "cell": placed["cell"],
        "description": cell_words(dataset, placed),
    }
    used = np.unique(placed["topic_id"].to_numpy())
    return {"group_cells": pa.table(table), "group_axes": axes_table(cells.grid, topics, used)}


def placed_cells(grid: GroupGrid, number: Longs) -> pa.RecordBatch:
    """Numbered cells with their topics, their places along the axes, and their ends there."""
    along = np.diff(grid.axes)
    topic, place = places_of(grid, number, int(along.max(initial=0)))
    own = np.arange(place.shape[1]) < along[topic][:, None]
    axis = (grid.axes[topic][:, None] + np.arange(place.shape[1]))[own]
    at = grid.starts[axis] + place[own]
    offsets = pa.array(starts_of(along[topic]), pa.int32())
    values = {"cell": place[own].astype(np.int32), "lo": grid.edges[at], "hi": grid.edges[at + 1]}
    lists = {name: pa.ListArray.from_arrays(offsets, v) for name, v in values.items()}
    return pa.record_batch({"topic_id": topic, **lists})


def cell_words(dataset: Path, placed: pa.RecordBatch) -> pa.Array:
    """The ranges of placed cells, in words."""
    return load_regions(dataset, closed=False).describe(placed)


def axes_table(grid: GroupGrid, topics: pa.Array, used: Longs) -> pa.Table:
    """The edges of the axes of some topics."""
    axes = [(int(t), axis) for t in used for axis in range(int(np.diff(grid.axes)[t]))]
    edges = [edges_of(grid, topic, axis).tolist() for topic, axis in axes]
    return pa.table(
        {
            "topic": topics.take(pa.array([topic for topic, _ in axes], pa.int64())),
            "axis": pa.array([axis for _, axis in axes], pa.int32()),
            "edges": pa.array(edges, pa.list_(pa.float64())),
        }
    )


# ---- reading


@dataclass(frozen=True, eq=False)
class StoredCells:
    """Cells of a plan's groups, and the edges of each axis of the topics they are in.

    Row i of the table of cells is a cell of ``group[i]`` in ``topic[i]``, a position in ``topics``,
    with ``place[i]`` along the axes; places beyond the topic's axes are 0.
    """

    topics: list[str]
    edges: list[list[Floats]]
    group: Longs
    topic: Ints
    place: Longs

    def numbers(self, grid: GroupGrid, topic: Ints) -> Longs:
        """Numbers of the cells on a grid, in which they have the topics ``topic``."""
        return numbers_of(grid, topic, self.place.astype(np.int32))


def read_stored_cells(plan: StoredPlan) -> StoredCells:
    """Cells and axes as the plan has them; an error if a cell is not on the grid."""
    table = plan.read("group_cells", ("group", "topic", "cell")).combine_chunks()
    axes = plan.read("group_axes", ("topic", "axis", "edges")).to_pylist()
    topics = sorted({*table["topic"].unique().to_pylist(), *(row["topic"] for row in axes)})
    edges: list[list[Floats]] = [[] for _ in topics]
    for row in sorted(axes, key=lambda row: (row["topic"], row["axis"])):
        edges[topics.index(row["topic"])].append(np.array(row["edges"], np.float64))
    topic = pc.index_in(table["topic"], pa.array(topics, pa.string())).to_numpy().astype(np.int32)
    place = places_on_axes(plan, whole(table["cell"]), topic, edges)
    return StoredCells(topics, edges, table["group"].to_numpy().astype(np.int64), topic, place)


def places_on_axes(
    plan: StoredPlan, lists: pa.ListArray, topic: Ints, edges: list[list[Floats]]
) -> Longs:
    """Cells × axes; every cell must have a place on each axis of its topic."""
    along = np.array([len(axes) for axes in edges], np.int64)
    sizes = lists.value_lengths().to_numpy()
    shape = np.ones((len(edges), int(along.max(initial=0))), np.int64)
    for number, axes in enumerate(edges):
        shape[number, : len(axes)] = [len(axis) - 1 for axis in axes]
    place = np.zeros((len(lists), shape.shape[1]), np.int64)
    good = sizes == along[topic] if len(topic) else np.ones(0, bool)
    if good.all():
        place[np.arange(shape.shape[1]) < sizes[:, None]] = lists.flatten().to_numpy()
        good = ((place >= 0) & (place < shape[topic])).all(axis=1)
    for row in np.flatnonzero(~good)[:1]:
        what = f"group_cells: {lists[int(row)].as_py()} is not a cell of its topic"
        raise InputError(Problem(str(plan.folder), what, CHECK))
    return place


def on_grid(stored: StoredCells, grid: GroupGrid, topics: pa.Array) -> Longs:
    """Numbers of a plan's cells on the grid of a dataset, which must have the same axes."""
    of = pc.index_in(pa.array(stored.topics, pa.string()), topics)
    for name, at, axes in zip(stored.topics, of.to_pylist(), stored.edges, strict=True):
        if at is None or not same_axes(grid, at, axes):
            what = "its cells are not those of the plan"
            remedy = "Use a workload with the topics and domains that were planned for"
            raise InputError(Problem(f"topic {name!r}", what, remedy))
    number = of.to_numpy(zero_copy_only=False).astype(np.int32)
    return stored.numbers(grid, number[stored.topic])


def same_axes(grid: GroupGrid, topic: int, axes: list[Floats]) -> bool:
    known = [edges_of(grid, topic, axis) for axis in range(int(np.diff(grid.axes)[topic]))]
    return len(known) == len(axes) and all(map(np.array_equal, known, axes))


# ---- the matcher of a runtime


@dataclass(frozen=True, eq=False)
class StoredMatcher:
    """What a broker where messages enter needs to find the group of each: nothing but the plan.

    ``topics`` and ``roots`` are names in the order of their numbers.
    """

    topics: list[str]
    roots: list[str]
    matcher: CellMatcher

    def match(self, topic: Ints | int, point: Floats, root: Ints | int = 0) -> Ints:
        """The group of each publication, −1 for default routing; ``point`` is rows × axes."""
        return match_groups(self.matcher, topic, point, root)


def stored_matcher(plan: StoredPlan) -> StoredMatcher:
    """The matcher of a plan whose groups come from cells."""
    if plan.section(GroupsRecord).params.grouping.cells is None:
        what = "its groups are exact: a message's group is known by its destinations"
        raise InputError(Problem(str(plan.folder), what, "Plan groups of cells"))
    cells, table = (
        read_stored_cells(plan),
        plan.read("virtual_groups", ("group", "root")).sort_by("group"),
    )
    names = plan.read("group_trees", ("root",))["root"].unique().to_pylist()
    root = pc.index_in(table["root"], pa.array(names)).to_numpy().astype(np.int32)
    grid = grid_of(cells.edges)
    number = cells.numbers(grid, cells.topic)
    own = matcher_of(grid, root[cells.group], number, cells.group.astype(np.int32))
    return StoredMatcher(cells.topics, names, own)
