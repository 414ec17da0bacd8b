"""Groups plans: which messages are matched only once, and which hops they skip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanplan.core.errors import InputError, Problem
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers.groups.params import grouping_of, params_of, recorded
from fanplan.layers.groups.record import GroupsRecord, GroupsSection
from fanplan.layers.groups.stages.make import make_group_stages

if TYPE_CHECKING:
    from fanplan.layers.groups.problem.dataset import FoundGroups, Grouping
    from fanplan.layers.groups.problem.groups import GroupsProblem
    from fanplan.layers.groups.problem.trees import TreeSource
    from fanplan.layers.groups.record import GroupsSection
    from fanplan.plan.stored import StoredPlan


@dataclass(frozen=True)
class GroupsPlan:
    """Groups together with the dataset they are for, and the problem they were chosen from.

    ``silent`` are roots of given trees at which nothing is published; their trees are not used.
    """

    layer: GroupsSection
    dataset: Dataset
    problem: GroupsProblem
    silent: tuple[str, ...] = ()

    def summary(self) -> dict[str, Any]:
        """The figures of the plan, as JSON."""

        return figures(self.layer) | {"silent": list(self.silent)}

    def compared(self) -> list[dict[str, Any]]:
        """Each figure without groups, with them, and how much is saved."""

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
    from fanplan.core.version import __version__
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


def require_groups(
    select: str,
    *,
    rank: str = "saving",
    trees: str = "links",
    overlay: PathLike | None = None,
    cells: int | None = None,
    mark: str = "cover",
    least: float = 0.0,
    shortcuts: bool = True,
    prices: Mapping[str, float] | None = None,
) -> None:
    """An error if these wishes cannot be understood, whatever the dataset."""
    from fanplan.layers.groups.problem.trees import require_kind

    params_of(select, rank, shortcuts, prices or {})
    grouping_of(cells, mark, least)
    if overlay is None:
        require_kind(trees)
    else:
        stored_overlay(overlay)


def require_grid(dataset: Dataset, grouping: Grouping) -> None:
    """An error, before any work, if the grid would have too many cells."""
    from fanplan.layers.groups.problem.grid import require_few_cells

    if grouping.cells is not None:
        require_few_cells(dataset.path, grouping.cells)


def trees_of_dataset(dataset: Dataset, kind: str) -> TreeSource:
    """Trees that the dataset has by itself."""
    from fanplan.layers.groups.problem.trees import read_tree_source
    from fanplan.network.dataset import require_homes

    require_homes(dataset.path)
    return read_tree_source(dataset.path, kind)


def stored_overlay(folder: PathLike) -> StoredPlan:
    """A plan with an overlay whose clients are where the workload has them."""
    from fanplan.layers.overlay.record import OverlayRecord
    from fanplan.layers.registry import load_plan

    plan = load_plan(Path(folder))
    if plan.section(OverlayRecord).clients == "allocated":
        what = "its clients are elsewhere than in the workload"
        remedy = "Put them where the plan has them in the workload's tables, or use another plan"
        raise InputError(Problem(str(folder), what, remedy))
    return plan


def trees_of_overlay(dataset: Dataset, folder: PathLike) -> TreeSource:
    """Trees of a stored overlay that was planned for the same dataset."""
    from fanplan.layers.groups.problem.trees import SharedTrees
    from fanplan.layers.overlay.simulated import read_trees
    from fanplan.network.dataset import read_brokers, require_homes

    plan = stored_overlay(folder)
    if plan.record.input.key != dataset.manifest.key:
        what = "was planned for other input than this dataset"
        raise InputError(Problem(str(folder), what, "Name an overlay of the same dataset"))
    require_homes(dataset.path)
    stored = read_trees(plan, read_brokers(dataset.path).names)
    return SharedTrees(tuple(stored.links[own] for own in stored.members), stored.of)


def found_groups(
    dataset: Dataset, source: TreeSource, grouping: Grouping
) -> tuple[FoundGroups, tuple[str, ...]]:
    """The groups on trees that are hung where traffic enters; and roots at which nothing does."""
    from fanplan.layers.groups.problem.dataset import load_groups
    from fanplan.layers.groups.problem.trees import GivenTrees, sources_of

    roots = sources_of(dataset.path, grouping)
    found = load_groups(dataset.path, source.hung(roots), grouping)
    silent = source.silent(roots) if isinstance(source, GivenTrees) else roots[:0]
    return found, tuple(found.problem.brokers[int(root)].as_py() for root in silent)


COMPARED = {
    "delay": "mean delay (hops and matches)",
    "messages": "inner brokers receive, share",
    "matches": "inner brokers match, share",
    "link_messages": "messages on links",
    "matches_total": "matches",
    "entries": "forwarding entries",
    "overhead": "control messages",
    "unwanted": "unwanted messages",
}
"""Figures of the ledger that are shown beside default routing."""


def figures(layer: GroupsSection) -> dict[str, Any]:
    """What was decided and what it saves; figures of the ledger by their own names."""
    record = layer.record.model_dump()
    return record | layer.record.ledger


def compared(record: GroupsRecord) -> list[dict[str, Any]]:
    """Each figure by default routing, with groups, and the difference; the total cost last."""
    names = {name: (record.default[name], record.ledger[name]) for name in COMPARED}
    rows = [row(COMPARED[name], *pair) for name, pair in names.items()]
    both = (total_cost(record, ledger) for ledger in (record.default, record.ledger))
    return [*rows, row("total cost at the prices", *both)]


def row(figure: str, default: float, groups: float) -> dict[str, Any]:
    saved = default - groups
    percent = 100 * saved / default if default else None
    return {
        "figure": figure,
        "default": default,
        "groups": groups,
        "saved": saved,
        "saved_percent": percent,
    }


def total_cost(record: GroupsRecord, ledger: dict[str, float]) -> float:
    """Matches, messages on links, entries and control messages at their prices."""
    prices = record.prices
    sent = prices.matched * ledger["matches_total"] + prices.forwarded * ledger["link_messages"]
    return sent + prices.entry * ledger["entries"] + prices.control * ledger["overhead"]
