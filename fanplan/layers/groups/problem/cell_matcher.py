"""The runtime matcher: a publication's point to its group, or to default routing.

A point has one cell of its topic's grid (docs/architecture.md, "Coordinates"), and a cell has at
most one group on a tree. So matching once is a look into a hash table of cells, whatever the number
of subscriptions and groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled

DEFAULT = -1
"""No group: default routing."""

MOST_CELLS = 2**62


class Grid(NamedTuple):
    """Grids of topics. Axes of topic t are ``axes[t]:axes[t + 1]``; of axis a, the edges are
    ``edges[starts[a]:starts[a + 1]]``, and ``per_unit[a]`` cells go to a unit of length on average.

    Cells of all topics are numbered in a row: those of topic t from ``cells[t]``, the last axis
    fastest. A topic without axes is one cell.
    """

    axes: Longs
    starts: Longs
    edges: Floats
    per_unit: Floats
    cells: Longs


class Matcher(NamedTuple):
    """A hash table of (tree, cell) with open addressing; at most half of the slots are taken."""

    grid: Grid
    key: Longs
    group: Ints


def grid_of(topics: Sequence[Sequence[Floats]]) -> Grid:
    """A grid from the edges of each axis of each topic, ascending."""
    axes = [np.asarray(axis, np.float64) for topic in topics for axis in topic]
    for number, axis in enumerate(axes):
        if len(axis) < 2 or not (np.diff(axis) > 0).all():
            what = f"edges of axis {number} do not ascend"
            raise InputError(Problem("grid", what, "Give two edges or more, in order"))
    sizes = [np.prod([len(axis) - 1 for axis in topic], dtype=object) for topic in topics]
    if sum(sizes) > MOST_CELLS:
        what = f"{sum(sizes):.2g} cells are too many to number"
        raise InputError(Problem("grid", what, "Give a coarser grid"))
    return Grid(
        np.cumsum([0, *map(len, topics)], dtype=np.int64),
        np.cumsum([0, *map(len, axes)], dtype=np.int64),
        np.concatenate([*axes, np.empty(0)]),
        np.array([(len(axis) - 1) / (axis[-1] - axis[0]) for axis in axes], np.float64),
        np.array([0, *np.cumsum(sizes)], dtype=np.int64),
    )


def matcher_of(grid: Grid, tree: Ints, cell: Longs, group: Ints) -> Matcher:
    """A matcher for cells with a group on a tree; all other cells take default routing.

    ``cell`` are numbers as of ``cells_of``. A pair of tree and cell may come more than once, if
    with the same group.
    """
    total = int(grid.cells[-1])
    if len(tree) and (int(tree.max()) + 1) * total > MOST_CELLS:
        what = f"{total:.2g} cells on {tree.max() + 1} trees are too many to number"
        raise InputError(Problem("grid", what, "Give a coarser grid, or a matcher for each tree"))
    slots = 1 << max(3, int(2 * len(cell)).bit_length())
    key, value = np.full(slots, -1, np.int64), np.full(slots, DEFAULT, np.int32)
    wanted = np.asarray(tree, np.int64) * total + np.asarray(cell, np.int64)
    if not insert(key, value, wanted, np.asarray(group, np.int32)):
        what = "a cell has two groups on the same tree"
        raise InputError(Problem("groups", what, "Give groups that do not overlap"))
    return Matcher(grid, key, value)


def match_groups(matcher: Matcher, topic: Ints | int, point: Floats, tree: Ints | int = 0) -> Ints:
    """The group of each publication, or DEFAULT.

    ``point`` is publications × axes; columns beyond a topic's axes are not read. A point outside
    of the grid, or one that is no number, has no cell and takes default routing.
    """
    count = len(point)
    return match_all(matcher, each(tree, count), each(topic, count), rows(point, np.float64))


def cells_of(grid: Grid, topic: Ints | int, point: Floats) -> Longs:
    """The number of the cell of each point; −1 outside of the grid."""
    return locate_all(grid, each(topic, len(point)), rows(point, np.float64))


def numbers_of(grid: Grid, topic: Ints | int, cell: Ints) -> Longs:
    """The number of each cell, given as positions along the axes: cells × axes."""
    return number_all(grid, each(topic, len(cell)), rows(cell, np.int64))


def each(value: Ints | int, count: int) -> Ints:
    """One number for each; a copy, so that one compiled form serves all callers."""
    return np.array(np.broadcast_to(value, count), np.int32)


def rows(values: np.ndarray, kind: type) -> np.ndarray:
    return np.ascontiguousarray(values, kind)


@compiled
def locate(grid: Grid, topic: int, point: Floats) -> int:
    """The cell of a point: on each axis first guessed as if cells were equal, then searched."""
    number = 0
    first = grid.axes[topic]
    for axis in range(first, grid.axes[topic + 1]):
        edges = grid.edges[grid.starts[axis] : grid.starts[axis + 1]]
        x, last = point[axis - first], len(edges) - 1
        if not edges[0] <= x < edges[last]:
            return -1
        at = min(int((x - edges[0]) * grid.per_unit[axis]), last - 1)
        if not edges[at] <= x < edges[at + 1]:
            at = np.searchsorted(edges, x, side="right") - 1
        number = number * last + at
    return int(grid.cells[topic] + number)


@compiled
def locate_all(grid: Grid, topic: Ints, point: Floats) -> Longs:
    cells = np.empty(len(point), np.int64)
    for i in range(len(point)):
        cells[i] = locate(grid, topic[i], point[i])
    return cells


@compiled
def number_all(grid: Grid, topic: Ints, cell: Longs) -> Longs:
    numbers = np.empty(len(cell), np.int64)
    for i in range(len(cell)):
        first, number = grid.axes[topic[i]], 0
        for axis in range(first, grid.axes[topic[i] + 1]):
            size = grid.starts[axis + 1] - grid.starts[axis] - 1
            number = number * size + cell[i, axis - first]
        numbers[i] = grid.cells[topic[i]] + number
    return numbers


@compiled
def slot_of(keys: Longs, key: int) -> int:
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
        slot = slot_of(keys, wanted[i])
        if keys[slot] == wanted[i] and values[slot] != groups[i]:
            return False
        keys[slot], values[slot] = wanted[i], groups[i]
    return True


@compiled
def match_all(matcher: Matcher, tree: Ints, topic: Ints, point: Floats) -> Ints:
    groups = np.empty(len(point), np.int32)
    total = matcher.grid.cells[-1]
    for i in range(len(point)):
        cell = locate(matcher.grid, topic[i], point[i])
        groups[i] = DEFAULT
        if cell >= 0:
            groups[i] = matcher.group[slot_of(matcher.key, tree[i] * total + cell)]
    return groups
