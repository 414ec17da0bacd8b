"""The part of a tree that leads to some brokers, and the same part with shortcuts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bools, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.groups.problem.groups import BrokerTrees, GroupsProblem


class Spans(NamedTuple):
    """Sizes of subtrees: ``links`` in each, ``inner`` brokers besides the root that match."""

    links: Longs
    inner: Longs


class Shortcuts(NamedTuple):
    """What is left of the subtrees if no broker is visited only to forward.

    Subtree i has the links ``starts[i]:starts[i + 1]``, from broker ``tail`` to ``head``, of which
    those with ``bypassed`` brokers between are shortcuts.
    """

    starts: Longs
    tail: Ints
    head: Ints
    bypassed: Ints


class Room(NamedTuple):
    """Room for one subtree at a time.

    ``seen`` and ``ends`` have the number of the last subtree that a broker was in or was an end
    of, ``below`` its children there, ``nodes`` the brokers of this subtree but its root.
    """

    seen: Longs
    ends: Longs
    below: Ints
    nodes: Ints


def spans_of(trees: BrokerTrees, tree: Ints, starts: Longs, ends: Ints) -> Spans:
    """Sizes of the subtrees that lead from the root of ``tree[i]`` to ``ends`` of i.

    O(size of all these subtrees).
    """
    return Spans(*measure_subtrees(trees.root, trees.parent, trees.inner, tree, starts, ends))


def shortcuts_of(problem: GroupsProblem) -> Shortcuts:
    """The tree of each group with shortcuts (Zhang & Hu 2005, section 4).

    A shortcut ends at members and where ways part; both, and the root, are never bypassed. A group
    with a single leaf becomes one link from the root.
    """
    trees = problem.trees
    about = (trees.root, trees.parent, problem.span, problem.starts, problem.members)
    sizes = count_kept(*about)
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return Shortcuts(starts, *contract_ways(*about, starts))


@compiled
def room_for(brokers: int) -> Room:
    return Room(
        np.full(brokers, -1, np.int64),
        np.full(brokers, -1, np.int64),
        np.zeros(brokers, np.int32),
        np.zeros(brokers, np.int32),
    )


@compiled
def collect_ways(room: Room, number: int, root: int, parent: Ints, ends: Ints) -> int:
    """List the brokers on the ways from the root to the ends, and count their children."""
    size = 0
    room.seen[root], room.below[root] = number, 0
    for end in ends:
        room.ends[end] = number
        here = end
        while room.seen[here] != number:
            room.seen[here], room.below[here] = number, 0
            room.nodes[size] = here
            size += 1
            here = parent[here]
    for node in room.nodes[:size]:
        room.below[parent[node]] += 1
    return size


@compiled
def does_more(room: Room, number: int, broker: int) -> bool:
    """Whether a broker does more than forward: it is an end, or ways part there."""
    result: bool = room.ends[broker] == number or room.below[broker] != 1
    return result


@compiled
def measure_subtrees(
    root: Ints, parent: Ints, inner: Bools, tree: Ints, starts: Longs, ends: Ints
) -> tuple[Longs, Longs]:
    room = room_for(parent.shape[1])
    links, matching = np.zeros(len(tree), np.int64), np.zeros(len(tree), np.int64)
    for i in range(len(tree)):
        t = tree[i]
        links[i] = collect_ways(room, i, root[t], parent[t], ends[starts[i] : starts[i + 1]])
        for node in room.nodes[: links[i]]:
            matching[i] += inner[t, node]
    return links, matching


@compiled
def count_kept(root: Ints, parent: Ints, tree: Ints, starts: Longs, ends: Ints) -> Longs:
    """How many brokers of each subtree, but its root, do more than forward."""
    room = room_for(parent.shape[1])
    counts = np.zeros(len(tree), np.int64)
    for i in range(len(tree)):
        t = tree[i]
        size = collect_ways(room, i, root[t], parent[t], ends[starts[i] : starts[i + 1]])
        for node in room.nodes[:size]:
            counts[i] += does_more(room, i, node)
    return counts


@compiled
def contract_ways(
    root: Ints, parent: Ints, tree: Ints, starts: Longs, ends: Ints, places: Longs
) -> tuple[Ints, Ints, Ints]:
    """A link to each broker that is kept, from the nearest one above it that is kept."""
    room = room_for(parent.shape[1])
    tail, head, bypassed = np.zeros((3, places[-1]), np.int32)
    for i in range(len(tree)):
        t, at = tree[i], places[i]
        size = collect_ways(room, i, root[t], parent[t], ends[starts[i] : starts[i + 1]])
        for node in room.nodes[:size]:
            if not does_more(room, i, node):
                continue
            above = parent[t, node]
            while above != root[t] and not does_more(room, i, above):
                bypassed[at] += 1
                above = parent[t, above]
            tail[at], head[at] = above, node
            at += 1
    return tail, head, bypassed
