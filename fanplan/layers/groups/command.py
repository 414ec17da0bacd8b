"""Groups plans: which messages are matched only once, and which hops they skip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers.groups.params import (
    found_groups,
    grouping_of,
    params_of,
    recorded,
    require_grid,
    trees_of_dataset,
    trees_of_overlay,
)
from fanplan.verbs.datasets import Dataset, PathLike
from fanplan.verbs.stages import make_group_stages

if TYPE_CHECKING:
    from fanplan.layers.groups.problem.groups import GroupsProblem
    from fanplan.layers.groups.types import GroupsLayer


@dataclass(frozen=True)
class GroupsPlan:
    """Groups together with the dataset they are for, and the problem they were chosen from.

    ``silent`` are roots of given trees at which nothing is published; their trees are not used.
    """

    layer: GroupsLayer
    dataset: Dataset
    problem: GroupsProblem
    silent: tuple[str, ...] = ()

    def summary(self) -> dict[str, Any]:
        """The figures of the plan, as JSON."""
        from fanplan.layers.groups.groups_figures import figures

        return figures(self.layer) | {"silent": list(self.silent)}

    def compared(self) -> list[dict[str, Any]]:
        """Each figure without groups, with them, and how much is saved."""
        from fanplan.layers.groups.groups_figures import compared

        return compared(self.layer.record)

    def best(self, most: int = 5) -> list[dict[str, Any]]:
        """The groups with the most benefit, as rows of the plan's table."""
        rows: list[dict[str, Any]] = self.layer.tables["virtual_groups"].slice(0, most).to_pylist()
        return rows

    def save(self, out: PathLike, replace: bool = False) -> Path:
        """Write the plan folder: checked, and whole or not at all."""
        from fanplan.verbs.save import save_plan

        return save_plan(self.layer, self.dataset.path, Path(out), replace).folder


def groups(
    dataset: Dataset,
    select: str = "top:10%",
    *,
    rank: str = "saving",
    trees: str = "links",
    overlay: PathLike | None = None,
    cells: int | None = None,
    mark: str = "cover",
    least: float = 0.0,
    shortcuts: bool = True,
    prices: Mapping[str, float] | None = None,
    engine: Engine = EMBEDDED,
) -> GroupsPlan:
    """Find groups of traffic that goes to the same brokers, and choose those that pay.

    ``select`` is ``top:10%``, ``threshold:X`` or ``budget:N`` (entries of forwarding tables), by
    the benefit ``rank``: nc, fc or saving. ``trees`` are the ``links`` as one tree, shortest paths
    ``per-publisher``, or ``given`` by the table `trees`; with ``overlay`` those of another plan.
    Groups are exact, or those of a grid with ``cells`` per axis, marked by full ``cover`` or by
    ``overlap``. What has ``least`` messages or fewer has no group. ``prices`` are of a match, a
    forward, an entry and a control message.
    """
    from fanplan import __version__
    from fanplan.layers.groups.build import Decided, groups_layer
    from fanplan.layers.groups.search.benefit import candidates_of
    from fanplan.layers.groups.search.choose import choose_among

    params = params_of(select, rank, shortcuts, prices or {})
    grouping = grouping_of(cells, mark, least)
    source = trees_of_overlay(dataset, overlay) if overlay else trees_of_dataset(dataset, trees)
    require_grid(dataset, grouping)
    make_group_stages(dataset, grouping, engine)
    with engine.progress.stage("find groups") as stage:
        found, silent = found_groups(dataset, source, grouping)
        stage.rows(found.problem.size)
    with engine.progress.stage(f"choose {select} by {rank}") as stage:
        weighed = candidates_of(found.problem, shortcuts)
        chosen = choose_among(weighed, params)
        stage.rows(int(chosen.selected.sum()))
    decided = Decided(
        chosen.selected, chosen.benefit, weighed.entries, weighed.control, chosen.bound
    )
    wishes = recorded(params, grouping, "overlay" if overlay else trees)
    layer = groups_layer(found, decided, wishes, dataset.manifest.key, __version__)
    return GroupsPlan(layer, dataset, found.problem, silent)
