"""The check of groups: everybody is reached once, shortcuts bypass nobody, figures are as told."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from fanplan.errors import InputError
from fanplan.plan.findings import EXAMPLES, TOLERANCE, Findings, require_close
from fanplan.plan.groups.carried import group_keys, stored_keys
from fanplan.plan.groups.cells import cells_of, on_grid, read_cells, topic_names
from fanplan.plan.groups.count import (
    Counted,
    Induced,
    Traffic,
    between,
    count,
    induced,
)
from fanplan.plan.groups.read import Entries, StoredGroups, read_groups
from fanplan.plan.groups.record import GroupsRecord
from fanplan.plan.groups.trees import check_trees
from fanplan.plan.stored import StoredPlan
from fanplan.problem.groups import NONE, GroupsProblem
from fanplan.problem.groups_dataset import FoundGroups, load_groups
from fanplan.problem.interest import Floats, Longs
from fanplan.problem.overlay_dataset import read_brokers


def check_groups(plan: StoredPlan, dataset: Path, findings: Findings) -> int:
    """Add what is wrong; how many (route, destination) pairs no group and no tree reaches."""
    record, known = plan.groups, len(findings.violations)
    try:
        stored = read_groups(plan, read_brokers(dataset).names)
        check_trees(record, stored.trees, dataset, findings)
        found = load_groups(dataset, stored.trees, record.grouping)
        subtrees = check_entries(stored, findings)
        candidate = candidates(stored, found.problem, findings)
        if subtrees is None or len(findings.violations) > known:
            return 1
        check_cells(plan, dataset, found, candidate, findings)
    except InputError as error:
        for wrong in error.problems:
            findings.violate("groups", 1, [wrong.what])
        return 1
    problem = found.problem
    traffic = Traffic(problem.routes, problem.tree, carriers(candidate, problem))
    missed = check_reached(stored, traffic, findings)
    counted = count(stored, traffic)
    check_figures(record, stored, subtrees, counted, findings)
    check_record(record, stored, problem, subtrees, counted, findings)
    check_default(record, stored, traffic, findings)
    check_rule(record, stored, findings)
    return missed


# ---- entries


def check_entries(stored: StoredGroups, findings: Findings) -> Induced | None:
    """Entries reach every member once, along the tree, and bypass only who would just forward."""
    entries, size = stored.entries, len(stored.brokers)
    root = stored.trees.root[stored.tree]
    if not check_members(stored, findings):
        return None
    pairs, straight = between(stored.trees, stored.tree, entries)
    told(stored, findings, "entries: not along the tree", np.flatnonzero(~straight))
    heads = entries.group * size + entries.head
    order = np.argsort(heads, kind="stable")
    twice = order[1:][np.diff(heads[order]) == 0]
    told(stored, findings, "entries: reached twice", twice)
    loose = (entries.tail != root[entries.group]) & ~np.isin(
        entries.group * size + entries.tail, heads
    )
    told(stored, findings, "entries: begins where the group does not come", np.flatnonzero(loose))
    subtrees = induced(stored)
    members = stored.member_group * size + stored.member
    vain = ~np.isin(heads, subtrees.brokers)
    told(stored, findings, "entries: leads to no member", np.flatnonzero(vain))
    passed = entries.group[pairs.item] * size + pairs.broker
    for what, never in (("a member", members), ("where ways part", subtrees.parting)):
        wrong = np.unique(pairs.item[np.isin(passed, never)])
        told(stored, findings, f"shortcuts: bypasses {what}", wrong)
    away = stored.member != root[stored.member_group]
    lost = np.flatnonzero(away & ~np.isin(members, heads))
    findings.violate("members: not reached", len(lost), named_members(stored, lost))
    return subtrees


def check_members(stored: StoredGroups, findings: Findings) -> bool:
    """Every group has members, each once, on its tree."""
    sizes = np.diff(stored.starts)
    empty = np.flatnonzero(sizes == 0)
    findings.violate("groups: without members", len(empty), [f"group {g}" for g in empty])
    same = (np.diff(stored.member_group) == 0) & (np.diff(stored.member) == 0)
    twice = np.flatnonzero(same)
    findings.violate("members: given twice", len(twice), named_members(stored, twice))
    tree = stored.tree[stored.member_group]
    in_tree = stored.trees.parent[tree, stored.member] != NONE
    outside = np.flatnonzero(~in_tree & (stored.member != stored.trees.root[tree]))
    findings.violate("members: not in the tree", len(outside), named_members(stored, outside))
    return not (len(empty) or len(twice) or len(outside))


def told(stored: StoredGroups, findings: Findings, what: str, rows: Longs) -> None:
    """Entries that are wrong, by their ends."""
    entries, names = stored.entries, stored.brokers
    examples = [
        f"group {entries.group[row]}, {names[int(entries.tail[row])].as_py()!r} to "
        f"{names[int(entries.head[row])].as_py()!r}"
        for row in rows[:EXAMPLES]
    ]
    findings.violate(what, len(rows), examples)


def named_members(stored: StoredGroups, rows: Longs) -> list[str]:
    names = stored.brokers
    return [
        f"group {stored.member_group[row]}, {names[int(stored.member[row])].as_py()!r}"
        for row in rows[:EXAMPLES]
    ]


# ---- which traffic is whose


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


def numbered(groups: Longs) -> list[str]:
    return [f"group {group}" for group in groups[:EXAMPLES]]


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


# ---- figures


def check_figures(
    record: GroupsRecord,
    stored: StoredGroups,
    subtrees: Induced,
    counted: Counted,
    findings: Findings,
) -> None:
    """The figures of each group."""
    own = figures(record, stored, subtrees, counted)
    for name, value in own.items():
        stated = stored.stated[name]
        scale = 1e-12 * counted.ledger["link_messages"]
        wrong = np.flatnonzero(~np.isclose(stated, value, rtol=TOLERANCE, atol=scale))
        said = [
            f"group {g}: stated {stated[g]:.12g}, counted {value[g]:.12g}" for g in wrong[:EXAMPLES]
        ]
        findings.violate(f"virtual_groups: {name}", len(wrong), said)


def figures(
    record: GroupsRecord, stored: StoredGroups, subtrees: Induced, counted: Counted
) -> dict[str, Floats]:
    """What the table of groups must say."""
    size, entries = np.diff(stored.starts), stored.entries
    used = np.bincount(entries.group, minlength=stored.size)
    away = stored.member != stored.trees.root[stored.tree[stored.member_group]]
    told_ = np.bincount(stored.member_group[away], minlength=stored.size)
    replies = np.bincount(entries.group[entries.bypassed > 0], minlength=stored.size)
    control = told_ + subtrees.links * (1 + record.shortcuts) + replies
    prices = record.prices
    saved = prices.match * counted.matches
    saved = saved + prices.forward * (counted.links - counted.messages * used)
    benefit = {
        "nc": size * counted.messages,
        "fc": subtrees.inner * counted.messages,
        "saving": saved - prices.entry * used - prices.control * control,
    }
    return {
        "members": size,
        "messages": counted.messages,
        "unwanted": counted.messages * size - counted.wanted,
        "entries": used,
        "control": control,
        "benefit": benefit[record.rank],
    }


def check_record(
    record: GroupsRecord,
    stored: StoredGroups,
    problem: GroupsProblem,
    subtrees: Induced,
    counted: Counted,
    findings: Findings,
) -> None:
    """Counts, value and ledger of plan.json."""
    own = figures(record, stored, subtrees, counted)
    total = counted.ledger["publications"]
    expected = {
        "brokers": len(stored.brokers),
        "roots": len(stored.trees.root),
        "groups": problem.size,
        "selected": stored.size,
        "covered": counted.messages.sum() / total if total else 0.0,
        "value": own["benefit"].sum(),
    }
    for name, value in expected.items():
        require_close(f"plan.json: groups.{name}", getattr(record, name), value, total, findings)
    compare(record.ledger, counted.ledger | {"overhead": own["control"].sum()}, "ledger", findings)
    if record.bound < record.value - TOLERANCE * abs(record.value):
        what = f"{record.bound} is below the value {record.value}"
        findings.violate("plan.json: groups.bound", 1, [what])


def check_default(
    record: GroupsRecord, stored: StoredGroups, traffic: Traffic, findings: Findings
) -> None:
    """The ledger without groups."""
    alone = Traffic(traffic.routes, traffic.tree, np.full(len(traffic.group), -1))
    counted = count(without_groups(stored), alone)
    compare(record.default, counted.ledger | {"overhead": 0}, "default", findings)


def without_groups(stored: StoredGroups) -> StoredGroups:
    nothing = np.empty(0, np.int64)
    none = Entries(nothing, nothing, nothing, nothing)
    return replace(stored, tree=stored.tree[:0], member_group=nothing, member=nothing, entries=none)


def compare(
    stated: dict[str, float], own: dict[str, float], section: str, findings: Findings
) -> None:
    for name, value in own.items():
        what = f"plan.json: groups.{section}.{name}"
        require_close(what, stated.get(name, math.nan), value, own["link_messages"], findings)
    strange = sorted(stated.keys() - own.keys())
    findings.violate(f"plan.json: groups.{section}: unknown", len(strange), strange)


def check_rule(record: GroupsRecord, stored: StoredGroups, findings: Findings) -> None:
    """The rule that groups were chosen by is kept."""
    rule, amount = record.select.rule, record.select.amount
    used = len(stored.entries.group)
    if rule == "budget" and used > amount:
        findings.violate("budget", 1, [f"{used} entries are more than {amount:.12g}"])
    if rule == "top":
        many = math.ceil(round(amount * record.groups, 9))
        if many != stored.size:
            findings.violate("top", 1, [f"{stored.size} groups are not the best {many}"])
    if rule == "threshold":
        net = stored.stated["benefit"]
        if record.rank != "saving":
            prices = record.prices
            net = net - prices.entry * stored.stated["entries"]
            net = net - prices.control * stored.stated["control"]
        below = np.flatnonzero(net <= amount)
        findings.violate(f"threshold: not above {amount:.12g}", len(below), numbered(below))
