"""Small marking problems: those of the paper's figures and random ones; and its equations in sets.

``Literal`` follows Eq. 1 to 8 of Ge et al. (2002) word by word, with Python sets and no speed.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa

from fanplan.layers.marking.problem.marking import MarkedNetwork, MarkingProblem, SourceTrees
from fanplan.layers.marking.problem.trees import given_problem, shared_problem
from fanplan.papers.matchmaker import examples

FIGURE_7_LINKS = examples.FIGURE_7_LINKS
figure_2, figure_5 = examples.network_of_figure_2, examples.problem_of_figure_5
figure_7 = examples.problem_of_figure_7
links, network = examples.links_between, examples.lettered_network
tree_table = examples.lettered_trees

Edge = tuple[int, int]


def letters(problem: MarkingProblem, chosen: np.ndarray) -> set[str]:
    """Links by the names of their ends."""
    ends = zip(problem.tail[chosen].tolist(), problem.head[chosen].tolist(), strict=True)
    return {f"{problem.nodes[a]}{problem.nodes[b]}" for a, b in ends}


def random_counts(rng: np.random.Generator, nodes: int, most: int = 4) -> dict[str, Any]:
    """Some nodes publish, some subscribe, some both; small counts, so that ties are common."""
    published, subscribed = rng.integers(1, most + 1, (2, nodes)) * (rng.random((2, nodes)) < 0.5)
    published[rng.integers(nodes)] = subscribed[rng.integers(nodes)] = 1
    return {"published": published, "subscribed": subscribed}


def random_prices(rng: np.random.Generator, nodes: int, links: int) -> dict[str, Any]:
    """Whole prices, so that brute force and solver have no rounding to differ in."""
    prices = {"storing": rng.integers(0, 3, nodes) * 1.0}
    return prices | {"sending": rng.integers(0, 3, links) * 1.0} if links else prices


def random_source_problem(seed: int, nodes: int = 6, priced: bool = False) -> MarkingProblem:
    """Every publisher has a random tree of its own, so that trees disagree a lot."""
    rng = np.random.default_rng(seed)
    names = [chr(ord("a") + i) for i in range(nodes)]
    counts = random_counts(rng, nodes)
    rows = [
        (names[root], names[parent], names[child])
        for root in np.flatnonzero(counts["published"])
        for parent, child in random_tree(rng, int(root), nodes)
    ]
    prices = random_prices(rng, nodes, 0) if priced else {}
    table = pa.table(dict(zip(("root", "parent", "child"), zip(*rows, strict=True), strict=True)))
    return given_problem(MarkedNetwork(pa.array(names), **counts, **prices), table)


def random_tree(rng: np.random.Generator, root: int, nodes: int) -> list[Edge]:
    """Nodes join around a ring, a few out of turn, below one of the last two that did.

    So trees share links, and disagree about what follows them.
    """
    order = (root + np.arange(1, nodes)) % nodes
    swap = rng.integers(0, nodes - 1, 2)
    order[swap] = order[swap[::-1]]
    joined = [root]
    edges = []
    for node in order.tolist():
        edges.append((joined[-1 - int(rng.integers(min(2, len(joined))))], node))
        joined.append(node)
    return edges


def ring_trees(seed: int, nodes: int = 8) -> tuple[MarkedNetwork, pa.Table]:
    """Descriptors at some nodes, and a random tree from every node, as in random_source_problem."""
    rng = np.random.default_rng(seed)
    names = np.array([chr(ord("a") + i) for i in range(nodes)])
    rows = [(root, *edge) for root in range(nodes) for edge in random_tree(rng, root, nodes)]
    columns = names[np.array(rows).T]
    trees = pa.table(dict(zip(("root", "parent", "child"), columns.tolist(), strict=True)))
    return MarkedNetwork(pa.array(names.tolist()), **random_counts(rng, nodes)), trees


def mesh(seed: int, side: int = 5, whole: bool = False) -> MarkedNetwork:
    """A square grid of nodes with random latencies: whole ones tie often, and some are 0."""
    rng = np.random.default_rng(seed)
    at = np.arange(side * side).reshape(side, side)
    ends = np.hstack(([at[:, :-1].ravel(), at[:, 1:].ravel()], [at[:-1].ravel(), at[1:].ravel()]))
    pairs = [(a, b) for a, b in ends.T.tolist()]
    latency = rng.integers(0, 3, len(pairs)) * 1.0 if whole else rng.random(len(pairs))
    names = pa.array([f"n{i:02d}" for i in range(side * side)])
    published, subscribed = (rng.random((2, side * side)) < 0.3) * rng.integers(1, 9, side * side)
    published[0] = 1
    return MarkedNetwork(names, published, subscribed, links(pairs, latency.tolist()))


def random_shared_problem(seed: int, nodes: int = 6, priced: bool = False) -> MarkingProblem:
    """A random tree as the network, with a random core."""
    rng = np.random.default_rng(seed)
    edges = random_tree(rng, 0, nodes)
    prices = random_prices(rng, nodes, len(edges)) if priced else {}
    names = pa.array([chr(ord("a") + i) for i in range(nodes)])
    world = MarkedNetwork(names, **random_counts(rng, nodes), links=links(edges), **prices)
    return shared_problem(world, names[int(rng.integers(nodes))].as_py())


class Literal:
    """A problem as sets: its links as pairs of nodes, and each publisher's tree as paths."""

    def __init__(self, problem: MarkingProblem) -> None:
        self.problem = problem
        self.links: list[Edge] = list(
            zip(problem.tail.tolist(), problem.head.tolist(), strict=True)
        )
        publishers = np.flatnonzero(problem.published).tolist()
        self.trees = {x: self.tree(x) for x in publishers}

    def tree(self, root: int) -> set[Edge]:
        """T_x; on a shared tree what leads away from x, pruned to subscribers."""
        trees = self.problem.trees
        if isinstance(trees, SourceTrees):
            i = trees.root.tolist().index(root)
            entries = trees.link[trees.starts[i] : trees.starts[i + 1]]
            return {self.links[link] for link in entries.tolist()}
        ways = [
            self.path(set(self.links), root, y)
            for y in np.flatnonzero(self.problem.subscribed).tolist()
        ]
        return set(itertools.chain(*ways))

    def path(self, tree: set[Edge], start: int, end: int) -> list[Edge]:
        """The way from a node down to another one in a tree, without turning back."""
        stack: list[tuple[int, list[Edge]]] = [(start, [])]
        while stack:
            here, way = stack.pop()
            if here == end:
                return way
            back = way[-1][0] if way else None
            stack += [(b, [*way, (a, b)]) for a, b in tree if a == here and b != back]
        raise AssertionError(f"{end} cannot be reached from {start}")

    def upstream(self) -> set[tuple[Edge, Edge]]:
        """All pairs t R_x q, over all x."""
        return {
            pair
            for root, tree in self.trees.items()
            for node in {b for _, b in tree}
            for pair in itertools.combinations(self.path(tree, root, node), 2)
        }

    def valid(self, publish: np.ndarray) -> bool:
        """Eq. 1."""
        marked = dict(zip(self.links, publish.tolist(), strict=True))
        return all(marked[t] or not marked[q] for t, q in self.upstream())

    def cost(self, publish: np.ndarray) -> float:
        """Eq. 2, with prices."""
        marked = dict(zip(self.links, publish.tolist(), strict=True))
        sigma = np.array([self.sigma(t, marked) for t in self.links])
        tau = np.array([self.tau(t, marked) for t in self.links])
        p = self.problem
        return float((sigma * p.publication_price + tau * p.subscription_price).sum())

    def sigma(self, link: Edge, marked: dict[Edge, bool]) -> int:
        return sum(self.problem.published[x] for x in self.senders(link, marked))

    def tau(self, link: Edge, marked: dict[Edge, bool]) -> int:
        return sum(self.problem.subscribed[y] for y in self.behind(link, marked))

    def senders(self, link: Edge, marked: dict[Edge, bool]) -> set[int]:
        """Eq. 3 to 5: publishers with a way of p-links to the tail of a p-link."""
        if not marked[link]:
            return set()
        near = [x for x, tree in self.trees.items() if link in tree]
        ways = {x: self.path(self.trees[x], x, link[0]) for x in near}
        return {x for x in near if all(marked[t] for t in ways[x])}

    def behind(self, link: Edge, marked: dict[Edge, bool]) -> set[int]:
        """Eq. 6 to 8: nodes with a way of s-links from the head of an s-link, on any tree."""
        found: set[int] = set()
        if marked[link]:
            return found
        for root, tree in self.trees.items():
            for y in {root, *(b for _, b in tree)}:
                way = self.path(tree, root, y)
                if link in way and not any(marked[t] for t in way[way.index(link) :]):
                    found.add(y)
        return found


def all_markings(links: int) -> np.ndarray:
    """Every way to mark so many links, one per row."""
    marked: np.ndarray = np.arange(2**links)[:, None] >> np.arange(links) & 1 == 1
    return marked
