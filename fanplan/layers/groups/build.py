"""The groups layer of a plan from what was decided: its tables and its figures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Bools, Floats, Longs
from fanplan.data.interest import take_audiences
from fanplan.layers.groups.cells import cell_tables, topic_names
from fanplan.layers.groups.ledger import groups_ledger
from fanplan.layers.groups.params import GroupsParams
from fanplan.layers.groups.problem.dataset import FoundGroups
from fanplan.layers.groups.problem.groups import BrokerTrees, GroupsProblem
from fanplan.layers.groups.problem.subtrees import Shortcuts, shortcuts_of
from fanplan.layers.groups.record import GroupsRecord, GroupsSection


@dataclass(frozen=True, eq=False)
class ChosenGroups:
    """Which groups are set up, what each is worth and takes, and what no choice exceeds.

    ``entries`` and ``control`` are of each group; ``bound`` is of the sum of benefits.
    """

    selected: Bools
    benefit: Floats
    entries: Longs
    control: Longs
    bound: float


def groups_layer(
    found: FoundGroups, decided: ChosenGroups, params: GroupsParams, source: str, version: str
) -> GroupsSection:
    """Count what groups save and put them into tables, by names, the best first."""
    problem, selected = found.problem, decided.selected
    nothing = np.zeros(problem.size, bool)
    value = float(decided.benefit[selected].sum())
    record = GroupsRecord(
        params=params,
        brokers=len(problem.brokers),
        roots=len(problem.trees.root),
        groups=problem.size,
        selected=int(selected.sum()),
        covered=covered_share(problem, selected),
        value=value,
        # The bound is the same sum in another order if it is met.
        bound=max(value, decided.bound),
        default=groups_ledger(problem, nothing).summary(),
        ledger=groups_ledger(problem, selected, params.shortcuts).summary(),
    )
    return GroupsSection(record, group_tables(found, decided, params.shortcuts), source, version)


def covered_share(problem: GroupsProblem, selected: Bools) -> float:
    """The share of all messages that a group carries."""
    total = float(problem.routes.messages.sum())
    return float(problem.messages[selected].sum()) / total if total else 0.0


def group_tables(found: FoundGroups, decided: ChosenGroups, shortcuts: bool) -> dict[str, pa.Table]:
    problem = found.problem
    chosen = np.flatnonzero(decided.selected)
    best = chosen[np.argsort(-decided.benefit[chosen], kind="stable")]
    used = entries(problem, shortcuts)
    made = {
        "group_trees": group_tree_table(problem.brokers, problem.trees),
        "virtual_groups": group_table(problem, best, decided),
        "group_members": member_table(problem, best),
        "group_links": entry_table(problem.brokers, used, best, shortcuts=False),
        "shortcuts": entry_table(problem.brokers, used, best, shortcuts=True),
    }
    if found.cells is not None:
        made |= cell_tables(found.cells, topic_names(found.dataset), best)
    return made


def entries(problem: GroupsProblem, shortcuts: bool) -> Shortcuts:
    """The entries of each group in forwarding tables, with shortcuts or link by link."""
    if shortcuts:
        return shortcuts_of(problem)
    span, size = problem.span, len(problem.brokers)
    group = np.repeat(np.arange(problem.size), problem.leaves)
    here, found = problem.members.astype(np.int64), [np.empty(0, np.int64)]
    while len(here):
        below = here != problem.trees.root[span[group]]
        group, here = np.divmod(np.unique(group[below] * size + here[below]), size)
        found.append(group * size + here)
        here = problem.trees.parent[span[group], here].astype(np.int64)
    group, head = np.divmod(np.unique(np.concatenate(found)), size)
    starts = np.searchsorted(group, np.arange(problem.size + 1))
    tail = problem.trees.parent[span[group], head]
    return Shortcuts(starts, tail, head.astype(np.int32), np.zeros(len(head), np.int32))


def group_tree_table(brokers: pa.Array, trees: BrokerTrees) -> pa.Table:
    """A row for each broker of each tree; the root has no parent."""
    at_root = np.arange(trees.brokers) == trees.root[:, None]
    tree, child = np.nonzero((trees.parent >= 0) | at_root)
    parent = trees.parent[tree, child]
    return pa.table(
        {
            "root": brokers.take(pa.array(trees.root[tree])),
            "parent": brokers.take(pa.array(parent, mask=parent < 0)),
            "child": brokers.take(pa.array(child)),
        }
    )


def group_table(problem: GroupsProblem, best: Longs, decided: ChosenGroups) -> pa.Table:
    return pa.table(
        {
            "group": np.arange(len(best)),
            "root": problem.brokers.take(pa.array(problem.trees.root[problem.span[best]])),
            "members": problem.leaves[best],
            "messages": problem.messages[best],
            "unwanted": problem.unwanted[best],
            "entries": decided.entries[best],
            "control": decided.control[best],
            "benefit": decided.benefit[best],
        }
    )


def member_table(problem: GroupsProblem, best: Longs) -> pa.Table:
    members = take_audiences(problem.starts, problem.members, best)
    group = np.repeat(np.arange(len(best)), problem.leaves[best])
    return pa.table({"group": group, "broker": problem.brokers.take(pa.array(members))})


def entry_table(brokers: pa.Array, used: Shortcuts, best: Longs, shortcuts: bool) -> pa.Table:
    """Those entries of the groups that are shortcuts, or those that are not."""
    at = take_audiences(used.starts, np.arange(len(used.head), dtype=np.int32), best)
    group = np.repeat(np.arange(len(best)), np.diff(used.starts)[best])
    kept = np.flatnonzero((used.bypassed[at] > 0) == shortcuts)
    kept = kept[np.lexsort((used.head[at[kept]], group[kept]))]
    return pa.table(
        {
            "group": group[kept],
            "from_broker": brokers.take(pa.array(used.tail[at[kept]])),
            "to_broker": brokers.take(pa.array(used.head[at[kept]])),
            "bypassed": used.bypassed[at[kept]],
        }
    )
