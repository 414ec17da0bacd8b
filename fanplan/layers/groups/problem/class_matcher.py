"""The runtime matcher of groups from cells: a publication's point to its cell, class and group.

Cells that the same brokers marked are one class, and a class is one group on each tree where it has
traffic. So the table of cells does not grow with the number of trees.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.groups.problem.cell_matcher import (
    DEFAULT,
    Grid,
    Matcher,
    each,
    insert,
    match_groups,
    matcher_of,
    slot_of,
)


class ClassMatcher(NamedTuple):
    """The class of each cell, and a hash table of (tree, class) with the groups."""

    cells: Matcher
    classes: int
    key: Longs
    group: Ints


def class_matcher(
    grid: Grid, cell: Longs, cell_class: Ints, span: Ints, group_class: Ints
) -> ClassMatcher:
    """A matcher for groups with a tree and a class each; all else takes default routing."""
    classes = max(int(cell_class.max(initial=-1)), int(group_class.max(initial=-1))) + 1
    slots = 1 << max(3, int(2 * len(span)).bit_length())
    key, group = np.full(slots, -1, np.int64), np.full(slots, DEFAULT, np.int32)
    numbers = np.arange(len(span), dtype=np.int32)
    insert(key, group, span.astype(np.int64) * classes + group_class, numbers)
    table = matcher_of(grid, np.zeros(len(cell), np.int32), cell, cell_class)
    return ClassMatcher(table, classes, key, group)


def match_class(
    matcher: ClassMatcher, topic: Ints | int, point: Floats, tree: Ints | int = 0
) -> Ints:
    """The group of each publication, or DEFAULT."""
    found = match_groups(matcher.cells, topic, point)
    return groups_of(matcher, each(tree, len(point)), found)


@compiled
def groups_of(matcher: ClassMatcher, tree: Ints, cell_class: Ints) -> Ints:
    groups = np.full(len(tree), DEFAULT, np.int32)
    for i in range(len(tree)):
        if cell_class[i] != DEFAULT:
            key = tree[i] * np.int64(matcher.classes) + cell_class[i]
            groups[i] = matcher.group[slot_of(matcher.key, key)]
    return groups
