"""Several trees: cheaper than one or not taken, and counted alike by ledger, hand and simulator."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from test_overlay_improve import problem_of, random_links

from fanplan.core.errors import InfeasibleError
from fanplan.core.stop import never
from fanplan.layers.overlay.published.similar import random_tree
from fanplan.layers.overlay.search.improve import improved_tree
from fanplan.layers.overlay.search.judge import ImproveParams, TreeLimits
from fanplan.layers.overlay.search.several import Overlay, general_overlay, overlay_of
from fanplan.network.brokers import OverlayProblem
from fanplan.simulation.messages import publications_of
from fanplan.simulation.params import SimulationParams
from fanplan.simulation.simulate import run_messages
from fanplan.simulation.spread import RouteTree, SimulatedNetwork, spread_routes


@st.composite
def overlays(draw: st.DrawFn) -> tuple[OverlayProblem, ImproveParams, Overlay]:
    """Random trees with random sources, with and without given links."""
    size, seed = draw(st.integers(2, 9)), draw(st.integers(0, 10**6))
    links = random_links(size, seed) if draw(st.booleans()) and size > 2 else None
    problem = problem_of(size, seed, routes=8, links=links)
    trees = tuple(random_tree(problem, seed + i) for i in range(draw(st.integers(1, 3))))
    of = np.random.default_rng(seed).integers(0, len(trees), size).astype(np.int32)
    params = ImproveParams(cost=draw(st.sampled_from([0.0, 3.0])))
    return problem, params, overlay_of(problem, params, trees, of)


@settings(max_examples=40)
@given(overlays())
def test_objective_and_links_are_what_a_slow_count_finds(
    case: tuple[OverlayProblem, ImproveParams, Overlay],
) -> None:
    problem, params, overlay = case
    given_links = problem.links
    graphs = [
        nx.Graph(list(zip(*map(np.ndarray.tolist, tree), strict=True))) for tree in overlay.trees
    ]
    known = {}
    if given_links is not None:
        ends = zip(given_links.a.tolist(), given_links.b.tolist(), strict=True)
        known = dict(
            zip(ends, zip(given_links.latency_ms, given_links.cost, strict=True), strict=True)
        )
    total, crossed = (0.0, dict.fromkeys(map(tuple, overlay.shape.links.tolist()), 0.0))
    for route in range(len(problem.routes)):
        source, count = int(problem.routes.source[route]), problem.routes.messages[route]
        steps = set()
        for end in problem.routes.destinations(route).tolist():
            way = nx.shortest_path(graphs[overlay.shape.of[source]], source, end)
            taken = [tuple(sorted(step)) for step in pairwise(way)]
            total += params.delay * count * sum(known.get(step, (1.0, 1.0))[0] for step in taken)
            steps |= set(taken)
        total += params.messages * count * len(steps)
        for step in steps:
            crossed[step] += count
    total += params.cost * sum(known.get(step, (1.0, 1.0))[1] for step in crossed)
    assert overlay.objective == pytest.approx(total)
    assert overlay.ledger.link.sum(axis=1).tolist() == list(crossed.values())


@settings(max_examples=40)
@given(overlays())
def test_the_simulator_counts_the_same_without_congestion(
    case: tuple[OverlayProblem, ImproveParams, Overlay],
) -> None:
    problem, _, overlay = case
    edges = overlay.shape.links
    latency = problem.latencies(edges)
    network = SimulatedNetwork(problem.size, edges, latency, np.zeros(len(edges)))
    trees = [RouteTree(member) for member in overlay.shape.members]
    tree_of = overlay.shape.of[problem.routes.source].astype(np.int64)
    ways = spread_routes(network, problem.routes, trees, tree_of)
    sent = publications_of(problem.routes, 1.0, 0)
    result = run_messages(network, ways, problem.capacity, sent, SimulationParams("none"))
    assert result.link.tolist() == overlay.ledger.link.tolist()
    assert result.processed.tolist() == overlay.ledger.processed.tolist()
    assert result.delays_ms.sum() == pytest.approx(overlay.ledger.delay)
    assert result.forwarding_ratio == pytest.approx(overlay.ledger.forwarding_ratio)


@settings(max_examples=5, deadline=None)
@given(st.integers(4, 10), st.integers(0, 10**6), st.booleans())
def test_more_trees_never_cost_more_and_obey_the_limits(size: int, seed: int, narrow: bool) -> None:
    problem = problem_of(size, seed, routes=20, links=random_links(size, seed) if narrow else None)
    params = ImproveParams(limits=TreeLimits(degree=None if narrow else 4, diameter=size))
    most = 1.2 * improved_tree(problem, params, seed, never).ledger.link.sum(axis=1).max()
    if problem.links is not None:
        wide = np.full(len(problem.links.a), most)
        problem = replace(problem, links=replace(problem.links, bandwidth=wide))
    try:
        one = improved_tree(problem, params, seed, never)
    except InfeasibleError:
        reject()
    overlay = general_overlay(problem, params, 3, seed, never)
    degrees = np.bincount(overlay.shape.links.ravel(), minlength=size)
    assert overlay.objective <= one.objective + 1e-9
    assert 1 <= len(overlay.trees) <= 3
    assert set(overlay.shape.of[problem.routes.source]) == set(range(len(overlay.trees)))
    assert narrow or degrees.max() <= 4
    assert not narrow or overlay.ledger.link.sum(axis=1).max() <= most * (1 + 1e-9)


def test_two_sources_far_apart_get_a_tree_each_unless_links_are_dear() -> None:
    problem = problem_of(12, 1)
    routes = replace(
        problem.routes,
        source=np.array([0, 1], np.int32),
        starts=np.array([0, 10, 20]),
        brokers=np.concatenate([np.arange(2, 12, dtype=np.int32)] * 2),
        messages=np.array([10.0, 10.0]),
        deliveries=np.array([100.0, 100.0]),
    )
    problem = replace(problem, routes=routes)
    both = general_overlay(problem, ImproveParams(), 4, 0, never)
    assert len(both.trees) == 2
    assert both.ledger.link_messages == 200
    assert both.ledger.delay_mean == 1.0
    dear = general_overlay(problem, ImproveParams(cost=100.0), 4, 0, never)
    assert len(dear.trees) == 1
