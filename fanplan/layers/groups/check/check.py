"""The check of groups: trees, entries, whose traffic is whose, and whether figures are as told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import NONE, Floats, Longs
from fanplan.core.errors import InputError
from fanplan.data.integrity import DamagedError
from fanplan.data.reader import read_manifest, read_stage
from fanplan.layers.groups.bound import GroupsBound
from fanplan.layers.groups.cells import (
    cell_words,
    cells_of_groups,
    on_grid,
    placed_cells,
    read_stored_cells,
    topic_names,
)
from fanplan.layers.groups.check.bound import check_choice
from fanplan.layers.groups.check.count import (
    GroupTraffic,
    Induced,
    bypassed_by,
    check_default,
    check_groups_record,
    check_rows,
    check_rule,
    count_groups,
    counted_figures,
    induced,
)
from fanplan.layers.groups.check.possible import (
    Possible,
    groups_of_dataset,
    groups_of_routes,
    possible_keys,
    worths,
)
from fanplan.layers.groups.problem.groups import BrokerTrees
from fanplan.layers.groups.read import StoredGroups, read_groups, stored_keys
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.network.brokers import Links
from fanplan.network.dataset import read_brokers, read_links
from fanplan.plan.axis import whole
from fanplan.plan.findings import EXAMPLES, Findings, Missed
from fanplan.plan.stored import StoredPlan
from fanplan.plan.walks import added_up


def check_groups(
    plan: StoredPlan, dataset: Path, findings: Findings, bound: GroupsBound | None = None
) -> Missed:
    """Add what is wrong; how many (route, destination) pairs are missed, 1 if none can be told."""
    record, known = plan.section(GroupsRecord), len(findings.violations)
    try:
        stored = read_groups(plan, read_brokers(dataset).names)
        check_hanging(record, stored.trees, dataset, findings)
        check_whole(plan, stored, findings)
        found = possible_groups(plan, dataset, stored.trees, bound)
        subtrees = check_entries(stored, findings)
        candidate = dataset_groups(stored, found, findings)
        if subtrees is None or len(findings.violations) > known:
            return Missed(1)
        check_cells(plan, dataset, found, candidate, findings)
    except DamagedError:
        raise
    except InputError as error:
        for wrong in error.problems:
            findings.violate("groups", 1, [wrong.what])
        return Missed(1)
    traffic = replace(found.traffic, group=stored_carriers(candidate, found))
    missed = check_reached(stored, traffic, findings)
    counted = count_groups(stored, traffic)
    own = counted_figures(record, stored, subtrees, counted)
    check_rows(stored, own, counted, findings)
    check_groups_record(record, stored, found.size, own, counted, findings)
    check_default(record, stored, traffic, findings)
    check_rule(record, stored, findings)
    weighed = worths(record, stored.brokers, stored.trees, found)
    check_choice(record, *weighed, bound is None, findings)
    return Missed(missed)


def possible_groups(
    plan: StoredPlan, dataset: Path, trees: BrokerTrees, bound: GroupsBound | None
) -> Possible:
    """Groups of the dataset's traffic, or of what a layer that binds them leaves to brokers."""
    if bound is not None:
        return groups_of_routes(bound.routes(dataset, trees), trees)
    return groups_of_dataset(dataset, trees, plan.section(GroupsRecord).params.grouping)


# ---- which group is which


def dataset_groups(stored: StoredGroups, possible: Possible, findings: Findings) -> Longs:
    """The group of the dataset that each stored one is: that with its root and members.

    Two stored groups that are the same would share traffic.
    """
    known = {key: group for group, key in enumerate(possible_keys(possible))}
    found = np.array([known.get(key, -1) for key in stored_keys(stored)], np.int64)
    strange = np.flatnonzero(found < 0)
    told = numbered_groups(strange)
    findings.violate("groups: no traffic has just these members", len(strange), told)
    _, first = np.unique(found, return_index=True)
    twice = np.setdiff1d(np.flatnonzero(found >= 0), first)
    findings.violate("groups: given twice", len(twice), numbered_groups(twice))
    return found


def stored_carriers(candidate: Longs, possible: Possible) -> Longs:
    """The stored group of each route, −1 for default routing."""
    number = np.full(possible.size + 1, -1, np.int64)
    number[candidate] = np.arange(len(candidate))
    # A route without a group has the position −1, which is that of the last entry.
    return number[possible.traffic.group]


def check_reached(stored: StoredGroups, traffic: GroupTraffic, findings: Findings) -> int:
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


