"""The check of groups: trees, entries, whose traffic is whose, and whether figures are as told."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.core.errors import InputError
from fanplan.layers.groups.bound import GroupsBound
from fanplan.layers.groups.carried import group_keys, stored_keys
from fanplan.layers.groups.cells import cells_of, on_grid, read_cells, topic_names
from fanplan.layers.groups.check.count import Traffic, count
from fanplan.layers.groups.check.entries import check_entries
from fanplan.layers.groups.check.figures import (
    check_default,
    check_figures,
    check_record,
    check_rule,
    figures,
)
from fanplan.layers.groups.check.trees import check_trees
from fanplan.layers.groups.problem.dataset import FoundGroups, load_groups
from fanplan.layers.groups.problem.groups import BrokerTrees, GroupsProblem
from fanplan.layers.groups.read import StoredGroups, read_groups
from fanplan.layers.groups.record import GroupsRecord
from fanplan.network.dataset import read_brokers
from fanplan.plan.findings import EXAMPLES, Findings, Missed
from fanplan.plan.stored import StoredPlan


def check_groups(
    plan: StoredPlan, dataset: Path, findings: Findings, bound: GroupsBound | None = None
) -> Missed:
    """Add what is wrong; how many (route, destination) pairs are missed, 1 if none can be told."""
    record, known = plan.section(GroupsRecord), len(findings.violations)
    try:
        stored = read_groups(plan, read_brokers(dataset).names)
        check_trees(record, stored.trees, dataset, findings)
        found = possible_groups(plan, dataset, stored.trees, bound)
        subtrees = check_entries(stored, findings)
        candidate = candidates(stored, found.problem, findings)
        if subtrees is None or len(findings.violations) > known:
            return Missed(1)
        check_cells(plan, dataset, found, candidate, findings)
    except InputError as error:
        for wrong in error.problems:
            findings.violate("groups", 1, [wrong.what])
        return Missed(1)
    problem = found.problem
    traffic = Traffic(problem.routes, problem.tree, carriers(candidate, problem))
    missed = check_reached(stored, traffic, findings)
    counted = count(stored, traffic)
    own = figures(record, stored, subtrees, counted)
    check_figures(stored, own, counted, findings)
    check_record(record, stored, problem.size, own, counted, findings)
    check_default(record, stored, traffic, findings)
    check_rule(record, stored, findings)
    return Missed(missed)


def possible_groups(
    plan: StoredPlan, dataset: Path, trees: BrokerTrees, bound: GroupsBound | None
) -> FoundGroups:
    """Groups of the dataset's traffic, or of what a layer that binds them leaves to brokers."""
    if bound is not None:
        return FoundGroups(bound.possible(dataset, trees), dataset)
    return load_groups(dataset, trees, plan.section(GroupsRecord).params.grouping)


def candidates(stored: StoredGroups, problem: GroupsProblem, findings: Findings) -> Longs:
    """The group of the dataset that each stored one is: that with its root and members.

    Two stored groups that are the same would share traffic.
    """
    own = group_keys(problem.span, problem.starts, problem.members)
    known = {key: group for group, key in enumerate(own)}
    found = np.array([known.get(key, -1) for key in stored_keys(stored)], np.int64)
    strange = np.flatnonzero(found < 0)
    findings.violate("groups: no traffic has just these members", len(strange), numbered(strange))
    _, first = np.unique(found, return_index=True)
    twice = np.setdiff1d(np.flatnonzero(found >= 0), first)
    findings.violate("groups: given twice", len(twice), numbered(twice))
    return found


def carriers(candidate: Longs, problem: GroupsProblem) -> Longs:
    """The stored group of each route, −1 for default routing."""
    number = np.full(problem.size + 1, -1, np.int64)
    number[candidate] = np.arange(len(candidate))
    # A route without a group has the position −1, which is that of the last entry.
    return number[problem.group]


def check_cells(
    plan: StoredPlan, dataset: Path, found: FoundGroups, candidate: Longs, findings: Findings
) -> None:
    """Groups have just the cells that their members marked, and so no two of a root share one."""
    if found.cells is None:
        return
    stored, total = read_cells(plan), int(found.cells.grid.cells[-1])
    number = on_grid(stored, found.cells.grid, topic_names(dataset))
    group, cell = cells_of(found.cells, candidate)
    stated, own = stored.group * total + number, group * total + cell
    for what, wrong in (
        ("missing", np.setdiff1d(own, stated)),
        ("not marked by its members", np.setdiff1d(stated, own)),
        ("given twice", repeated(stated)),
    ):
        said = [f"group {key // total}, cell {key % total}" for key in wrong[:EXAMPLES]]
        findings.violate(f"group_cells: {what}", len(wrong), said)


def repeated(keys: Longs) -> Longs:
    found, times = np.unique(keys, return_counts=True)
    return found[times > 1]


def check_reached(stored: StoredGroups, traffic: Traffic, findings: Findings) -> int:
    """Every destination of a route of a group is a member; how many are not."""
    size, routes = len(stored.brokers), traffic.routes
    route = np.repeat(np.arange(len(routes)), np.diff(routes.starts))
    group = traffic.group[route]
    members = stored.member_group * size + stored.member
    lost = np.flatnonzero((group >= 0) & ~np.isin(group * size + routes.brokers, members))
    names = [
        f"group {group[row]}, {stored.brokers[int(routes.brokers[row])].as_py()!r}"
        for row in lost[:EXAMPLES]
    ]
    findings.violate("groups: miss a broker that wants their messages", len(lost), names)
    return len(lost)


def numbered(groups: Longs) -> list[str]:
    return [f"group {group}" for group in groups[:EXAMPLES]]
