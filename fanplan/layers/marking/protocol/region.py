"""Links around a violation: which of them must be decided together, and the best marks of these."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from fanplan.layers.marking.protocol.messages import Mark
from fanplan.layers.marking.protocol.trees import Table
from fanplan.layers.marking.search.marking import best_links, whole
from fanplan.layers.marking.search.relation import gathered

Edge = tuple[int, int]
Follow = dict[Edge, set[Edge]]
Route = tuple[tuple[int, "Route"], ...]
"""Neighbours, and from each of them further ones."""


class Region:
    """The links that some nodes' tables tell of: their gains, and which follow which in a tree."""

    def __init__(self, tables: dict[int, Table]) -> None:
        self.gain: dict[Edge, float] = {}
        self.after: Follow = {}
        self.before: Follow = {}
        for node, table in tables.items():
            for n, gain in table.into:
                self.gain.setdefault((n, node), gain)
            for n, n_after in table.pairs:
                self.after.setdefault((n, node), set()).add((node, n_after))
                self.before.setdefault((node, n_after), set()).add((n, node))
        # Both ends know a gain. While they disagree, the upstream end is right.
        self.gain |= {(node, n): gain for node, table in tables.items() for n, gain in table.out}

    def part(self, seeds: set[Edge]) -> set[Edge]:
        """The links that must be decided together with these.

        Such a link is, or follows, one that would be an s-link by itself, and it is, or is
        followed by, one that would be a p-link. Links beside them are decided by themselves.
        """
        wishing = reach(self.after, {edge for edge, gain in self.gain.items() if gain >= 0})
        refusing = reach(self.before, {edge for edge, gain in self.gain.items() if gain < 0})
        return reach_within(wishing & refusing, seeds, self.after, self.before)

    def around(self, part: set[Edge]) -> set[Edge]:
        """The part, all links before it and all after it: who else belongs to it is among them."""
        return reach(self.before, part) | reach(self.after, part)

    def solve(self, part: set[Edge]) -> dict[Edge, Mark]:
        """The best marks of a part: the exact marking of its links alone."""
        edges = sorted(part)
        place = {edge: i for i, edge in enumerate(edges)}
        pairs = [(place[a], place[b]) for a in edges for b in self.after.get(a, ()) if b in place]
        marks = best_marks(tuple(self.gain[edge] for edge in edges), tuple(sorted(pairs)))
        return dict(zip(edges, marks, strict=True))


@lru_cache(maxsize=4096)
def best_marks(gains: tuple[float, ...], pairs: tuple[Edge, ...]) -> tuple[Mark, ...]:
    """The best marks of links with these gains, of which some require others.

    Most tables that arrive change nothing in a part, so answers are kept.
    """
    owner, item = np.array(pairs, np.int64).reshape(-1, 2).T
    publish, _ = best_links(gathered(owner, item, len(gains)), whole(np.array(gains)))
    return tuple("p" if p else "s" for p in publish.tolist())


def reach(follow: Follow, start: set[Edge]) -> set[Edge]:
    """The start, and all that follows it, directly or not."""
    found, stack = set(start), list(start)
    while stack:
        new = follow.get(stack.pop(), set()) - found
        found |= new
        stack.extend(new)
    return found


def reach_within(inside: set[Edge], start: set[Edge], *follows: Follow) -> set[Edge]:
    """What hangs together with the start inside a set."""
    found, stack = start & inside, list(start & inside)
    while stack:
        edge = stack.pop()
        new = set().union(*(follow.get(edge, set()) for follow in follows)) & inside - found
        found |= new
        stack.extend(new)
    return found


def ends(edges: Iterable[Edge]) -> set[int]:
    """The nodes at the ends of links."""
    return {node for edge in edges for node in edge}


def parents_of(root: int, edges: set[Edge], old: dict[int, int]) -> dict[int, int]:
    """The node before each end of these links on a way from the root; ways that there are stay.

    If they gave way to shorter ones, a table could be missed for a moment, and with it the links
    that the shorter way was found by.
    """
    wanted, parents = ends(edges), {root: root}
    for node in wanted & old.keys():
        while node not in parents:
            parents[node] = old[node]
            node = old[node]
    order = sorted(parents)
    for node in order:
        new = {n for edge in edges if node in edge for n in edge} - parents.keys()
        parents |= dict.fromkeys(sorted(new), node)
        order.extend(sorted(new))
    return parents


def route_of(root: int, parents: dict[int, int]) -> Route:
    """The ways from a root as neighbours, and what is further on from each."""
    below = sorted(node for node, parent in parents.items() if parent == root and node != root)
    return tuple((node, route_of(node, parents)) for node in below)


def nodes_of(step: tuple[int, Route]) -> set[int]:
    """A neighbour and all nodes that are further on its route."""
    node, further = step
    return {node}.union(*(nodes_of(next_) for next_ in further))
