"""The traffic of a dataset on the groups of a stored plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from fanplan.plan.groups.read import StoredGroups, read_groups
from fanplan.plan.stored import StoredPlan
from fanplan.problem.groups import GroupsProblem
from fanplan.problem.groups_dataset import load_groups
from fanplan.problem.interest import Ints, Longs
from fanplan.problem.overlay_dataset import read_brokers


def carried_groups(plan: StoredPlan, dataset: Path) -> GroupsProblem:
    """The plan's groups, all of them set up, with the dataset's traffic, also other traffic.

    The pipeline must have made the stages for the plan's grouping.
    """
    stored = read_groups(plan, read_brokers(dataset).names)
    # The threshold was for choosing; what a group of the plan may carry, it carries.
    grouping = replace(plan.groups.grouping, least=0.0)
    found = load_groups(dataset, stored.trees, grouping).problem
    return GroupsProblem(
        brokers=found.brokers,
        trees=found.trees,
        routes=found.routes,
        tree=found.tree,
        group=carriers(candidates(stored, found), found).astype(np.int32),
        span=stored.tree,
        starts=stored.starts,
        members=stored.member.astype(np.int32),
    )


def candidates(stored: StoredGroups, problem: GroupsProblem) -> Longs:
    """The group of the dataset that each stored one is: that with its root and members, or −1."""
    own = parts(problem.span, problem.starts, problem.members)
    known = {key: group for group, key in enumerate(own)}
    stored_keys = parts(stored.tree, stored.starts, stored.member.astype(np.int32))
    return np.array([known.get(key, -1) for key in stored_keys], np.int64)


def parts(tree: Ints, starts: Longs, members: Ints) -> list[tuple[int, bytes]]:
    """What tells groups apart: the tree and the members of each."""
    ends = zip(tree.tolist(), starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    return [(on, members[first:last].tobytes()) for on, first, last in ends]


def carriers(candidate: Longs, problem: GroupsProblem) -> Longs:
    """The stored group of each route, −1 for default routing."""
    number = np.full(problem.size + 1, -1, np.int64)
    there = np.flatnonzero(candidate >= 0)
    number[candidate[there]] = there
    # A route without a group has the position −1, which is that of the last entry.
    found: Longs = number[problem.group]
    return found
