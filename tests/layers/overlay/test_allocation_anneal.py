"""Annealing: the optimum where it can be tried, sums that hold, never worse than what it had."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_allocation import fewest_by_trying, plain_exact, problem_of, require_sound

from fanplan.core.stop import never
from fanplan.layers.overlay.allocation.allocation import AllocationParams, placing_of
from fanplan.layers.overlay.allocation.anneal import Terms, annealed, move_some, packing_of
from fanplan.layers.overlay.allocation.best import CLOSE, best_allocation, placed
from fanplan.layers.overlay.allocation.cram import cram_allocation

EXACT = AllocationParams(lcf=1.0, load="exact")


@pytest.mark.parametrize("seed", range(8))
def test_as_few_brokers_as_trying_all_finds(seed: int) -> None:
    problem = problem_of(2, 5, seed, brokers=4, capacity=8.0)
    found = best_allocation(problem, EXACT, seed, never)
    assert found.brokers == fewest_by_trying(problem, EXACT)


@pytest.mark.parametrize("seed", range(3))
def test_never_more_brokers_than_the_clusters_it_starts_from(seed: int) -> None:
    problem = problem_of(12, 40, seed, circles=3)
    found = best_allocation(problem, EXACT, 0, never)
    require_sound(problem, EXACT, found)
    made = [cram_allocation(problem, closeness, EXACT) for closeness in CLOSE]
    assert found.brokers <= min(cram.brokers for cram in made)


def test_loads_follow_moves_and_swaps() -> None:
    problem = problem_of(12, 40, 1, circles=3)
    start = cram_allocation(problem, "ios", EXACT)
    placing = placed(placing_of(problem, EXACT), start.broker)
    packing = packing_of(placing, problem.cost, start.used)
    move_some(placing.clients, packing, Terms(0.2, 3.0, 0.5), 20_000, 1)
    home = packing.brokers[packing.home]
    assert (home != start.broker).mean() > 0.5
    assert packing.load == pytest.approx(plain_exact(problem, home)[packing.brokers])
    routes = np.zeros_like(packing.counts)
    for client, route in zip(packing.owner, placing.clients.routes, strict=True):
        routes[packing.home[client], route] += 1
    assert np.array_equal(packing.counts, routes)


def test_clients_too_big_stay_and_nobody_joins_them() -> None:
    problem = replace(problem_of(8, 30, 4), capacity=np.full(40, 11.0))
    found = best_allocation(problem, EXACT, 0, never)
    require_sound(problem, EXACT, found)
    placing = placed(placing_of(problem, EXACT), found.broker)
    home = annealed(placing, problem.cost, found.used, 3, never)
    assert len(found.lone) > 0
    assert np.array_equal(home[found.lone], found.broker[found.lone])
    assert (np.bincount(home, minlength=40)[found.broker[found.lone]] == 1).all()
