"""The groups layer of a plan from what was decided: its tables and its figures."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Longs
from fanplan.data.interest import take_audiences
from fanplan.layers.groups.cells import cell_tables
from fanplan.layers.groups.ledger import groups_ledger
from fanplan.layers.groups.params import GroupsParams
from fanplan.layers.groups.problem.dataset import FoundGroups
from fanplan.layers.groups.problem.groups import BrokerTrees, GroupsProblem
from fanplan.layers.groups.problem.subtrees import Shortcuts, shortcuts_of
from fanplan.layers.groups.record import GroupsRecord, GroupsSection
from fanplan.layers.groups.search.choose import Chosen
from fanplan.network.carried import ratio


def groups_layer(
    found: FoundGroups, chosen: Chosen, params: GroupsParams, source: str, version: str
) -> GroupsSection:
    """Count what groups save and put them into tables, by names, the best first."""
    problem, selected = found.problem, chosen.selected
    nothing = np.zeros(problem.size, bool)
    total, value = float(problem.routes.messages.sum()), chosen.value
    record = GroupsRecord(
        params=params,
        brokers=len(problem.brokers),
        roots=len(problem.trees.root),
        groups=problem.size,
        selected=int(selected.sum()),
        covered=ratio(float(problem.messages[selected].sum()), total),
        value=value,
        # The bound is the same sum in another order if it is met.
        bound=max(value, chosen.bound),
        default=groups_ledger(problem, nothing).summary(),
        ledger=groups_ledger(problem, selected, params.shortcuts).summary(),
    )
    return GroupsSection(record, group_tables(found, chosen, params.shortcuts), source, version)


def group_tables(found: FoundGroups, chosen: Chosen, shortcuts: bool) -> dict[str, pa.Table]:
    problem = found.problem
    selected = np.flatnonzero(chosen.selected)
    best = selected[np.argsort(-chosen.benefit[selected], kind="stable")]
    used = shortcuts_of(problem, shortcuts)
    made = {
        "group_trees": group_tree_table(problem.brokers, problem.trees),
        "virtual_groups": group_table(problem, best, chosen),
        "group_members": member_table(problem, best),
        "group_links": entry_table(problem.brokers, used, best, shortcuts=False),
        "shortcuts": entry_table(problem.brokers, used, best, shortcuts=True),
    }
    if found.cells is not None:
        made |= cell_tables(found.cells, found.dataset, best)
    return made


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


def group_table(problem: GroupsProblem, best: Longs, chosen: Chosen) -> pa.Table:
    return pa.table(
        {
            "group": np.arange(len(best)),
            "root": problem.brokers.take(pa.array(problem.trees.root[problem.span[best]])),
            "members": problem.leaves[best],
            "messages": problem.messages[best],
            "unwanted": problem.unwanted[best],
            "entries": chosen.among.entries[best],
            "control": chosen.among.control[best],
            "benefit": chosen.benefit[best],
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