def check_cells(
    plan: StoredPlan, dataset: Path, found: Possible, candidate: Longs, findings: Findings
) -> None:
    """Groups have just the cells that their members marked, and so no two of a root share one."""
    if found.cells is None:
        return
    stored, total = read_stored_cells(plan), int(found.cells.grid.cells[-1])
    number = on_grid(stored, found.cells.grid, topic_names(dataset))
    check_cell_words(plan, dataset, placed_cells(found.cells.grid, number), findings)
    check_axes(plan, findings)
    group, cell = cells_of_groups(found.cells, candidate)
    stated, own = stored.group * total + number, group * total + cell
    keys, times = np.unique(stated, return_counts=True)
    for what, wrong in (
        ("missing", np.setdiff1d(own, stated)),
        ("not marked by its members", np.setdiff1d(stated, own)),
        ("given twice", keys[times > 1]),
    ):
        first = wrong[:EXAMPLES]
        words = cell_words(dataset, placed_cells(found.cells.grid, first % total)).to_pylist()
        said = [
            f"group {key // total}, cell {key % total} ({told})"
            for key, told in zip(first.tolist(), words, strict=True)
        ]
        findings.violate(f"group_cells: {what}", len(wrong), said)


def check_cell_words(
    plan: StoredPlan, dataset: Path, placed: pa.RecordBatch, findings: Findings
) -> None:
    """What is said of the cells in words is what the dataset says."""
    stated = whole(plan.read("group_cells", ("description",))["description"])
    wrong = pc.not_equal(stated, cell_words(dataset, placed)).fill_null(True)
    said = list(map(repr, stated.filter(wrong)[:EXAMPLES].to_pylist()))
    findings.violate(
        "group_cells: description differs from the dataset", pc.sum(wrong).as_py() or 0, said
    )


def check_axes(plan: StoredPlan, findings: Findings) -> None:
    """Just the topics of cells have axes, which are numbered."""
    rows = plan.read("group_axes", ("topic", "axis")).to_pylist()
    used = set(plan.read("group_cells", ("topic",))["topic"].to_pylist())
    found: dict[str, list[int]] = {topic: [] for topic in used}
    for row in rows:
        found.setdefault(row["topic"], []).append(row["axis"])
    odd = [repr(t) for t, a in found.items() if t not in used or sorted(a) != [*range(len(a))]]
    findings.violate("group_axes: not the axes of the topics of cells", len(odd), odd)


def numbered_groups(groups: Longs) -> list[str]:
    return [f"group {group}" for group in groups[:EXAMPLES]]


# ---- entries: all members are reached once, and only forwarding is skipped


def check_entries(stored: StoredGroups, findings: Findings) -> Induced | None:
    """Entries reach every member once, along the tree, and bypass only who would just forward."""
    entries, size = stored.entries, len(stored.brokers)
    root = stored.trees.root[stored.tree]
    if not check_members(stored, findings):
        return None
    pairs, straight = bypassed_by(stored.trees, stored.tree, entries)
    tell_entries(stored, findings, "entries: not along the tree", np.flatnonzero(~straight))
    heads = entries.group * size + entries.head
    order = np.argsort(heads, kind="stable")
    twice = order[1:][np.diff(heads[order]) == 0]
    tell_entries(stored, findings, "entries: reached twice", twice)
    inside = np.isin(entries.group * size + entries.tail, heads)
    loose = np.flatnonzero((entries.tail != root[entries.group]) & ~inside)
    tell_entries(stored, findings, "entries: begins where the group does not come", loose)
    subtrees = induced(stored)
    members = stored.member_group * size + stored.member
    vain = ~np.isin(heads, subtrees.brokers)
    tell_entries(stored, findings, "entries: leads to no member", np.flatnonzero(vain))
    passed = entries.group[pairs.item] * size + pairs.broker
    for what, never in (("a member", members), ("where ways part", subtrees.parting)):
        wrong = np.unique(pairs.item[np.isin(passed, never)])
        tell_entries(stored, findings, f"shortcuts: bypasses {what}", wrong)
    away = stored.member != root[stored.member_group]
    lost = np.flatnonzero(away & ~np.isin(members, heads))
    findings.violate("members: not reached", len(lost), named_members(stored, lost))
    return subtrees


def check_members(stored: StoredGroups, findings: Findings) -> bool:
    """Every group has members, each once, on its tree."""
    sizes = np.diff(stored.starts)
    empty = np.flatnonzero(sizes == 0)
    findings.violate("groups: without members", len(empty), numbered_groups(empty))
    same = (np.diff(stored.member_group) == 0) & (np.diff(stored.member) == 0)
    twice = np.flatnonzero(same)
    findings.violate("members: given twice", len(twice), named_members(stored, twice))
    tree = stored.tree[stored.member_group]
    in_tree = stored.trees.parent[tree, stored.member] != NONE
    outside = np.flatnonzero(~in_tree & (stored.member != stored.trees.root[tree]))
    findings.violate("members: not in the tree", len(outside), named_members(stored, outside))
    return not (len(empty) or len(twice) or len(outside))


def tell_entries(stored: StoredGroups, findings: Findings, what: str, rows: Longs) -> None:
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


# ---- trees: are they those that were asked for?


