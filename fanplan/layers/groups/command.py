"""Groups plans: which messages are matched only once, and which hops they skip."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from fanplan.core.errors import InputError, Problem
from fanplan.core.version import __version__
from fanplan.data.dataset import Dataset, PathLike
from fanplan.layers.groups.build import groups_layer
from fanplan.layers.groups.params import EntryBudget, Grouping, GroupsParams
from fanplan.layers.groups.problem.dataset import FoundGroups, load_groups
from fanplan.layers.groups.problem.grid import require_coarse_grid
from fanplan.layers.groups.problem.trees import (
    GivenTrees,
    SharedTrees,
    TreeSource,
    read_tree_source,
    sources_of,
)
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.groups.search.choose import choose_groups
from fanplan.layers.groups.stages.make import make_group_stages
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.layers.overlay.simulated import read_trees as stored_trees
from fanplan.layers.registry import load_plan
from fanplan.network.dataset import read_brokers, require_homes
from fanplan.plan.made import Job, Planned
from fanplan.plan.stored import StoredPlan


def plan_groups(job: Job, params: GroupsParams) -> Planned:
    """Find groups of traffic that goes to the same brokers, and choose those that pay."""
    dataset, engine = job.dataset, job.engine
    require_some_entries(params)
    if params.overlay:
        source = trees_of_overlay(dataset, params.overlay)
    else:
        require_homes(dataset.path)
        source = read_tree_source(dataset.path, params.tree_kind)
    if params.cells is not None:
        # An error, before any work, if the grid would have too many cells.
        require_coarse_grid(dataset.path, params.cells)
    make_group_stages(dataset, params.grouping, engine)
    with engine.progress.stage("find groups") as stage:
        found, silent = found_groups(dataset, source, params.grouping)
        stage.rows(found.problem.size)
    with engine.progress.stage(f"choose {params.select} by {params.rank}") as stage:
        chosen = choose_groups(found.problem, params.choice)
        stage.rows(int(chosen.selected.sum()))
    told = replace(params, trees=params.tree_kind)
    section = groups_layer(found, chosen, told, dataset.manifest.key, __version__)
    record = section.record
    return Planned(
        (section,),
        record.model_dump() | record.ledger | {"silent": list(silent)},
        found.problem,
        compared=lambda _: compared_routing(record),
        beside={"best": section.tables["virtual_groups"].slice(0, BEST).to_pylist()},
    )


PLANS = {"groups": plan_groups}

BEST = 5
"""Groups with the most benefit that are shown."""


def require_some_entries(params: GroupsParams) -> None:
    """A budget of nothing is a question without an answer."""
    if params.choice.select == EntryBudget(0):
        what = f"{params.select!r} is not a number of entries"
        raise InputError(Problem("select", what, "Give a whole number of 1 or more"))


def stored_overlay(folder: PathLike) -> StoredPlan:
    """A plan with an overlay whose clients are where the workload has them."""
    plan = load_plan(Path(folder))
    if plan.section(OverlayRecord).clients == "allocated":
        what = "its clients are elsewhere than in the workload"
        remedy = "Put them where the plan has them in the workload's tables, or use another plan"
        raise InputError(Problem(str(folder), what, remedy))
    return plan


def trees_of_overlay(dataset: Dataset, folder: PathLike) -> TreeSource:
    """Trees of a stored overlay that was planned for the same dataset."""
    plan = stored_overlay(folder)
    if plan.record.input.key != dataset.manifest.key:
        what = "was planned for other input than this dataset"
        raise InputError(Problem(str(folder), what, "Name an overlay of the same dataset"))
    require_homes(dataset.path)
    stored = stored_trees(plan, read_brokers(dataset.path).names)
    return SharedTrees(tuple(stored.links[own] for own in stored.members), stored.of)


def found_groups(
    dataset: Dataset, source: TreeSource, grouping: Grouping
) -> tuple[FoundGroups, tuple[str, ...]]:
    """The groups on trees that are hung where traffic enters; and roots at which nothing does."""
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


def compared_routing(record: GroupsRecord) -> list[dict[str, Any]]:
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
    prices = record.params.prices
    sent = prices.matched * ledger["matches_total"] + prices.forwarded * ledger["link_messages"]
    return sent + prices.entry * ledger["entries"] + prices.control * ledger["overhead"]
