"""The check's own count of the groups that there may be, and of what each would be worth.

The planner sorts cells by what they have in common; here groups are keys of a dictionary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import NONE, Floats, Ints, Longs, starts_of
from fanplan.core.errors import InputError, Problem
from fanplan.layers.groups.check.count import (
    GroupTraffic,
    count_groups,
    destinations,
    induced,
    no_entries,
    walked,
    worth_by,
)
from fanplan.layers.groups.params import Grouping
from fanplan.layers.groups.problem.dataset import CellMap, read_cell_map, read_group_routes
from fanplan.layers.groups.problem.groups import BrokerTrees
from fanplan.layers.groups.read import StoredGroups
from fanplan.layers.groups.record import GroupsRecord
from fanplan.network.brokers import Routes, end_keys
from fanplan.network.dataset import read_routes


@dataclass(frozen=True, eq=False)
class Possible:
    """Traffic and the group that each route may have, −1 for default routing.

    Group g is on tree ``span[g]``, with ``members[starts[g]:starts[g + 1]]``; ``cells`` are what it
    consists of, if it is not of exact routes.
    """

    traffic: GroupTraffic
    span: Ints
    starts: Longs
    members: Ints
    cells: CellMap | None = None

    @property
    def size(self) -> int:
        return len(self.span)


def groups_of_routes(routes: Routes, trees: BrokerTrees, least: float = 0.0) -> Possible:
    """Traffic with the same tree and destinations, if it has more than ``least`` messages."""
    tree = entry_trees(routes, trees)
    may = (np.diff(routes.starts) > 0) & (routes.messages > least)
    own = np.arange(len(routes))
    return grouped(trees, routes, tree, may, routes.starts, routes.brokers, own)


def groups_of_dataset(dataset: Path, trees: BrokerTrees, grouping: Grouping) -> Possible:
    """The same of a dataset, or of its cells: those that the same brokers marked."""
    if grouping.cells is None:
        return groups_of_routes(read_routes(dataset, "routes"), trees, grouping.least)
    routes, marked = read_group_routes(dataset)
    tree, sizes = entry_trees(routes, trees), np.diff(marked.starts)
    places, at = np.unique(tree * np.int64(len(sizes)) + marked.route, return_inverse=True)
    sent = np.bincount(at, routes.messages, len(places))[at]
    may = (sizes[marked.route] > 0) & (sent > 0)
    found = grouped(trees, routes, tree, may, marked.starts, marked.leaves, marked.route)
    of = np.zeros(found.size, np.int32)
    of[found.traffic.group[may]] = marked.route[may]
    return replace(found, cells=read_cell_map(dataset, of))


def entry_trees(routes: Routes, trees: BrokerTrees) -> Ints:
    """The tree of each route, which must be there and reach all its ends."""
    tree = trees.of(routes.source)
    on = np.repeat(tree, np.diff(routes.starts))
    lost = (trees.parent[on, routes.brokers] == NONE) & (routes.brokers != trees.root[on])
    if (tree == NONE).any() or lost.any():
        what = "a broker that sends has no tree, or one that does not reach all who want it"
        raise InputError(Problem("group_trees", what, "Write the plan again"))
    return tree


def grouped(
    trees: BrokerTrees,
    routes: Routes,
    tree: Ints,
    may: np.ndarray,
    starts: Longs,
    members: Ints,
    of: Longs | Ints,
) -> Possible:
    """Routes that may be in a group, by their tree and the members in row ``of`` of a list."""
    rows = np.flatnonzero(may)
    lists = [members[starts[row] : starts[row + 1]] for row in of[rows].tolist()]
    known: dict[tuple[int, bytes], int] = {}
    keys = zip(tree[rows].tolist(), (found.tobytes() for found in lists), strict=True)
    group = np.full(len(routes), -1, np.int64)
    group[rows] = [known.setdefault(key, len(known)) for key in keys]
    _, first = np.unique(group[rows], return_index=True)
    own = [lists[at] for at in first.tolist()]
    visits = walked(trees, tree, destinations(routes), routes.brokers.astype(np.int64))
    return Possible(
        GroupTraffic(routes, tree, group, visits),
        tree[rows[first]],
        starts_of([len(found) for found in own]),
        np.concatenate(own).astype(np.int32) if own else np.empty(0, np.int32),
    )


def possible_keys(possible: Possible) -> list[tuple[int, bytes]]:
    return end_keys(possible.span, possible.starts, possible.members)


def worths(
    record: GroupsRecord, brokers: pa.Array, trees: BrokerTrees, possible: Possible
) -> tuple[Floats, Longs, Longs]:
    """What each group is worth by the rank asked for, its entries and its control messages."""
    group = np.repeat(np.arange(possible.size), np.diff(possible.starts))
    member = possible.members.astype(np.int64)
    all_ = StoredGroups(brokers, trees, possible.span, group, member, no_entries(), {})
    subtrees, size = induced(all_), len(brokers)
    root = trees.root[possible.span].astype(np.int64)
    away = member != root[group]
    told = np.bincount(group[away], minlength=possible.size)
    kept = np.unique(np.append(group[away] * size + member[away], subtrees.parting))
    kept = kept[kept % size != root[kept // size]]
    replies = np.zeros(possible.size, np.int64)
    if record.params.shortcuts:
        above = trees.parent[possible.span[kept // size], kept % size].astype(np.int64)
        skipping = (above != root[kept // size]) & ~np.isin(kept // size * size + above, kept)
        replies = np.bincount(kept[skipping] // size, minlength=possible.size)
    else:
        kept = subtrees.brokers
    entries = np.bincount(kept // size, minlength=possible.size)
    control = told + subtrees.links * (1 + record.params.shortcuts) + replies
    counted = count_groups(all_, possible.traffic)
    return worth_by(record, all_, subtrees, counted, entries, control), entries, control