def check_hanging(
    record: GroupsRecord, trees: BrokerTrees, dataset: Path, findings: Findings
) -> None:
    """Links of trees are given ones, and ways are as short as they can be if that was asked."""
    names = read_brokers(dataset).names
    tree, child = np.nonzero(trees.parent >= 0)
    parent = trees.parent[tree, child]
    if record.params.trees == "given":
        check_given(names, trees.root[tree], parent, child, dataset, findings)
        return
    links = read_links(dataset, names)
    if links is None:
        return
    size = len(names)
    known = links.a.astype(np.int64) * size + links.b
    wanted = np.minimum(parent, child).astype(np.int64) * size + np.maximum(parent, child)
    strange = np.flatnonzero(~np.isin(wanted, known))
    findings.violate("trees: no such link", len(strange), named_ends(names, parent, child, strange))
    if record.params.trees == "per-publisher" and not len(strange):
        check_shortest(names, trees, links, findings)


def check_whole(plan: StoredPlan, stored: StoredGroups, findings: Findings) -> None:
    """No tree of links leaves out a broker, and those of a plan's overlay are just its links."""
    names, trees = stored.brokers.to_pylist(), stored.trees
    record = plan.section(GroupsRecord).params
    inside = trees.parent != NONE
    if plan.has(OverlayRecord):
        several = plan.section(OverlayRecord).trees > 1
        links = plan.read("tree_links" if several else "links", ("a", "b")).to_pylist()
        known = {frozenset((row["a"], row["b"])) for row in links}
        tree, child = np.nonzero(inside)
        own = [
            frozenset((names[a], names[b]))
            for a, b in zip(trees.parent[tree, child], child, strict=True)
        ]
        strange = sorted({" to ".join(sorted(link)) for link in own if link not in known})
        findings.violate("group_trees: not a link of the overlay", len(strange), strange)
        wanted = np.isin(names, plan.read("brokers", ("broker",))["broker"].to_pylist())
    elif record.tree_kind in ("links", "per-publisher"):
        wanted = np.ones(len(names), bool)
    else:
        return
    rows = plan.read("group_trees", ("root", "child"))
    own = pc.sum(pc.equal(rows["root"], rows["child"])).as_py()
    findings.violate("group_trees: a root has no row", len(trees.root) - own, [])
    lost = wanted & ~inside
    lost[np.arange(len(trees.root)), trees.root] = False
    few = [repr(names[broker]) for broker in np.flatnonzero(lost.any(axis=0))]
    findings.violate("group_trees: a broker is left out", len(few), few)


def check_given(
    names: pa.Array,
    root: np.ndarray,
    parent: np.ndarray,
    child: np.ndarray,
    dataset: Path,
    findings: Findings,
) -> None:
    """Links of a tree are those of the table `trees` with this root."""
    if "trees" not in read_manifest(dataset).stages:
        findings.violate("trees", 1, ["the dataset has no table trees"])
        return
    rows = read_stage(dataset, "trees", ("root", "parent", "child")).to_pylist()
    given = {(row["root"], row["parent"], row["child"]) for row in rows}
    name = names.to_pylist()
    own = [(name[r], name[a], name[b]) for r, a, b in zip(root, parent, child, strict=True)]
    strange = np.array([row for row, link in enumerate(own) if link not in given], np.int64)
    findings.violate("trees: not as given", len(strange), named_ends(names, parent, child, strange))
    roots = {link[0] for link in own}
    lacking = [link for link in given - set(own) if link[0] in roots]
    lost = [f"{a!r} to {b!r}" for _, a, b in sorted(lacking)[:EXAMPLES]]
    findings.violate("trees: a given link is missing", len(lacking), lost)


def check_shortest(names: pa.Array, trees: BrokerTrees, links: Links, findings: Findings) -> None:
    """No link offers a shorter way from a root to anybody (Bellman 1958): then none exists."""
    size = len(names)
    key = links.a.astype(np.int64) * size + links.b
    order = np.argsort(key, kind="stable")
    for tree, root in enumerate(trees.root):
        far = far_from_root(trees, tree, key[order], links.latency_ms[order])
        gap = np.abs(far[links.a] - far[links.b]) - links.latency_ms
        shorter = np.flatnonzero(~(gap <= 1e-9 * np.nanmax(far, initial=1.0)))
        what = f"trees: a shorter way from {names[int(root)].as_py()!r}"
        findings.violate(what, len(shorter), named_ends(names, links.a, links.b, shorter))


def far_from_root(trees: BrokerTrees, tree: int, key: Longs, latency: Floats) -> Floats:
    """How far each broker is from the root of its tree; not a number outside of it."""
    parent, size = trees.parent[tree].astype(np.int64), trees.brokers
    child = np.flatnonzero(parent >= 0)
    ends = np.minimum(child, parent[child]) * size + np.maximum(child, parent[child])
    length = np.zeros((1, size))
    length[0, child] = latency[np.searchsorted(key, ends)]
    far: Floats = added_up(trees.parent[tree : tree + 1], length)[0]
    outside = parent < 0
    outside[trees.root[tree]] = False
    far[outside] = np.nan
    return far


def named_ends(names: pa.Array, a: np.ndarray, b: np.ndarray, rows: Longs) -> list[str]:
    ends = ((int(a[row]), int(b[row])) for row in rows[:EXAMPLES])
    return [f"{names[one].as_py()!r} to {names[other].as_py()!r}" for one, other in ends]
