"""Reading the groups problem from a dataset and its stages made on demand, with pyarrow alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from fanplan.core.arrays import Floats, Ints, Longs, starts_of
from fanplan.data.reader import read_manifest, read_stage
from fanplan.layers.groups.params import Grouping
from fanplan.layers.groups.problem.build import MarkedCells, cell_groups, exact_groups
from fanplan.layers.groups.problem.grid import GroupGrid, read_group_grid
from fanplan.layers.groups.problem.groups import BrokerTrees, GroupsProblem
from fanplan.layers.groups.problem.matchers import (
    ClassMatcher,
    ExactMatcher,
    class_matcher,
    exact_matcher,
    match_class,
    match_exact,
)
from fanplan.layers.groups.problem.regions import read_broker_regions
from fanplan.network.brokers import Routes
from fanplan.network.dataset import ordered_routes, read_brokers, read_routes, routes_of

DEFAULT_CLASS = -1
"""Traffic of cells that are in no class, in the stage `group_routes`."""


class CellMap(NamedTuple):
    """Cells that may be in a group, each in a class; group g has the cells of ``group_class[g]``.

    Cells are numbered as on ``grid``.
    """

    grid: GroupGrid
    cell: Longs
    cell_class: Ints
    group_class: Ints


@dataclass(frozen=True, eq=False)
class FoundGroups:
    """Groups of a dataset, and how a publication finds its group.

    ``cells`` says which cells groups consist of; None if they are exact.
    """

    problem: GroupsProblem
    dataset: Path
    cells: CellMap | None = None

    @cached_property
    def matcher(self) -> ExactMatcher | ClassMatcher:
        """Built when first asked for; planning needs none."""
        if self.cells is None:
            return exact_matcher(read_broker_regions(self.dataset), self.problem)
        grid, cell, cell_class, group_class = self.cells
        return class_matcher(grid, cell, cell_class, self.problem.span, group_class)

    def match(self, topic: Ints | int, point: Floats, tree: Ints | int = 0) -> Ints:
        """The group of each publication that enters at the root of a tree; NONE: default routing.

        ``topic`` is the number of its topic in the dataset, ``point`` has publications × axes.
        """
        if isinstance(self.matcher, ExactMatcher):
            return match_exact(self.matcher, topic, point, tree)
        return match_class(self.matcher, topic, point, tree)


def load_groups(dataset: Path, trees: BrokerTrees, grouping: Grouping) -> FoundGroups:
    """The groups problem, after the pipeline made the stages for this grouping."""
    brokers = read_brokers(dataset).names
    if grouping.cells is None:
        problem = exact_groups(brokers, trees, read_routes(dataset, "routes"), grouping.least)
        return FoundGroups(problem, dataset)
    routes, marked = read_group_routes(dataset)
    problem = cell_groups(brokers, trees, routes, marked)
    group_class = np.empty(problem.size, np.int32)
    inside = problem.group >= 0
    group_class[problem.group[inside]] = marked.route[inside]
    return FoundGroups(problem, dataset, read_cell_map(dataset, group_class))


def read_group_routes(dataset: Path) -> tuple[Routes, MarkedCells]:
    """Traffic, with classes in place of cells: all cells of a class have the same marks."""
    classes = read_stage(dataset, "group_classes", ("cell_class", "brokers")).sort_by("cell_class")
    lists = classes["brokers"].combine_chunks()
    sizes = pc.list_value_length(lists).to_numpy()
    columns = ("cell_class", "source", "destinations", "messages", "deliveries")
    rows = ordered_routes(read_stage(dataset, "group_routes", columns), "cell_class")
    known = rows["cell_class"].to_numpy()
    # What is in no class gets one that nobody marked: the last.
    route = np.where(known == DEFAULT_CLASS, len(classes), known).astype(np.int32)
    starts = starts_of(sizes)
    leaves = lists.flatten().to_numpy().astype(np.int32)
    return routes_of(rows), MarkedCells(route, np.append(starts, starts[-1]), leaves)


def read_cell_map(dataset: Path, group_class: Ints) -> CellMap:
    grid = read_group_grid(dataset / "group_grid", read_manifest(dataset).stages["topics"])
    table = read_stage(dataset, "group_cells", ("cell", "cell_class")).sort_by("cell")
    cell, cell_class = (table[name].to_numpy() for name in ("cell", "cell_class"))
    return CellMap(grid, cell.astype(np.int64), cell_class.astype(np.int32), group_class)
