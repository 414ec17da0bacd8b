"""Trees by similarity: against networkx, and ties by position."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse.csgraph
from hypothesis import given
from hypothesis import strategies as st

from fanplan.core.errors import InputError
from fanplan.layers.overlay.published.similar import (
    SIMILAR,
    directed_tree,
    hybrid_similarity,
    hybrid_tree,
    overlap_tree,
    random_tree,
    symmetric_tree,
)
from fanplan.layers.overlay.published.spanning import spanning_tree
from fanplan.network.brokers import Links, OverlayProblem, Routes, Similarity, no_similarity
from fanplan.network.trees import Tree


def problem_of(size: int, similarity: Similarity, links: Links | None = None) -> OverlayProblem:
    none, nothing = np.empty(0, dtype=np.int32), np.empty(0)
    routes = Routes(none, np.zeros(1, dtype=np.int64), none, nothing, nothing)
    names = pa.array([f"b{i}" for i in range(size)])
    free = np.full(size, np.inf)
    return OverlayProblem(names, free, np.ones(size), routes, similarity, links, 1.0, "test")


def links_of(pairs: list[tuple[int, int]]) -> Links:
    a, b = np.array(sorted(pairs), dtype=np.int32).T.copy()
    ones = np.ones(len(a))
    return Links(a, b, ones, np.full(len(a), np.inf), ones)


def pairs_of(tree: Tree) -> list[tuple[int, int]]:
    return list(zip(tree.a.tolist(), tree.b.tolist(), strict=True))


def is_tree(tree: Tree, size: int) -> bool:
    graph = nx.Graph(pairs_of(tree))
    graph.add_nodes_from(range(size))
    return bool(nx.is_tree(graph))


def heaviest_direction(tree: Tree, weight: np.ndarray) -> float:
    graph = nx.Graph(pairs_of(tree))
    graph.add_nodes_from(range(len(weight)))
    roots = range(len(weight))
    return max(float(sum(weight[arc] for arc in nx.bfs_edges(graph, root))) for root in roots)


@st.composite
def weights(draw: st.DrawFn) -> np.ndarray:
    """Square, sparse, with many equal weights, and nothing on the diagonal."""
    size = draw(st.integers(2, 8))
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    matrix = random.integers(0, 5, (size, size)) * (random.random((size, size)) < random.random())
    np.fill_diagonal(matrix, 0)
    return matrix.astype(np.float64)


@given(weights())
def test_directed_tree_is_as_heavy_as_the_maximum_arborescence(weight: np.ndarray) -> None:
    size = len(weight)
    tree = directed_tree(problem_of(size, no_similarity(size)), scipy.sparse.csr_array(weight))
    graph = nx.DiGraph()
    arcs = [(i, j) for i in range(size) for j in range(size) if i != j]
    graph.add_weighted_edges_from((i, j, weight[i, j]) for i, j in arcs)
    best = nx.maximum_spanning_arborescence(graph).size(weight="weight")
    assert is_tree(tree, size)
    assert heaviest_direction(tree, weight) == best


@given(weights())
def test_directed_tree_keeps_to_given_links(weight: np.ndarray) -> None:
    size = len(weight)
    links = links_of([(i, i + 1) for i in range(size - 1)] + [(0, size - 1)] * (size > 2))
    problem = problem_of(size, no_similarity(size), links)
    tree = directed_tree(problem, scipy.sparse.csr_array(weight))
    graph = nx.DiGraph()
    allowed = [*zip(links.a, links.b, strict=True), *zip(links.b, links.a, strict=True)]
    graph.add_weighted_edges_from((i, j, weight[i, j]) for i, j in allowed)
    best = nx.maximum_spanning_arborescence(graph).size(weight="weight")
    assert is_tree(tree, size)
    assert set(pairs_of(tree)) <= set(zip(links.a.tolist(), links.b.tolist(), strict=True))
    assert heaviest_direction(tree, weight) == best


@given(weights())
def test_symmetric_tree_is_as_heavy_as_the_maximum_spanning_tree(weight: np.ndarray) -> None:
    weight = np.maximum(weight, weight.T)
    size = len(weight)
    tree = symmetric_tree(problem_of(size, no_similarity(size)), scipy.sparse.csr_array(weight))
    best = nx.maximum_spanning_tree(nx.from_numpy_array(weight)).size(weight="weight")
    assert is_tree(tree, size)
    assert weight[tree.a, tree.b].sum() == best


def test_ties_go_to_lower_positions() -> None:
    equal = scipy.sparse.csr_array(np.ones((4, 4)) - np.eye(4))
    problem = problem_of(4, Similarity(equal, equal, equal))
    star = [(0, 1), (0, 2), (0, 3)]
    assert all(pairs_of(make(problem)) == star for make in SIMILAR.values())


def test_brokers_like_nobody_are_linked_to_the_first() -> None:
    alike = scipy.sparse.coo_array(([2.0, 2.0], ([1, 2], [2, 1])), (4, 4)).tocsr()
    problem = problem_of(4, Similarity(alike, alike, alike))
    assert pairs_of(overlap_tree(problem)) == [(0, 1), (0, 3), (1, 2)]


def test_hybrid_mixes_what_is_divided_by_its_maximum() -> None:
    overlap = np.zeros((3, 3))
    overlap[0, 1] = overlap[1, 0] = 10.0
    overlap[1, 2] = overlap[2, 1] = 1.0
    interest = np.zeros((3, 3))
    interest[0, 2] = 0.1
    empty = scipy.sparse.csr_array((3, 3))
    alike = Similarity(scipy.sparse.csr_array(overlap), empty, scipy.sparse.csr_array(interest))
    problem = problem_of(3, alike)
    assert pairs_of(hybrid_tree(problem, 0.0)) == [(0, 1), (1, 2)]
    assert pairs_of(hybrid_tree(problem, 0.5)) == [(0, 1), (0, 2)]


@given(st.integers(1, 30), st.integers(0, 10**6))
def test_random_tree_spans_and_depends_on_the_seed_alone(size: int, seed: int) -> None:
    problem = problem_of(size, no_similarity(size))
    tree = random_tree(problem, seed)
    assert is_tree(tree, size)
    assert pairs_of(tree) == pairs_of(random_tree(problem, seed))


def test_random_tree_is_the_spanning_tree_of_random_weights() -> None:
    """It is much deeper than one where each broker joins a random earlier one: √n, not log n."""
    size, hops, joined = 400, [], []
    weights = np.random.default_rng(5)
    a, b = (ends.astype(np.int32) for ends in np.triu_indices(size, 1))
    for seed in range(20):
        tree = random_tree(problem_of(size, no_similarity(size)), seed)
        hops.append(mean_distance(tree.edges, size))
        joined.append(mean_distance(spanning_tree(a, b, weights.random(len(a)), size).edges, size))
    assert np.mean(hops) == pytest.approx(np.mean(joined), rel=0.15)
    assert np.mean(hops) > 15


def mean_distance(edges: np.ndarray, size: int) -> float:
    graph = scipy.sparse.coo_array((np.ones(len(edges)), tuple(edges.T)), (size, size))
    return float(scipy.sparse.csgraph.shortest_path(graph, directed=False).mean())


def test_interest_may_be_divided_by_the_maximum_of_each_broker() -> None:
    """Broker 0 offers little: by its own maximum its link weighs as much as that of broker 1."""
    overlap = scipy.sparse.csr_array(np.array([[0, 4, 0], [4, 0, 1], [0, 1, 0.0]]))
    interest = scipy.sparse.csr_array(np.array([[0, 0, 1], [10, 0, 0], [0, 0, 0.0]]))
    problem = problem_of(3, Similarity(overlap, overlap, interest))
    shared, own = (hybrid_similarity(problem, 0.5, scale).toarray() for scale in ("all", "own"))
    assert (shared[0, 2], shared[1, 0]) == (0.05, 1.0)
    assert (own[0, 2], own[1, 0]) == (0.5, 1.0)
    assert pairs_of(hybrid_tree(problem, 0.5)) == [(0, 1), (1, 2)]
    assert pairs_of(hybrid_tree(problem, 0.5, "own")) == [(0, 1), (0, 2)]


def test_links_in_two_parts_are_named() -> None:
    problem = problem_of(4, no_similarity(4), links_of([(0, 1), (2, 3)]))
    with pytest.raises(InputError, match="'b0' to 'b2' \\(2 are cut off\\)"):
        overlap_tree(problem)
