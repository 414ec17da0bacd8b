"""Improved trees: exact changes, limits that hold, and answers where none can."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanplan.core.errors import InfeasibleError
from fanplan.core.stop import never
from fanplan.layers.overlay.published.similar import SIMILAR, random_tree
from fanplan.layers.overlay.published.spanning import connected_parts, spanning_tree
from fanplan.layers.overlay.search.improve import improved_tree, swap_down, with_link_replaced
from fanplan.layers.overlay.search.judge import (
    IDLE,
    NO_LIMIT,
    ImproveParams,
    TreeLimits,
    judge_tree,
    search_of,
)
from fanplan.layers.overlay.search.movable import detach, movable_of
from fanplan.layers.overlay.search.starts import least_diameter
from fanplan.layers.overlay.search.swap import best_swap, cut_halves, extra_at
from fanplan.network.brokers import Links, OverlayProblem, Routes, no_similarity
from fanplan.network.trees import Tree


def problem_of(
    size: int, seed: int, routes: int = 12, links: Links | None = None
) -> OverlayProblem:
    """Random routes between brokers, also to the source itself and to nobody."""
    random = np.random.default_rng(seed)
    reached = [np.flatnonzero(random.random(size) < 0.3).astype(np.int32) for _ in range(routes)]
    starts = np.concatenate(([0], np.cumsum([len(brokers) for brokers in reached])))
    source = random.integers(0, size, routes).astype(np.int32)
    messages = random.integers(1, 9, routes).astype(np.float64)
    traffic = Routes(source, starts.astype(np.int64), np.concatenate(reached), messages, messages)
    names = pa.array([f"b{i}" for i in range(size)])
    free = np.full(size, np.inf)
    alike = no_similarity(size)
    return OverlayProblem(names, free, np.ones(size), traffic, alike, links, 1.0, "test")


def random_links(size: int, seed: int, bandwidth: float = np.inf) -> Links:
    """A ring and some chords, with latencies and costs."""
    random = np.random.default_rng(seed)
    pairs = {(i, i + 1) for i in range(size - 1)} | {(0, size - 1)}
    for one, other in random.integers(0, size, (size, 2)).tolist():
        if one != other:
            pairs.add((min(one, other), max(one, other)))
    a, b = np.array(sorted(pairs), dtype=np.int32).T.copy()
    latency = random.integers(1, 9, len(a)).astype(np.float64)
    return Links(a, b, latency, np.full(len(a), bandwidth), random.random(len(a)))


@settings(max_examples=60)
@given(st.integers(3, 12), st.integers(0, 10**6), st.booleans(), st.booleans())
def test_change_of_every_swap_is_that_of_the_ledger(
    size: int, seed: int, given_links: bool, everywhere: bool
) -> None:
    links = random_links(size, seed) if given_links else None
    problem = problem_of(size, seed, links=links)
    params = ImproveParams(delay=0.7)
    search = search_of(problem, params, 0)
    tree = random_tree(problem, seed)
    before = judge_tree(search, tree).objective
    link = seed % len(tree.a)
    u, v = int(tree.a[link]), int(tree.b[link])
    hung = movable_of(tree, search.offers, search.rules.degree)
    detach(hung, search.offers, link)
    halves = cut_halves(hung, search.terms, u, v, everywhere)
    length = {(u, v): 1.0} if links is None else dict(zip_links(links))
    for x, y in pairs_to_try(halves.small, links):
        new = judge_tree(search, with_link_replaced(tree, link, x, y)).objective
        change = extra_at(halves, hung, x) + extra_at(halves, hung, y)
        longer = length.get((x, y), 1.0) - length[u, v]
        change += 0.7 * halves.arrivals * longer
        change += IDLE * max(1.0, search.terms.traffic.messages.sum()) * longer
        assert new - before == pytest.approx(change, abs=1e-6)


def zip_links(links: Links) -> list[tuple[tuple[int, int], float]]:
    pairs = zip(links.a.tolist(), links.b.tolist(), strict=True)
    return list(zip(pairs, links.latency_ms.tolist(), strict=True))


def pairs_to_try(half: np.ndarray, links: Links | None) -> list[tuple[int, int]]:
    size = len(half)
    pairs = [(x, y) for x in range(size) for y in range(x + 1, size) if half[x] != half[y]]
    return pairs if links is None else [pair for pair, _ in zip_links(links) if pair in pairs]


@settings(max_examples=40)
@given(st.integers(3, 10), st.integers(0, 10**6), st.integers(3, 7))
def test_best_swap_is_the_best_of_all_under_degree_and_diameter(
    size: int, seed: int, diameter: int
) -> None:
    problem = problem_of(size, seed, routes=4)
    limits = TreeLimits(degree=3, diameter=None if diameter == 7 else diameter)
    search = search_of(problem, ImproveParams(limits=limits), 0)
    tree = least_diameter(search.rules.degree, np.zeros(size))
    assert tree is not None
    hung = movable_of(tree, search.offers, search.rules.degree)
    for link in range(len(tree.a)):
        swap = best_swap(hung, search.terms, link, NO_LIMIT)
        assert np.array_equal(hung.a, tree.a)
        half = tree_without(tree, link)
        trees = [
            judge_tree(search, with_link_replaced(tree, link, *pair))
            for pair in pairs_to_try(half, None)
        ]
        best = min(found.rank for found in trees if found.excess.degree == 0)
        assert judge_tree(
            search, with_link_replaced(tree, link, swap.x, swap.y)
        ).rank == pytest.approx(best)


def tree_without(tree: Tree, link: int) -> np.ndarray:
    """Which of the halves each broker is in when a link is cut."""
    left = np.delete(tree.a, link), np.delete(tree.b, link)
    part = connected_parts(*left, tree.size)
    half: np.ndarray = part == part[tree.a[link]]
    return half


@settings(max_examples=15, deadline=None)
@given(st.integers(5, 25), st.integers(0, 10**6))
def test_improved_tree_is_no_worse_than_any_start(size: int, seed: int) -> None:
    problem = problem_of(size, seed, routes=40)
    params = ImproveParams()
    found = improved_tree(problem, params, seed, never)
    search = search_of(problem, params, seed)
    for make in SIMILAR.values():
        assert found.objective <= judge_tree(search, make(problem)).objective + 1e-9
    again = improved_tree(problem, params, seed, never)
    assert np.array_equal(found.tree.a, again.tree.a)
    assert np.array_equal(found.tree.b, again.tree.b)


def test_limits_hold_in_the_result() -> None:
    problem = problem_of(30, 5, routes=60)
    limits = TreeLimits(degree=4, degrees=((7, 1),), diameter=7, hops=((0, 9, 2), (0, 12, 2)))
    tree = improved_tree(problem, ImproveParams(limits=limits), 0, never).tree
    assert tree.degrees.max() <= 4
    assert tree.degrees[7] == 1
    assert tree.diameter <= 7
    assert max(tree.hops(0)[9], tree.hops(0)[12]) <= 2


def test_links_bandwidth_and_latency_hold() -> None:
    links = random_links(20, 3)
    problem = problem_of(20, 3, routes=30, links=links)
    free = improved_tree(problem, ImproveParams(delay=1.0), 0, never)
    loads = free.ledger.link.sum(axis=1)
    busiest = int(loads.argmax())
    a, b = free.tree.a[busiest], free.tree.b[busiest]
    here = (links.a == a) & (links.b == b)
    narrow = replace(links, bandwidth=np.where(here, 0.5 * loads[busiest], np.inf))
    tight = improved_tree(replace(problem, links=narrow), ImproveParams(delay=1.0), 0, never)
    kept = (tight.tree.a == a) & (tight.tree.b == b)
    assert tight.ledger.link.sum(axis=1)[kept].sum() <= 0.5 * loads[busiest]
    assert tight.objective >= free.objective - 1e-9
    closed = replace(links, bandwidth=np.full(len(links.a), 1e-3))
    with pytest.raises(InfeasibleError, match="more than their bandwidth"):
        improved_tree(replace(problem, links=closed), ImproveParams(), 0, never)


@pytest.mark.parametrize("weight", ["messages", "delay", "cost"])
def test_each_weight_of_the_objective_makes_a_difference(weight: str) -> None:
    problem = problem_of(16, 8, routes=30, links=random_links(16, 8))
    links = problem.links
    assert links is not None
    found = {}
    for heavy in ("messages", "delay", "cost"):
        weights: dict[str, Any] = {"messages": 1e-6, "delay": 1e-6, "cost": 1e-6} | {heavy: 1.0}
        found[heavy] = improved_tree(problem, ImproveParams(**weights), 0, never)
    figures = {
        name: {
            "messages": one.ledger.link_messages,
            "delay": one.ledger.delay,
            "cost": links.cost[problem.given(one.tree.edges)].sum(),
        }[weight]
        for name, one in found.items()
    }
    assert all(figures[weight] < figures[other] for other in figures if other != weight)


def test_the_cheapest_links_are_those_of_the_minimum_spanning_tree() -> None:
    links = random_links(12, 8)
    problem = problem_of(12, 8, links=links)
    cheap = improved_tree(problem, ImproveParams(messages=0, delay=0, cost=1.0), 0, never)
    best = spanning_tree(links.a, links.b, -links.cost, 12)
    assert cheap.objective == pytest.approx(links.cost[problem.given(best.edges)].sum())


@given(st.lists(st.integers(1, 4), min_size=2, max_size=5))
def test_least_diameter_is_the_least_of_all_trees(degrees: list[int]) -> None:
    degree = np.array(degrees, dtype=np.int64)
    found = least_diameter(degree, np.zeros(len(degree)))
    fitting = [tree for tree in all_trees(len(degree)) if (tree.degrees <= degree).all()]
    assert (found is None) == (not fitting)
    if found is not None:
        assert (found.degrees <= degree).all()
        assert found.diameter == min(tree.diameter for tree in fitting)


ALL_TREES: dict[int, list[Tree]] = {}


def all_trees(size: int) -> list[Tree]:
    """All trees of so many brokers, by their Prüfer codes."""
    if size not in ALL_TREES:
        codes = np.ndindex(*(size,) * (size - 2))
        ALL_TREES[size] = [decoded(code, size) for code in codes]
    return ALL_TREES[size]


def decoded(code: tuple[int, ...], size: int) -> Tree:
    left = np.ones(size, dtype=int) + np.bincount(np.array(code, dtype=int), minlength=size)
    one, other = [], []
    for broker in code:
        leaf = int(np.flatnonzero(left == 1)[0])
        one.append(min(leaf, broker))
        other.append(max(leaf, broker))
        left[leaf] -= 1
        left[broker] -= 1
    last = np.flatnonzero(left == 1)
    a, b = np.array([*one, last[0]], dtype=np.int32), np.array([*other, last[1]], dtype=np.int32)
    return Tree(a, b)


def test_a_sample_of_the_routes_still_gives_a_tree() -> None:
    problem = problem_of(40, 2, routes=300)
    params = ImproveParams(most_ends=500)
    search = search_of(problem, params, 0)
    assert len(search.terms.traffic.ends) < 1000
    start = random_tree(problem, 1)
    found = swap_down(search, start, np.random.default_rng(0), never)
    assert judge_tree(search, found).objective < judge_tree(search, start).objective


def test_brokers_take_what_they_can_process_where_a_tree_lets_them() -> None:
    free = problem_of(12, 3, routes=40)
    best = improved_tree(free, ImproveParams(), 0, never)
    busiest = int(best.ledger.processed.argmax())
    own = np.zeros(12)
    for route in range(len(free.routes)):
        ends = np.union1d(free.routes.destinations(route), free.routes.source[route])
        own[ends] += free.routes.messages[route]
    capacity = np.full(12, np.inf)
    # Enough for its own clients and a little forwarding.
    capacity[busiest] = 0.5 * (own[busiest] + best.ledger.processed[busiest])
    assert capacity[busiest] < best.ledger.processed[busiest]
    limited = improved_tree(replace(free, capacity=capacity), ImproveParams(), 0, never)
    assert limited.overload == 0
    assert limited.objective >= best.objective


def test_a_broker_too_small_for_its_own_clients_only_ends_up_as_a_leaf() -> None:
    free = problem_of(9, 4, routes=40)
    best = improved_tree(free, ImproveParams(), 0, never)
    busiest = int(best.ledger.processed.argmax())
    capacity = np.full(9, np.inf)
    capacity[busiest] = 1e-6
    limited = improved_tree(replace(free, capacity=capacity), ImproveParams(), 0, never)
    assert limited.tree.degrees[busiest] == 1
    assert 0 < limited.overload < best.ledger.processed[busiest]


@given(st.integers(4, 9), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_where_nothing_passes_no_link_is_slower_than_a_way_around_it(size: int, seed: int) -> None:
    """Any link would do for the messages; an engineer would not take the slowest."""
    links = random_links(size, seed)
    problem = problem_of(size, seed, links=links)
    quiet = np.random.default_rng(seed).random(len(problem.routes)) < 0.7
    routes = replace(problem.routes, messages=np.where(quiet, 0.0, problem.routes.messages))
    problem = replace(problem, routes=routes)
    found = improved_tree(problem, ImproveParams(), seed, never)
    graph = nx.Graph()
    for (a, b), ms in zip_links(links):
        graph.add_edge(a, b, ms=ms)
    crossed = found.ledger.link.sum(axis=1)
    for (a, b), messages in zip(found.tree.edges.tolist(), crossed.tolist(), strict=True):
        if not messages:
            around = nx.shortest_path_length(graph, a, b, weight="ms")
            assert graph.edges[a, b]["ms"] <= around * (1 + 1e-9)
