"""Descriptors that another one covers: at a node they do not count, and on a link one is enough."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Bools, Floats, Longs, starts_of
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.data.reader import read_stage

REGIONS = 300_000
"""The most regions of one topic, advertised or subscribed to, that are compared: about a minute."""

PAIRS = 20_000_000
"""The most pairs of a region and another node that covers it, in a topic and in all."""

PLAIN = "Mark without merging"

BLOCK = 64
"""Boxes that are passed over together."""


class Covers(NamedTuple):
    """Descriptors that other nodes cover: ``many[k]`` at node ``home[k]`` have the same coverers.

    Those are ``nodes[starts[k]:starts[k + 1]]``. Of equal descriptors at several nodes the first
    covers the others. A descriptor that no other node covers is not there.
    """

    home: Longs
    many: Longs
    starts: Longs
    nodes: Longs


class BothCovers(NamedTuple):
    """Covers among advertised regions, and among regions subscribed to."""

    published: Covers
    subscribed: Covers


def read_covers(dataset: Path, nodes: pa.Array) -> BothCovers:
    """Covers from the stage `descriptor_covers`; an error if there are too many."""
    table = read_stage(dataset, "descriptor_covers", ("publishes", "broker", "coverers", "regions"))
    require_compared(table)
    role = table["publishes"]
    return BothCovers(*(covers_of(table.filter(one), nodes) for one in (role, pc.invert(role))))


def require_compared(table: pa.Table) -> None:
    beyond = table.filter(pc.is_null(table["broker"]))["regions"]
    if len(beyond):
        many = f"{pc.max(beyond).as_py():,} regions"
        limit = f"more than {REGIONS:,} regions or {PAIRS:,} covers are not compared"
        raise InputError(Problem("merge", f"a topic has {many}; {limit}", PLAIN))
    pairs = pc.sum(pc.list_value_length(table["coverers"])).as_py() or 0
    if pairs > PAIRS:
        what = f"{pairs:,} pairs of a region and a node that covers it are more than {PAIRS:,}"
        raise InputError(Problem("merge", what, PLAIN))


def covers_of(table: pa.Table, nodes: pa.Array) -> Covers:
    """Rows of one role as positions of nodes."""
    lists = table["coverers"].combine_chunks()
    sizes = pc.list_value_length(lists).to_numpy()
    home, covering = (
        pc.index_in(names, nodes).to_numpy(zero_copy_only=False).astype(np.int64)
        for names in (table["broker"], lists.flatten())
    )
    starts = starts_of(sizes)
    return Covers(home, table["regions"].to_numpy().astype(np.int64), starts, covering)


# ---- boxes that cover each other


def uncovered(group: Longs, lo: Floats, hi: Floats) -> Bools:
    """Which boxes lie within no other box of their group; of equal ones the first counts.

    One row per box, one column per axis. O(n log n), and for each box the blocks of those before it
    on the first axis; most are passed over where boxes are short.
    """
    # A box comes after all that cover it: they begin no later, and end no earlier.
    order = np.lexsort((*(-hi).T[::-1], *lo.T[::-1], group))
    kept = np.zeros(len(group), bool)
    kept[order] = _first_of(group[order], lo[order], hi[order])
    return kept


@compiled
def _first_of(group: Longs, lo: Floats, hi: Floats) -> Bools:
    """Boxes that none of those kept before them in their group holds."""
    kept = np.zeros(len(group), np.bool_)
    rows = np.empty(len(group), np.int64)
    reach = np.empty((len(group) // BLOCK + 1, lo.shape[1]))
    count = 0
    for row in range(len(group)):
        if row > 0 and group[row] != group[row - 1]:
            count = 0
        if not _box_held(lo, hi, rows[:count], reach, row):
            kept[row], rows[count] = True, row
            block = count // BLOCK
            if count % BLOCK == 0:
                reach[block] = hi[row]
            reach[block] = np.maximum(reach[block], hi[row])
            count += 1
    return kept


@compiled
def _box_held(lo: Floats, hi: Floats, others: Longs, reach: Floats, row: int) -> bool:
    """Whether one of some boxes holds a box; ``reach`` has the highest ends of each block."""
    for block in range((len(others) + BLOCK - 1) // BLOCK):
        if _point_below(hi[row], reach[block]):
            for other in others[block * BLOCK : (block + 1) * BLOCK]:
                if _box_within(lo, hi, row, other):
                    return True
    return False


def covering_nodes(
    group: Longs, node: Longs, lo: Floats, hi: Floats, most: int
) -> tuple[Longs, Longs] | None:
    """Other nodes with a box that covers a box: ``nodes[starts[i]:starts[i + 1]]``, ascending.

    Boxes cover each other only within a group. Of equal ones the box of the lowest node covers the
    others. None if there are more than ``most`` pairs. O(n log n), the pairs, and for each box
    the blocks of those before it on the first axis.
    """
    order = np.lexsort((node, *(-hi).T[::-1], *lo.T[::-1], group))
    sizes, nodes = _holders(group[order], node[order], lo[order], hi[order], most)
    if sizes.sum() > most:
        return None
    rank = np.argsort(order, kind="stable")
    starts = starts_of(sizes[rank])
    owner = np.repeat(order, sizes)
    return starts, nodes[np.lexsort((nodes, owner))]


@compiled
def _holders(group: Longs, node: Longs, lo: Floats, hi: Floats, most: int) -> tuple[Longs, Longs]:
    """For each box how many other nodes hold it, and those one after the other."""
    sizes = np.zeros(len(group), np.int64)
    seen = np.full(node.max() + 1 if len(node) else 0, -1, np.int64)
    reach = np.empty((len(group) // BLOCK + 1, lo.shape[1]))
    found, first, total = [0 for _ in range(0)], 0, 0
    for row in range(len(group)):
        if row > 0 and group[row] != group[row - 1]:
            first = row
        count = row - first
        seen[node[row]] = row
        for block in range((count + BLOCK - 1) // BLOCK):
            if _point_below(hi[row], reach[block]):
                begin = first + block * BLOCK
                for other in range(begin, min(begin + BLOCK, row)):
                    if seen[node[other]] != row and _box_within(lo, hi, row, other):
                        seen[node[other]] = row
                        found.append(node[other])
                        sizes[row] += 1
        total += sizes[row]
        if total > most:
            break
        block = count // BLOCK
        if count % BLOCK == 0:
            reach[block] = hi[row]
        reach[block] = np.maximum(reach[block], hi[row])
    return sizes, np.array(found, np.int64)


@compiled
def _box_within(lo: Floats, hi: Floats, row: int, other: int) -> bool:
    """Whether a box lies in another one."""
    return _point_below(lo[other], lo[row]) and _point_below(hi[row], hi[other])


@compiled
def _point_below(one: Floats, other: Floats) -> bool:
    """Whether no coordinate of a point is higher than that of another."""
    axis = 0
    while axis < len(one) and one[axis] <= other[axis]:
        axis += 1
    return axis == len(one)
