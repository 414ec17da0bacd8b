"""The runtime matchers: a publication's point to its group, or to default routing.

Groups of cells: a point has one cell of its topic's grid (docs/architecture.md, "Coordinates"), and
a cell has at most one group on a tree. So matching once is a look into a hash table of cells,
whatever the number of subscriptions and groups. Cells that the same brokers marked are one class,
and a class is one group on each tree where it has traffic; with classes the table does not grow
with the number of trees.

Exact groups: the regions of all brokers are indexed (`matching`). An index cell knows the signature
of the brokers whose boxes cover it, which need no test; boxes that only cut it are tested. The
signature of the brokers that want the point is then looked up. A set of brokers that is no group on
the tree takes default routing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.boxes.gridded import locate_points, test
from fanplan.boxes.index import BoxIndex, grid_boxes
from fanplan.boxes.rows import sorted_order
from fanplan.core.arrays import Floats, Ints, Longs, Words
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.layers.groups.problem.grid import MOST_NUMBERS, GroupGrid, cell_at, contiguous, each
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.problem.regions import BrokerRegions, broker_words, set_signatures

DEFAULT = -1
"""No group: default routing."""

FEW = 4
"""Boxes that cut a cell, on average, up to which it takes longer to sort points than to test."""


class CellMatcher(NamedTuple):
    """A hash table of (tree, cell) with open addressing; at most half of the slots are taken."""

    grid: GroupGrid
    key: Longs
    group: Ints


class ClassMatcher(NamedTuple):
    """The class of each cell, and a hash table of (tree, class) with the groups."""

    cells: CellMatcher
    classes: int
    key: Longs
    group: Ints


class ExactMatcher(NamedTuple):
    """An index of boxes, and a hash table of signatures on trees; half of its slots are free.

    ``covering`` has the signature of the brokers that cover each index cell. The boxes
    ``cutting[starts[c]:starts[c + 1]]`` cut cell c, and are of other brokers.
    """

    boxes: BoxIndex
    words: Words
    covering: Words
    starts: Longs
    cutting: Ints
    key: Words
    group: Ints


# ---- cells


def matcher_of(grid: GroupGrid, tree: Ints, cell: Longs, group: Ints) -> CellMatcher:
    """A matcher for cells with a group on a tree; all other cells take default routing.

    ``cell`` are numbers as of ``cells_of``. A pair of tree and cell may come more than once, if
    with the same group.
    """
    total = int(grid.cells[-1])
    if len(tree) and (int(tree.max()) + 1) * total > MOST_NUMBERS:
        what = f"{total:.2g} cells on {tree.max() + 1} trees are too many to number"
        raise InputError(Problem("grid", what, "Give a coarser grid, or a matcher for each tree"))
    slots = 1 << max(3, int(2 * len(cell)).bit_length())
    key, value = np.full(slots, -1, np.int64), np.full(slots, DEFAULT, np.int32)
    wanted = np.asarray(tree, np.int64) * total + np.asarray(cell, np.int64)
    if not insert(key, value, wanted, np.asarray(group, np.int32)):
        what = "a cell has two groups on the same tree"
        raise InputError(Problem("groups", what, "Give groups that do not overlap"))
    return CellMatcher(grid, key, value)


def match_groups(
    matcher: CellMatcher, topic: Ints | int, point: Floats, tree: Ints | int = 0
) -> Ints:
    """The group of each publication, or DEFAULT.

    ``point`` is publications × axes; columns beyond a topic's axes are not read. A point outside
    of the grid, or one that is no number, has no cell and takes default routing.
    """
    count = len(point)
    return match_all(matcher, each(tree, count), each(topic, count), contiguous(point, np.float64))


@compiled
def match_all(matcher: CellMatcher, tree: Ints, topic: Ints, point: Floats) -> Ints:
    groups = np.empty(len(point), np.int32)
    total = matcher.grid.cells[-1]
    for i in range(len(point)):
        cell = cell_at(matcher.grid, topic[i], point[i])
        groups[i] = DEFAULT
        if cell >= 0:
            groups[i] = matcher.group[cell_slot(matcher.key, tree[i] * total + cell)]
    return groups


@compiled
def cell_slot(keys: Longs, key: int) -> int:
    """The slot of a key, or the free one where it would stand."""
    mask = len(keys) - 1
    # Neighbouring cells differ in their low bits: the product spreads them (Knuth 1973, 6.4).
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64(mixed >> np.uint64(32)) & mask
    while keys[slot] != -1 and keys[slot] != key:
        slot = (slot + 1) & mask
    return int(slot)


@compiled
def insert(keys: Longs, values: Ints, wanted: Longs, groups: Ints) -> bool:
    """Put all in; false if a key comes with two groups."""
    for i in range(len(wanted)):
        slot = cell_slot(keys, wanted[i])
        if keys[slot] == wanted[i] and values[slot] != groups[i]:
            return False
        keys[slot], values[slot] = wanted[i], groups[i]
    return True


# ---- classes of cells


def class_matcher(
    grid: GroupGrid, cell: Longs, cell_class: Ints, span: Ints, group_class: Ints
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
    return groups_of_classes(matcher, each(tree, len(point)), found)


@compiled
def groups_of_classes(matcher: ClassMatcher, tree: Ints, cell_class: Ints) -> Ints:
    groups = np.full(len(tree), DEFAULT, np.int32)
    for i in range(len(tree)):
        if cell_class[i] != DEFAULT:
            key = tree[i] * np.int64(matcher.classes) + cell_class[i]
            groups[i] = matcher.group[cell_slot(matcher.key, key)]
    return groups


# ---- exact groups


def exact_matcher(regions: BrokerRegions, problem: GroupsProblem) -> ExactMatcher:
    """A matcher for exact groups of brokers with these regions.

    Memory is that of the index: at most 64 entries for each box.
    """
    index = grid_boxes(
        regions.topic, regions.dimensions, regions.lo, regions.hi, regions.broker, regions.topic
    )
    words = broker_words(index.owners)
    slots = 1 << max(3, int(2 * problem.size).bit_length())
    key, group = np.zeros((slots, 2), np.uint64), np.full(slots, DEFAULT, np.int32)
    fill_slots(key, group, problem.span, set_signatures(problem.starts, problem.members))
    covering, starts, cutting = summarised(index, words)
    return ExactMatcher(index, words, covering, starts, cutting, key, group)


def match_exact(
    matcher: ExactMatcher, topic: Ints | int, point: Floats, tree: Ints | int = 0
) -> Ints:
    """The group of each publication, or DEFAULT; as `match_groups` does for cells."""
    count = len(point)
    given = each(tree, count), each(topic, count).astype(np.int64)
    return match_sets(matcher, *given, contiguous(point, np.float64))


@compiled
def match_sets(matcher: ExactMatcher, tree: Ints, topic: Longs, point: Floats) -> Ints:
    """Where many boxes cut cells, points are visited cell by cell and boxes gathered once."""
    index, axes = matcher.boxes, point.shape[1]
    groups = np.full(len(point), DEFAULT, np.int32)
    cells = locate_points(index, topic, point)
    order, count = np.arange(len(cells)), len(matcher.starts) - 1
    if len(matcher.cutting) > FEW * count:
        order = sorted_order(cells, count, order)
    lo, hi = np.empty((axes, index.grid.longest)), np.empty((axes, index.grid.longest))
    got, owner = np.empty(index.grid.longest), np.empty(index.grid.longest, np.int32)
    seen = np.full(len(matcher.words), -1, np.int64)
    last, size = -1, 0
    for i in order:
        if cells[i] < 0:
            continue
        if cells[i] != last:
            last, size = cells[i], index.dimensions[index.row_of_topic[topic[i]]]
            count = gather_cutting(matcher, last, size, lo, hi, owner)
        test(point[i], size, lo, hi, count, 1.0, got)
        a, b = matcher.covering[last, 0], matcher.covering[last, 1]
        for k in range(count):
            # A broker with several boxes around the point counts once.
            if got[k] > 0.0 and seen[owner[k]] != i:
                seen[owner[k]] = i
                a += matcher.words[owner[k], 0]
                b += matcher.words[owner[k], 1]
        groups[i] = matcher.group[
            signature_slot(matcher.key, matcher.group, on_tree(a, tree[i]), b)
        ]
    return groups


@compiled
def gather_cutting(
    matcher: ExactMatcher, cell: int, size: int, lo: Floats, hi: Floats, owner: Ints
) -> int:
    """Copy the boxes that cut a cell next to each other; returns their number."""
    first, count = matcher.starts[cell], matcher.starts[cell + 1] - matcher.starts[cell]
    for k in range(count):
        box = matcher.cutting[first + k]
        owner[k] = matcher.boxes.owner[box]
        for axis in range(size):
            lo[axis, k] = matcher.boxes.lo[box, axis]
            hi[axis, k] = matcher.boxes.hi[box, axis]
    result: int = count
    return result


@compiled
def summarised(index: BoxIndex, words: Words) -> tuple[Words, Longs, Ints]:
    """Signatures of covering brokers, and the boxes that cut a cell and are not of these."""
    cells = len(index.grid.cover_start) - 1
    covering, starts = np.zeros((cells, 2), np.uint64), np.zeros(cells + 1, np.int64)
    cutting = np.empty(len(index.grid.cut), np.int32)
    seen, used = np.full(len(words), -1, np.int64), 0
    for cell in range(cells):
        for box in index.grid.cover[
            index.grid.cover_start[cell] : index.grid.cover_start[cell + 1]
        ]:
            if seen[index.owner[box]] != cell:
                seen[index.owner[box]] = cell
                covering[cell] += words[index.owner[box]]
        for box in index.grid.cut[index.grid.cut_start[cell] : index.grid.cut_start[cell + 1]]:
            if seen[index.owner[box]] != cell:
                cutting[used] = box
                used += 1
        starts[cell + 1] = used
    return covering, starts, cutting[:used].copy()


@compiled
def fill_slots(key: Words, group: Ints, tree: Ints, signatures: Words) -> None:
    for g in range(len(tree)):
        a, b = on_tree(signatures[g, 0], tree[g]), signatures[g, 1]
        slot = signature_slot(key, group, a, b)
        key[slot, 0], key[slot, 1], group[slot] = a, b, g


@compiled
def signature_slot(key: Words, group: Ints, a: np.uint64, b: np.uint64) -> int:
    """The slot of a key, or the free one where it would stand."""
    mask = len(key) - 1
    slot = np.int64(a >> np.uint64(32)) & mask
    while group[slot] != DEFAULT and (key[slot, 0] != a or key[slot, 1] != b):
        slot = (slot + 1) & mask
    return int(slot)


@compiled
def on_tree(word: np.uint64, tree: int) -> np.uint64:
    """The first word of a signature, other for every tree."""
    return word + np.uint64(tree) * np.uint64(0x9E3779B97F4A7C15)
