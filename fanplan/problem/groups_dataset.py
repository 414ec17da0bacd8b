"""Reading the groups problem from a dataset and its stages made on demand, with pyarrow alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from fanplan.errors import InputError, Problem
from fanplan.problem.broker_regions import read_broker_regions
from fanplan.problem.exact_matcher import ExactMatcher, exact_matcher, match_exact
from fanplan.problem.group_building import exact_groups
from fanplan.problem.groups import BrokerTrees, GroupsProblem
from fanplan.problem.interest import Floats, Ints
from fanplan.problem.overlay_dataset import read_brokers, read_routes

Mark = Literal["cover", "overlap"]


@dataclass(frozen=True)
class Grouping:
    """How groups are found.

    Without ``cells`` groups are exact: observed traffic with the same destinations. Else they come
    from a grid with so many cells on each axis, which a broker marks if it wants all of them
    (``cover``) or any part (``overlap``). ``least`` is the density threshold: what has so few
    messages in the window, or fewer, takes default routing.
    """

    cells: int | None = None
    mark: Mark = "cover"
    least: float = 0.0

    def __post_init__(self) -> None:
        if self.cells is not None and self.cells < 1:
            raise InputError(
                Problem("cells", f"{self.cells} is no number of cells", "Give 1 or more")
            )
        if self.mark not in get_args(Mark):
            remedy = f"Use one of: {', '.join(get_args(Mark))}"
            raise InputError(Problem("mark", f"{self.mark!r} is unknown", remedy))
        if not self.least >= 0:
            what = f"{self.least} is no number of messages"
            raise InputError(Problem("least", what, "Give 0 or more"))


@dataclass(frozen=True, eq=False)
class FoundGroups:
    """Groups of a dataset, and how a publication finds its group."""

    problem: GroupsProblem
    dataset: Path

    @cached_property
    def matcher(self) -> ExactMatcher:
        """Built when first asked for; planning needs none."""
        return exact_matcher(read_broker_regions(self.dataset), self.problem)

    def match(self, topic: Ints | int, point: Floats, tree: Ints | int = 0) -> Ints:
        """The group of each publication that enters at the root of a tree; NONE: default routing.

        ``topic`` is the number of its topic in the dataset, ``point`` has publications × axes.
        """
        return match_exact(self.matcher, topic, point, tree)


def load_groups(dataset: Path, trees: BrokerTrees, grouping: Grouping) -> FoundGroups:
    """The groups problem, after the pipeline made the stages for this grouping."""
    brokers, routes = read_brokers(dataset).names, read_routes(dataset, "routes")
    return FoundGroups(exact_groups(brokers, trees, routes, grouping.least), dataset)
