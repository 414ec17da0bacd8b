"""Reading the groups problem from a dataset and its stages made on demand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fanplan.problem.cell_matcher import Matcher
from fanplan.problem.group_building import exact_groups
from fanplan.problem.groups import BrokerTrees, GroupsProblem
from fanplan.problem.overlay_dataset import read_brokers, read_routes


@dataclass(frozen=True)
class Grouping:
    """How groups are found: exact ones from routes, or those of ``cells`` per axis."""

    cells: int | None = None
    mark: Literal["cover", "overlap"] = "cover"
    least: float = 0.0


@dataclass(frozen=True)
class FoundGroups:
    problem: GroupsProblem
    matcher: Matcher | None = None


def load_groups(dataset: Path, trees: BrokerTrees, grouping: Grouping) -> FoundGroups:
    """Exact groups of the routes."""
    routes = read_routes(dataset, "routes")
    names = read_brokers(dataset).names
    return FoundGroups(exact_groups(names, trees, routes, grouping.least))
