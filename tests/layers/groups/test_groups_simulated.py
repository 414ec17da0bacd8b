"""The simulator and the ledger of groups agree, broker by broker, on small random worlds."""

from __future__ import annotations

import numpy as np
import pytest
from group_worlds import cells_of_world, random_world, routes_of
from hypothesis import given, settings
from hypothesis import strategies as st

from fanplan.layers.groups.ledger import groups_ledger
from fanplan.layers.groups.problem.build import cell_groups, exact_groups
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.simulated import group_ways
from fanplan.network.latency import Timing
from fanplan.simulation.messages import publications_of
from fanplan.simulation.params import SimulationParams
from fanplan.simulation.simulate import run_messages

HOP, MATCH = 8.0, 1.0


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    roots=st.sampled_from([1, 3]),
    exact=st.booleans(),
    shortcuts=st.booleans(),
)
def test_the_simulator_agrees(seed: int, roots: int, exact: bool, shortcuts: bool) -> None:
    world = random_world(seed, roots)
    routes, cell = routes_of(world)
    problem = (
        exact_groups(world.names, world.trees, routes)
        if exact
        else cell_groups(world.names, world.trees, routes, cells_of_world(world, cell, False))
    )
    selected = np.random.default_rng(seed).random(problem.size) < 0.6
    compare(problem, selected, shortcuts)


def compare(problem: GroupsProblem, selected: np.ndarray, shortcuts: bool) -> None:
    timing = Timing(len(problem.brokers), None, HOP)
    network, ways = group_ways(problem, selected, shortcuts, timing)
    messages = publications_of(problem.routes, 1.0, seed=1)
    params = SimulationParams("none", match_ms=MATCH)
    result = run_messages(network, ways, np.ones(len(problem.brokers)), messages, params)
    ledger = groups_ledger(problem, selected, shortcuts, HOP, MATCH)
    entered = np.bincount(
        problem.routes.source, problem.routes.messages, minlength=len(problem.brokers)
    )
    assert result.publications == ledger.publications
    assert result.processed.tolist() == (ledger.received + entered).tolist()
    assert result.arrived.tolist() == ledger.arrived.tolist()
    assert result.link_messages == ledger.received.sum()
    assert result.delays_ms.sum() == pytest.approx(ledger.delay.sum())
    # The simulator does not count matches, but the visits say who matches.
    sizes = np.diff(ways.starts)
    matched = np.repeat(problem.routes.messages, sizes) * ways.visits["matched"]
    counted = np.bincount(ways.visits["broker"], matched, minlength=len(problem.brokers))
    assert counted.tolist() == (ledger.matched + entered).tolist()
