"""The check of forwarding entries: all members are reached once, and only forwarding is skipped."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import NONE, Longs
from fanplan.layers.groups.check.count import Induced, bypassed_by, induced
from fanplan.layers.groups.read import StoredGroups
from fanplan.plan.findings import EXAMPLES, Findings


def check_entries(stored: StoredGroups, findings: Findings) -> Induced | None:
    """Entries reach every member once, along the tree, and bypass only who would just forward."""
    entries, size = stored.entries, len(stored.brokers)
    root = stored.trees.root[stored.tree]
    if not check_members(stored, findings):
        return None
    pairs, straight = bypassed_by(stored.trees, stored.tree, entries)
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
