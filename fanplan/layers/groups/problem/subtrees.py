"""The part of a tree that leads to some brokers, and the same part with shortcuts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bools, Ints, Longs, starts_of
from fanplan.core.kernels import compiled
from fanplan.layers.groups.problem.groups import BrokerTrees, GroupsProblem


class Hanging(NamedTuple):
    """Trees as kernels take them: those of `BrokerTrees`, and who has a broker below."""

    root: Ints
    parent: Ints
    inner: Bools


class Sent(NamedTuple):
    """Routes or groups: number i goes on ``tree[i]`` to ``ends[starts[i]:starts[i + 1]]``."""

    tree: Ints
    starts: Longs
    ends: Ints


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


class SubtreeRoom(NamedTuple):
    """Room for one subtree at a time.

    ``seen`` and ``ends`` have the number of the last subtree that a broker was in or was an end
    of, ``below`` its children there, ``nodes`` the brokers of this subtree but its root.
    """

    seen: Longs
    ends: Longs
    below: Ints
    nodes: Ints


def hanging_of(trees: BrokerTrees) -> Hanging:
    return Hanging(trees.root, trees.parent, trees.inner)


def sent_routes(problem: GroupsProblem) -> Sent:
    return Sent(problem.tree, problem.routes.starts, problem.routes.brokers)


def sent_groups(problem: GroupsProblem) -> Sent:
    return Sent(problem.span, problem.starts, problem.members)


def shortcuts_of(problem: GroupsProblem, allowed: bool = True) -> Shortcuts:
    """The tree of each group with shortcuts (Zhang & Hu 2005, section 4), if they are allowed.

    A shortcut ends at members and where ways part; both, and the root, are never bypassed. A group
    with a single leaf becomes one link from the root.
    """
    trees, sent = hanging_of(problem.trees), sent_groups(problem)
    sizes = count_kept(trees, sent, allowed)
    starts = starts_of(sizes)
    return Shortcuts(starts, *contract_ways(trees, sent, starts, allowed))


class SetUp(NamedTuple):
    """What it takes to set up each group: entries of forwarding tables and control messages.

    ``bypassed`` are the brokers that its shortcuts spare.
    """

    entries: Longs
    control: Longs
    bypassed: Longs


def set_up(problem: GroupsProblem, shortcuts: bool) -> SetUp:
    """Zhang & Hu (2005), Figure 6: the coordinator, at the root, tells each member, and one Group
    message goes up each link. Figure 7: a Probe goes down each link, a Reply up each shortcut. A
    broker has an entry for each broker that it sends to.
    """
    short = shortcuts_of(problem, shortcuts)
    links = spans_of(hanging_of(problem.trees), sent_groups(problem)).links
    entries, before = np.diff(short.starts), starts_of(short.bypassed > 0)
    group = np.repeat(np.arange(problem.size), problem.leaves)
    away = problem.members != problem.trees.root[problem.span[group]]
    told = np.bincount(group[away], minlength=problem.size)
    control = told + links * (1 + shortcuts) + np.diff(before[short.starts])
    return SetUp(entries, control, links - entries)


@compiled
def subtree_room(brokers: int) -> SubtreeRoom:
    return SubtreeRoom(
        np.full(brokers, -1, np.int64),
        np.full(brokers, -1, np.int64),
        np.zeros(brokers, np.int32),
        np.zeros(brokers, np.int32),
    )


@compiled
def collect_ways(room: SubtreeRoom, number: int, root: int, parent: Ints, ends: Ints) -> int:
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
def does_more(room: SubtreeRoom, number: int, broker: int) -> bool:
    """Whether a broker does more than forward: it is an end, or ways part there."""
    result: bool = room.ends[broker] == number or room.below[broker] != 1
    return result


@compiled
def collect_sent(room: SubtreeRoom, trees: Hanging, sent: Sent, i: int) -> int:
    """List the brokers on the ways of one route or group; how many, the root left out."""
    t, ends = sent.tree[i], sent.ends[sent.starts[i] : sent.starts[i + 1]]
    return collect_ways(room, i, trees.root[t], trees.parent[t], ends)


@compiled
def spans_of(trees: Hanging, sent: Sent) -> Spans:
    """Sizes of the subtrees that lead from roots to ends. O(size of all these subtrees)."""
    room = subtree_room(trees.parent.shape[1])
    links, matching = np.zeros((2, len(sent.tree)), np.int64)
    for i in range(len(sent.tree)):
        links[i] = collect_sent(room, trees, sent, i)
        for node in room.nodes[: links[i]]:
            matching[i] += trees.inner[sent.tree[i], node]
    return Spans(links, matching)


@compiled
def count_kept(trees: Hanging, sent: Sent, shortcuts: bool) -> Longs:
    """How many brokers of each subtree, but its root, do more than forward; or of all of them."""
    room = subtree_room(trees.parent.shape[1])
    counts = np.zeros(len(sent.tree), np.int64)
    for i in range(len(sent.tree)):
        for node in room.nodes[: collect_sent(room, trees, sent, i)]:
            counts[i] += not shortcuts or does_more(room, i, node)
    return counts


@compiled
def contract_ways(
    trees: Hanging, sent: Sent, places: Longs, shortcuts: bool
) -> tuple[Ints, Ints, Ints]:
    """A link to each broker that is kept, from the nearest one above it that is kept."""
    room = subtree_room(trees.parent.shape[1])
    tail, head, bypassed = np.zeros((3, places[-1]), np.int32)
    for i in range(len(sent.tree)):
        t, at = sent.tree[i], places[i]
        root, parent = trees.root[t], trees.parent[t]
        for node in room.nodes[: collect_sent(room, trees, sent, i)]:
            if shortcuts and not does_more(room, i, node):
                continue
            above = parent[node]
            while shortcuts and above != root and not does_more(room, i, above):
                bypassed[at] += 1
                above = parent[above]
            tail[at], head[at] = above, node
            at += 1
    return tail, head, bypassed
