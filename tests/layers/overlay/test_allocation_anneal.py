"""Annealing: the optimum where it can be tried, sums that hold, never worse than what it had."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from test_allocation import (
    fewest_by_trying,
    plain_estimate,
    plain_exact,
    problem_of,
    require_sound,
)

from fanplan.core.arrays import NONE, Ints
from fanplan.core.stop import never
from fanplan.layers.overlay.allocation import best
from fanplan.layers.overlay.allocation.allocation import (
    Allocation,
    AllocationParams,
    Placing,
    placing_of,
)
from fanplan.layers.overlay.allocation.anneal import (
    FEWEST_BROKERS,
    Cooling,
    Terms,
    annealed,
    hosts,
    move_some,
    packing_of,
)
from fanplan.layers.overlay.allocation.best import CLOSE, best_allocation, placed
from fanplan.layers.overlay.allocation.cram import cram_allocation
from fanplan.layers.overlay.allocation.crossing import (
    Site,
    crossed_by,
    fewer_messages,
    may_leave,
    more_crossings,
    move_on_tree,
    shift,
    spread,
    star_of,
)
from fanplan.layers.overlay.allocation.phases import Deployed, deployed, routes_between
from fanplan.layers.overlay.published.similar import overlap_tree
from fanplan.network.brokers import ClientProblem
from fanplan.network.carried import overlay_ledger
from fanplan.network.trees import hang

EXACT = AllocationParams(lcf=1.0, load="exact")
ESTIMATE = AllocationParams(lcf=1.0, load="estimate")


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


@pytest.mark.parametrize("seed", range(3))
def test_annealing_once_more_costs_no_brokers(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(12, 40, seed, circles=3)
    twice = best_allocation(problem, EXACT, 0, never)
    again = best_allocation(problem, EXACT, 0, never)
    assert np.array_equal(twice.broker, again.broker)
    monkeypatch.setattr(best, "FEWER_YET", Cooling(0.008, 0.002, 3.0, 0.0))
    once = best_allocation(problem, EXACT, 0, never)
    require_sound(problem, EXACT, twice)
    assert twice.brokers <= once.brokers


def test_a_rest_of_room_that_no_load_fills_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """All loads are multiples of 0.5."""
    problem, rooms = problem_of(12, 60, 0, capacity=20.47), []

    def seen(p: Placing, *others: Any) -> Ints:
        rooms.append(p.room.max())
        return annealed(p, *others)

    monkeypatch.setattr(best, "annealed", seen)
    found = best_allocation(problem, EXACT, 0, never)
    require_sound(problem, EXACT, found)
    assert rooms == pytest.approx([20.0, 20.0])


@pytest.mark.parametrize("turns", [0, 5, 600])
def test_annealing_ends_when_told_to(turns: int) -> None:
    problem = replace(problem_of(8, 30, 4), capacity=np.full(40, 11.0))
    asked = 0

    def stop(_: float) -> bool:
        nonlocal asked
        asked += 1
        return asked > turns

    require_sound(problem, EXACT, best_allocation(problem, EXACT, 0, stop))
    # Each part of the search asks once more, and goes no further.
    assert turns < asked < turns + 20, asked


def test_loads_follow_moves_and_swaps() -> None:
    problem = problem_of(12, 40, 1, circles=3)
    start = cram_allocation(problem, "ios", EXACT)
    placing = placed(placing_of(problem, EXACT), start.broker)
    nobody = np.full(52, NONE, np.int32)
    packing = packing_of(placing, problem.cost, start.used, nobody, 1)
    move_some(placing.clients, packing, Terms(0.2, 3.0, 0.5), 20_000)
    home = packing.brokers[packing.home]
    assert (home != start.broker).mean() > 0.3  # of two brokers, chance has half of them move
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
    home = annealed(placing, problem.cost, found.used, 3, never, FEWEST_BROKERS)
    assert len(found.lone) > 0
    assert np.array_equal(home[found.lone], found.broker[found.lone])
    assert (np.bincount(home, minlength=40)[found.broker[found.lone]] == 1).all()


@pytest.mark.parametrize("seed", range(5))
def test_a_publisher_adds_nothing_beside_its_host(seed: int) -> None:
    problem = problem_of(6, 40, seed)
    placing = placing_of(problem, EXACT)
    host = hosts(placing)
    wants = problem.interest.toarray() == 1.0
    for publisher in range(6):
        assert (host[publisher] == NONE) == (not wants[publisher].any())
        if host[publisher] != NONE:
            home = np.arange(46)
            apart = plain_exact(replace_brokers(problem, 46), home)
            home[publisher] = home[host[publisher]]
            beside = plain_exact(replace_brokers(problem, 46), home)
            assert beside[home[publisher]] == pytest.approx(apart[home[publisher]])
    assert (host[6:] == NONE).all()


def replace_brokers(problem: ClientProblem, count: int) -> ClientProblem:
    """As many brokers as there are clients."""
    names = pa.array([f"b{i}" for i in range(count)])
    return replace(problem, brokers=names, capacity=np.full(count, 99.0), cost=np.ones(count))


# ---- messages on links


def linked_by(problem: ClientProblem, found: Allocation) -> Deployed:
    return deployed(problem, found, overlap_tree)


BY_LOAD = pytest.mark.parametrize("params", [EXACT, ESTIMATE], ids=["exact", "estimate"])


@BY_LOAD
@pytest.mark.parametrize("seed", range(6))
def test_messages_and_loads_follow_moves_on_a_tree(seed: int, params: AllocationParams) -> None:
    problem = problem_of(10, 40, seed, circles=2)
    made = linked_by(problem, cram_allocation(problem, "ios", params))
    used = np.sort(made.allocation.used)
    placing = placed(placing_of(problem, params), made.allocation.broker)
    nobody = np.full(50, NONE, np.int32)
    packing = packing_of(placing, problem.cost, used, nobody, seed)
    site = Site(used, hang(made.trees.links, 0, len(used)), 0.0)
    tree = crossed_by(placing.clients, packing, site, made.allocation.broker)
    random, clients = np.random.default_rng(seed), placing.clients
    for _ in range(40):
        client, new = int(random.choice(packing.movable)), int(random.integers(len(packing.room)))
        before = messages_on(problem, made, packing.brokers[packing.home])
        change = more_crossings(clients, packing, tree, client, new)
        shift(clients, packing, tree, client, new)
        after = messages_on(problem, made, packing.brokers[packing.home])
        assert change * problem.seconds == pytest.approx(after - before)
        load = plain_load(problem, params, packing.brokers[packing.home])
        assert packing.load == pytest.approx(load[packing.brokers])


def plain_load(problem: ClientProblem, params: AllocationParams, home: np.ndarray) -> np.ndarray:
    """By the rule that counts, without sums that are kept."""
    return (plain_exact if params.load == "exact" else plain_estimate)(problem, home)


def messages_on(problem: ClientProblem, made: Deployed, home: np.ndarray) -> float:
    """Messages on the links of the tree that is there, with clients elsewhere."""
    used = np.sort(made.allocation.used)
    sending, wanting = np.split(np.searchsorted(used, home).astype(np.int32), [10])
    routes = routes_between(problem.routes, sending, wanting)
    return overlay_ledger(made.trees.links, 1.0, routes).link_messages


@BY_LOAD
@pytest.mark.parametrize("seed", range(6))
def test_tries_keep_loads_and_room(seed: int, params: AllocationParams) -> None:
    """Tens of thousands of moves and swaps, far too hot, and a recount after each part of them."""
    problem = problem_of(12, 40, seed, capacity=22.0)
    start = cram_allocation(problem, "ios", params)
    placing = placed(placing_of(problem, params), start.broker)
    site = star_of(np.sort(start.used), 0.0)
    packing = packing_of(placing, problem.cost, site.used, np.full(52, NONE, np.int32), seed)
    tree = crossed_by(placing.clients, packing, site, start.broker)
    for _ in range(20):
        move_on_tree(placing.clients, packing, tree, 5.0, 2_000)
        # Who is too big for a broker has no home in the packing.
        home = np.where(packing.home == NONE, start.broker, packing.brokers[packing.home])
        load = plain_load(problem, params, home)[packing.brokers]
        assert packing.load == pytest.approx(load)
        assert (load <= packing.room * (1 + 1e-9)).all()
    assert (home != start.broker).mean() > 0.3
    at = np.zeros_like(packing.counts)
    packed = packing.home[packing.owner] != NONE
    pairs = packing.home[packing.owner][packed], placing.clients.routes[packed]
    np.add.at(at, pairs, 1)
    assert np.array_equal(packing.counts, at)
    # Of a star, who is at or below a broker is who is at it.
    assert np.array_equal(tree.below[: len(at)], at)


def test_a_publisher_stays_where_its_listeners_need_it() -> None:
    """By the estimate; elsewhere it would have room, and no more messages would cross links."""
    problem = replace(problem_of(1, 4, 0, brokers=2), capacity=np.full(2, 5.0))
    wants = np.ones((1, 4))
    problem = replace(problem, interest=scipy.sparse.csr_array(wants), rates=np.array([5.0]))
    home = np.zeros(5, np.int32)
    assert plain_estimate(problem, home).tolist() == [5.0, 0.0]
    placing = placed(placing_of(problem, ESTIMATE), home)
    site = star_of(np.arange(2), 0.0)
    packing = packing_of(placing, problem.cost, site.used, np.full(5, NONE, np.int32), 0)
    assert not may_leave(placing.clients, packing, 0)
    assert may_leave(placing.clients, packing, 1)


@BY_LOAD
@pytest.mark.parametrize("seed", range(6))
def test_fewer_messages_with_no_more_brokers(seed: int, params: AllocationParams) -> None:
    problem = problem_of(12, 40, seed, circles=3)
    few = best_allocation(problem, params, seed, never)
    most = cram_allocation(problem, "ios", params).brokers
    found = spread(problem, params, few, most, seed, never)
    require_sound(problem, params, found)
    assert found.brokers <= max(most, few.brokers)
    assert found.exact.sum() <= few.exact.sum() * (1 + 1e-9)
    before = linked_by(problem, found)
    after = fewer_messages(
        problem, before, lambda _, other: linked_by(problem, other), params, seed, never
    )
    require_sound(problem, params, after.allocation)
    assert after.allocation.brokers <= before.allocation.brokers
    assert after.ledger.link_messages <= before.ledger.link_messages


@BY_LOAD
@pytest.mark.parametrize("seed", range(6))
def test_as_few_messages_as_trying_all_homes_finds(seed: int, params: AllocationParams) -> None:
    """Two linked brokers: whatever the tree, it is the same one."""
    problem = problem_of(2, 6, seed, brokers=2, capacity=9.0)
    if params is ESTIMATE:
        problem = replace(problem, capacity=np.full(2, 14.0))
    start = best_allocation(problem, params, seed, never)
    after = fewer_messages(
        problem, linked_by(problem, start), lambda _, x: linked_by(problem, x), params, seed, never
    )
    least = np.inf
    for home in product(range(2), repeat=8):
        where = np.array(home)
        if (plain_load(problem, params, where) <= params.room(problem) * (1 + 1e-9)).all():
            # Each message is processed once, and once more if it crosses the link.
            processed = plain_exact(problem, where).sum() * problem.seconds
            least = min(least, processed - problem.routes.messages.sum())
    if least < np.inf:
        assert after.ledger.link_messages == pytest.approx(least)
