"""The groups of a stored plan in positions of brokers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import NONE, Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.layers.groups.problem.groups import BrokerTrees
from fanplan.network.brokers import EndKey, end_keys
from fanplan.plan.axis import Axis, whole
from fanplan.plan.stored import StoredPlan

"""Tells groups apart: a tree, or its root, and the members."""


@dataclass(frozen=True, eq=False)
class Entries:
    """Forwarding entries: of which group, from which broker to which, and how many it bypasses."""

    group: Longs
    tail: Longs
    head: Longs
    bypassed: Longs


@dataclass(frozen=True, eq=False)
class StoredGroups:
    """What the tables of a plan say. Group g hangs on tree ``tree[g]``.

    ``member_group`` and ``member`` have a pair for each member of each group, in that order.
    ``stated`` has the columns of the table of groups that are numbers.
    """

    brokers: pa.Array
    trees: BrokerTrees
    tree: Ints
    member_group: Longs
    member: Longs
    entries: Entries
    stated: dict[str, Floats]

    @property
    def size(self) -> int:
        return len(self.tree)

    @property
    def starts(self) -> Longs:
        """Where the members of each group start."""
        return np.searchsorted(self.member_group, np.arange(self.size + 1))


STATED = ("members", "messages", "unwanted", "entries", "control", "benefit")
ENDS = ("from_broker", "to_broker")


def read_groups(plan: StoredPlan, brokers: pa.Array) -> StoredGroups:
    """Trees, groups, members and entries; an error that names what is not understood."""
    reader = Reader(plan, brokers)
    trees = reader.trees()
    table = plan.read("virtual_groups", ("group", "root", *STATED)).sort_by("group")
    reader.require_numbered(table["group"].to_numpy())
    tree = trees.of(reader.positions("virtual_groups", "root", table))
    reader.require(tree != NONE, "virtual_groups", "root", table, "has no tree")
    members = plan.read("group_members", ("group", "broker"))
    group = reader.groups("group_members", members, len(table))
    member = reader.positions("group_members", "broker", members).astype(np.int64)
    order = np.lexsort((member, group))
    return StoredGroups(
        brokers,
        trees,
        tree,
        group[order],
        member[order],
        reader.entries(len(table)),
        {name: table[name].to_numpy().astype(np.float64) for name in STATED},
    )


@dataclass(frozen=True)
class Reader:
    """Reads the tables of a plan with the brokers that a dataset has."""

    plan: StoredPlan
    brokers: pa.Array

    def trees(self) -> BrokerTrees:
        table = self.plan.read("group_trees", ("root", "parent", "child"))
        root, child = (self.positions("group_trees", name, table) for name in ("root", "child"))
        parent = Axis("parent", self.brokers).number(table)
        given = whole(table["parent"]).is_valid().to_numpy(zero_copy_only=False)
        self.require(given == (parent >= 0), "group_trees", "parent", table, "is unknown")
        roots, tree = np.unique(root, return_inverse=True)
        _, times = np.unique(tree * len(self.brokers) + child, return_counts=True)
        if (times > 1).any():
            raise self.wrong("group_trees: a broker has two parents in a tree")
        above = np.full((len(roots), len(self.brokers)), NONE, np.int32)
        above[tree, child] = parent
        return BrokerTrees(roots.astype(np.int32), above)

    def entries(self, count: int) -> Entries:
        """Links and shortcuts of the groups, as one."""
        parts = []
        for name in ("group_links", "shortcuts"):
            more = ("bypassed",) if name == "shortcuts" else ()
            table = self.plan.read(name, ("group", *ENDS, *more))
            group = self.groups(name, table, count)
            tail, head = (self.positions(name, end, table).astype(np.int64) for end in ENDS)
            between = table["bypassed"].to_numpy() if more else np.zeros(len(table))
            parts.append((group, tail, head, between.astype(np.int64)))
        return Entries(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def groups(self, name: str, table: pa.Table, count: int) -> Longs:
        """The column of groups, each of which must be known."""
        group: Longs = table["group"].to_numpy().astype(np.int64)
        self.require((group >= 0) & (group < count), name, "group", table, "is unknown")
        return group

    def positions(self, name: str, column: str, table: pa.Table) -> Ints:
        found = Axis(column, self.brokers).number(table)
        self.require(found >= 0, name, column, table, "is unknown")
        return found

    def require_numbered(self, group: Longs) -> None:
        if (group != np.arange(len(group))).any():
            raise self.wrong("virtual_groups: groups are not numbered from 0, each once")

    def require(self, good: np.ndarray, name: str, column: str, table: pa.Table, what: str) -> None:
        for row in np.flatnonzero(~good)[:1]:
            value = table[column][int(row)].as_py()
            raise self.wrong(f"{name}: {column} {value!r} {what}")

    def wrong(self, what: str) -> InputError:
        remedy = "See what `fanplan check` says of the plan"
        return InputError(Problem(str(self.plan.folder), what, remedy))


def stored_keys(stored: StoredGroups) -> list[EndKey]:
    return end_keys(stored.tree, stored.starts, stored.member.astype(np.int32))
