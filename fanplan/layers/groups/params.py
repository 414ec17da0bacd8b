"""What a user may ask of groups, by names, and where the trees come from that they hang on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from fanplan.core.errors import InputError, Problem
from fanplan.verbs.datasets import Dataset, PathLike

if TYPE_CHECKING:
    from fanplan.layers.groups.build import GroupsWishes
    from fanplan.layers.groups.problem.dataset import FoundGroups, Grouping
    from fanplan.layers.groups.problem.trees import TreeSource
    from fanplan.layers.groups.search.choose import GroupsParams
    from fanplan.plan.stored import StoredPlan


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


def params_of(select: str, rank: str, shortcuts: bool, prices: Mapping[str, float]) -> GroupsParams:
    """The rule, the benefit and the prices, or what is wrong with them."""
    from fanplan.layers.groups.rule import rule_of
    from fanplan.layers.groups.search.benefit import Prices, Rank
    from fanplan.layers.groups.search.choose import GroupsParams

    if rank not in get_args(Rank):
        remedy = f"Use one of: {', '.join(get_args(Rank))}"
        raise InputError(Problem("rank", f"{rank!r} is unknown", remedy))
    names = [field.name for field in fields(Prices)]
    for name in prices:
        if name not in names:
            remedy = f"Use one of: {', '.join(names)}"
            raise InputError(Problem("prices", f"{name!r} has none", remedy))
    return GroupsParams(rule_of(select), cast("Rank", rank), shortcuts, Prices(**prices))


def grouping_of(cells: int | None, mark: str, least: float) -> Grouping:
    from fanplan.layers.groups.problem.dataset import Grouping

    return Grouping(cells, cast("Any", mark), least)


def require_grid(dataset: Dataset, grouping: Grouping) -> None:
    """An error, before any work, if the grid would have too many cells."""
    from fanplan.layers.groups.problem.grid import require_few_cells

    if grouping.cells is not None:
        require_few_cells(dataset.path, grouping.cells)


def recorded(params: GroupsParams, grouping: Grouping, trees: str) -> GroupsWishes:
    """The same as the plan records it."""
    from fanplan.layers.groups.build import GroupsWishes
    from fanplan.layers.groups.record import PricesRecord, SelectRecord

    select = params.select
    rule = type(select).__name__.lower()
    (amount,) = asdict(select).values()
    return GroupsWishes(
        cast("Any", trees),
        grouping,
        SelectRecord(rule=cast("Any", rule), amount=amount),
        params.rank,
        params.shortcuts,
        PricesRecord(**asdict(params.prices)),
    )


# ---- trees


def trees_of_dataset(dataset: Dataset, kind: str) -> TreeSource:
    """Trees that the dataset has by itself."""
    from fanplan.layers.groups.problem.trees import read_trees
    from fanplan.network.dataset import require_homes

    require_homes(dataset.path)
    return read_trees(dataset.path, kind)


def stored_overlay(folder: PathLike) -> StoredPlan:
    """A plan with an overlay whose clients are where the workload has them."""
    from fanplan.plan.stored import load_plan

    plan = load_plan(Path(folder))
    if plan.overlay.clients == "allocated":
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
