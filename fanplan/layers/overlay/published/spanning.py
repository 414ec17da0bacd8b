"""Heaviest trees: of a symmetric weight (Kruskal), and of a directed one (Edmonds)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.network.trees import Tree, tree_of


class Arcs(NamedTuple):
    """Arcs as a forest of heaps, one per broker, of the arcs that enter it: heaviest on top.

    ``owed`` is added to an arc's weight and to all below it when it is next looked at.
    """

    source: Ints
    target: Ints
    weight: Floats
    owed: Floats
    left: Ints
    right: Ints


def spanning_tree(a: Ints, b: Ints, weight: Floats, size: int, room: Longs | None = None) -> Tree:
    """Kruskal (1956): the heaviest links that close no cycle; ties by (a, b), where a < b.

    ``room`` is how many links each broker may have. Gives fewer than size − 1 links if those at
    hand do not connect all brokers. O(m log m).
    """
    room = np.full(size, size, dtype=np.int64) if room is None else room.copy()
    order = np.lexsort((b, a, -weight))
    kept = order[without_cycles(a[order], b[order], room)]
    return tree_of(a[kept], b[kept])


@compiled
def without_cycles(a: Ints, b: Ints, room: Longs) -> Longs:
    """Positions of the links that join two parts, taken in order; they take up room."""
    size = len(room)
    part = np.arange(size, dtype=np.int64)
    kept = np.empty(max(size - 1, 0), dtype=np.int64)
    count = 0
    for i in range(len(a)):
        one, other = top_of(part, a[i]), top_of(part, b[i])
        if one != other and room[a[i]] > 0 and room[b[i]] > 0:
            part[max(one, other)] = min(one, other)
            room[a[i]] -= 1
            room[b[i]] -= 1
            kept[count] = i
            count += 1
    return kept[:count]


@compiled
def top_of(part: Longs | Ints, broker: int) -> int:
    """The broker that stands for the part that a broker is in: its lowest, or a contracted one."""
    while part[broker] != broker:
        part[broker] = part[part[broker]]
        broker = part[broker]
    return broker


@compiled
def connected_parts(a: Ints, b: Ints, size: int) -> Longs:
    """The lowest broker that each broker is connected with."""
    part = np.arange(size, dtype=np.int64)
    for i in range(len(a)):
        one, other = top_of(part, a[i]), top_of(part, b[i])
        part[max(one, other)] = min(one, other)
    for i in range(size):
        part[i] = top_of(part, i)
    return part


def branching(source: Ints, target: Ints, weight: Floats, size: int, root_weight: float) -> Ints:
    """The parent of each broker in the heaviest branching, NONE for its roots (Edmonds, 1967).

    Every root weighs ``root_weight``, so 0 gives the heaviest branching of all and a large negative
    number as few roots as the arcs allow. Ties go to the lower source, then to having a parent.
    Contraction with mergeable heaps (Tarjan, 1977): O(m log m) on average.
    """
    brokers = np.arange(size, dtype=np.int32)
    arcs = Arcs(
        np.concatenate((source, np.full(size, size))).astype(np.int32),
        np.concatenate((target, brokers)).astype(np.int32),
        np.concatenate((weight, np.full(size, root_weight))).astype(np.float64),
        np.zeros(len(weight) + size),
        np.full(len(weight) + size, NONE, dtype=np.int32),
        np.full(len(weight) + size, NONE, dtype=np.int32),
    )
    entering = dissolve(arcs, *contract_cycles(arcs, size))
    parent = arcs.source[entering[:size]]
    return np.where(parent == size, NONE, parent).astype(np.int32)


@compiled
def contract_cycles(arcs: Arcs, size: int) -> tuple[Ints, Ints, int]:
    """Give each broker its heaviest arc, and make each cycle that arises one broker.

    Walks backwards along entering arcs; the virtual root is broker ``size``, contracted brokers
    are numbered from there on. Returns the entering arc and the holder of every broker, and how
    many there are.
    """
    most = 2 * size + 1
    entering = np.full(most, NONE, dtype=np.int32)
    holder = np.full(most, NONE, dtype=np.int32)
    outer = np.arange(most, dtype=np.int32)
    heap = np.full(most, NONE, dtype=np.int32)
    walked = np.full(most, NONE, dtype=np.int32)
    for arc in range(len(arcs.source)):
        heap[arcs.target[arc]] = merged_heap(arcs, heap[arcs.target[arc]], arc)
    walked[size] = size
    count = size + 1
    for start in range(size):
        here = top_of(outer, start)
        while walked[here] == NONE:
            walked[here] = start
            heap[here] = take_heaviest(arcs, heap, entering, outer, here)
            before = top_of(outer, arcs.source[entering[here]])
            if walked[before] == start:
                heap[count] = close_cycle(arcs, heap, entering, holder, outer, before, count)
                before = count
                count += 1
            here = before
    return entering, holder, count


@compiled
def take_heaviest(arcs: Arcs, heap: Ints, entering: Ints, outer: Ints, here: int) -> int:
    """Choose the heaviest arc from outside; what is left then counts by how much less it weighs."""
    top = heap[here]
    while top_of(outer, arcs.source[top]) == here:
        top = without_top(arcs, top)
    entering[here] = top
    rest = without_top(arcs, top)
    if rest != NONE:
        arcs.weight[rest] -= arcs.weight[top]
        arcs.owed[rest] -= arcs.weight[top]
    return rest


@compiled
def close_cycle(
    arcs: Arcs, heap: Ints, entering: Ints, holder: Ints, outer: Ints, first: int, whole: int
) -> int:
    """Contract the cycle through ``first`` to ``whole`` and return the heap of what enters it."""
    together, here = NONE, first
    while here != whole:
        together = merged_heap(arcs, together, heap[here])
        holder[here] = outer[here] = whole
        here = top_of(outer, arcs.source[entering[here]])
    return together


@compiled
def merged_heap(arcs: Arcs, one: int, other: int) -> int:
    """One skew heap of two (Sleator and Tarjan, 1986), from the top down."""
    if one == NONE or other == NONE:
        return max(one, other)
    if ahead(arcs, other, one):
        one, other = other, one
    top = one
    while True:
        settle_owed(arcs, one)
        below = arcs.right[one]
        arcs.right[one] = arcs.left[one]
        if below == NONE:
            arcs.left[one] = other
            return top
        if ahead(arcs, other, below):
            below, other = other, below
        arcs.left[one] = below
        one = below


@compiled
def without_top(arcs: Arcs, top: int) -> int:
    settle_owed(arcs, top)
    return merged_heap(arcs, arcs.left[top], arcs.right[top])


@compiled
def settle_owed(arcs: Arcs, arc: int) -> None:
    """Pass on what the arcs below are owed."""
    for below in (arcs.left[arc], arcs.right[arc]):
        if below != NONE:
            arcs.weight[below] += arcs.owed[arc]
            arcs.owed[below] += arcs.owed[arc]
    arcs.owed[arc] = 0.0


@compiled
def ahead(arcs: Arcs, one: int, other: int) -> bool:
    """Whether an arc goes before another: heavier, or equal with a lower source, then target."""
    result: bool = arcs.target[one] < arcs.target[other]
    if arcs.weight[one] != arcs.weight[other]:
        result = arcs.weight[one] > arcs.weight[other]
    elif arcs.source[one] != arcs.source[other]:
        result = arcs.source[one] < arcs.source[other]
    return result


@compiled
def dissolve(arcs: Arcs, entering: Ints, holder: Ints, count: int) -> Ints:
    """Open the contracted brokers, last first: what enters one replaces an arc of its cycle."""
    for whole in range(count - 1, len(entering) // 2, -1):
        arc = entering[whole]
        inner = arcs.target[arc]
        while holder[inner] != whole:
            inner = holder[inner]
        entering[inner] = arc
    return entering
