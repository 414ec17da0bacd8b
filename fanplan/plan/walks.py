"""Trees of what is read: of the question that a plan answers, and of the plan that is proved.

It shares nothing with the trees of `network`, which decide and count costs, so that a mistake there
shows in a check. What searches does not import it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import NONE, Bools, Floats, Ints, Longs
from fanplan.core.kernels import compiled


@dataclass(frozen=True, eq=False)
class Proved:
    """A tree below broker 0: each broker's parent and depth, and what its links are.

    Brokers that links do not join with broker 0 have depth -1.
    """

    parent: Ints
    depth: Ints
    links: Ints
    """position of the link to the parent; -1 for broker 0"""

    @property
    def apart(self) -> Longs:
        """Brokers that the tree does not reach."""
        return np.flatnonzero(self.depth < 0)

    @property
    def diameter(self) -> int:
        """The longest way between two brokers: from each, the two deepest ways down."""
        down, longest = np.zeros(len(self.parent), int), 0
        for here in np.argsort(-self.depth, kind="stable"):
            above = self.parent[here]
            if above >= 0:
                longest = max(longest, down[above] + down[here] + 1)
                down[above] = max(down[above], down[here] + 1)
        return int(longest)

    def path(self, one: int, other: int) -> int:
        """Hops between two brokers."""
        return int(way_length(self.parent, self.depth, np.ones(len(self.parent)), one, other))


def prove(ends: Ints, rows: np.ndarray, brokers: int) -> Proved:
    """The tree that some rows of links form; ``ends`` has the two brokers of every link."""
    parent, depth = passes(ends[rows, 0].copy(), ends[rows, 1].copy(), brokers)
    links = np.full(brokers, -1, np.int32)
    for row in rows:
        a, b = ends[row]
        links[b if parent[b] == a else a] = row
    links[0] = -1
    return Proved(parent, depth, links)


@compiled
def passes(a: Ints, b: Ints, brokers: int) -> tuple[Ints, Ints]:
    """Parent and depth of each broker below broker 0, by passes over the links; -1 if not reached.

    O(links × depth).
    """
    parent = np.full(brokers, -1, np.int32)
    depth = np.full(brokers, -1, np.int32)
    depth[0] = 0
    grown = True
    while grown:
        grown = False
        for i in range(len(a)):
            x, y = a[i], b[i]
            if depth[x] < 0:
                x, y = y, x
            if depth[x] >= 0 and depth[y] < 0:
                parent[y], depth[y] = x, depth[x] + 1
                grown = True
    return parent, depth


@compiled
def descend(root: int, parent: Ints) -> tuple[Ints, Ints]:
    """What hangs below a root by each one's parent, parents first, and depths; NONE if it does not.

    Children of a broker come by their positions. O(brokers).
    """
    starts = np.zeros(len(parent) + 1, np.int64)
    for above in parent[parent >= 0]:
        starts[above + 1] += 1
    starts = np.cumsum(starts)
    order, depth = np.empty(len(parent), np.int32), np.full(len(parent), NONE, np.int32)
    below = np.argsort(parent, kind="mergesort")[len(parent) - starts[-1] :]
    order[0], depth[root] = root, 0
    found, at = 1, 0
    while at < found:
        here = order[at]
        for child in below[starts[here] : starts[here + 1]]:
            order[found], depth[child] = child, depth[here] + 1
            found += 1
        at += 1
    return order[:found], depth


@compiled
def way_length(parent: Ints, depth: Ints, length: Floats, one: int, other: int) -> float:
    """Length of the way between two brokers, from both up to where they meet.

    ``length`` is that of the link to the parent.
    """
    total = 0.0
    while one != other:
        if depth[one] < depth[other]:
            one, other = other, one
        total += length[one]
        one = parent[one]
    return total


@compiled
def climbed(parent: Ints, count: Longs) -> Longs:
    """For each broker the counts at it and at those whose way to the root passes it."""
    passed = np.zeros(len(count), np.int64)
    for broker in np.flatnonzero(count):
        at = broker
        while at >= 0:
            passed[at] += count[broker]
            at = parent[at]
    return passed


@compiled
def at_or_below(order: Longs, parent: Longs, broker: int) -> Bools:
    """Which brokers of a tree have one on their way to the root, itself included.

    ``order`` lists the brokers of the tree, parents first. O(brokers).
    """
    inside = np.zeros(len(parent), np.bool_)
    inside[broker] = True
    for other in order[1:]:
        inside[other] |= inside[parent[other]]
    return inside


def added_up(parent: Ints, value: np.ndarray) -> np.ndarray:
    """Trees × brokers: sums of values from the root, which is left out, down to each broker.

    By pointers that go twice as far each time. O(trees × brokers × log depth).
    """
    outside = parent < 0
    up = np.where(outside, np.arange(parent.shape[1]), parent).astype(np.int64)
    total: np.ndarray = np.where(outside, 0, value)
    while True:
        total = total + np.take_along_axis(total, up, axis=1)
        further = np.take_along_axis(up, up, axis=1)
        if (further == up).all():
            return total
        up = further
