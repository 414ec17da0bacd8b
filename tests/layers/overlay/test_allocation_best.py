"""Our allocation: hubs, costs, an older allocation brought up to date, and answers if it fails."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from test_allocation import RANKINGS, plain_estimate, problem_of, require_sound

from fanplan.core.arrays import NONE
from fanplan.core.errors import InfeasibleError, InputError
from fanplan.core.stop import never
from fanplan.layers.overlay.allocation.allocation import (
    Allocation,
    AllocationParams,
    ranked_allocation,
)
from fanplan.layers.overlay.allocation.best import best_allocation
from fanplan.layers.overlay.allocation.bound import fewest_brokers, require_enough, require_fitting
from fanplan.layers.overlay.allocation.hubs import best_hubs
from fanplan.layers.overlay.allocation.loads import clients_of
from fanplan.layers.overlay.allocation.phases import deployed
from fanplan.layers.overlay.published.similar import overlap_tree
from fanplan.network.brokers import ClientProblem

FULL = AllocationParams(lcf=1.0)


def worth(problem: ClientProblem, allocation: Allocation) -> tuple[float, float]:
    """Brokers by their cost, then messages."""
    return float(problem.cost[allocation.used].sum()), float(allocation.exact.sum())


def test_fewer_brokers_and_messages_than_every_ranking() -> None:
    problem = problem_of(20, 80, 5, brokers=80, capacity=45.0, circles=2)
    made = [ranked_allocation(problem, ranking, FULL, 0) for ranking in RANKINGS]
    best = best_allocation(problem, FULL, 0, never)
    messages = [
        deployed(problem, found, overlap_tree).ledger.link_messages for found in (best, *made)
    ]
    assert best.brokers <= 0.95 * min(found.brokers for found in made)
    assert messages[0] <= 0.9 * min(messages[1:])


def test_same_seed_same_allocation_and_stopping_at_once_is_sound() -> None:
    problem = problem_of(8, 30, 2)
    first, again = (best_allocation(problem, FULL, 1, never) for _ in range(2))
    assert np.array_equal(first.broker, again.broker)
    require_sound(problem, FULL, best_allocation(problem, FULL, 1, lambda cost: True))


def test_hubs_stay_within_their_room_and_save_what_bins_cannot() -> None:
    problem = problem_of(20, 80, 5, brokers=4, capacity=60.0, circles=4)
    clients = clients_of(problem)
    hub = best_hubs(clients, problem.capacity, 0, never)
    inside = replace(problem, brokers=pa.array([f"b{i}" for i in range(5)]))
    load = plain_estimate(inside, hub)[:4]
    assert (load <= 60 * (1 + 1e-9)).all()
    held = np.bincount(hub, clients.impact, 5)[:4]
    assert held.sum() > 1.5 * load.sum()


def two_kinds(cost: list[float], capacity: list[float]) -> ClientProblem:
    """Twenty brokers of each of two kinds."""
    problem = problem_of(8, 30, 3, brokers=40)
    return replace(problem, cost=np.repeat(cost, 20), capacity=np.repeat(capacity, 20))


def test_of_equal_brokers_the_cheaper_are_used() -> None:
    best = best_allocation(two_kinds([3.0, 1.0], [30.0, 30.0]), FULL, 0, never)
    assert best.brokers <= 20
    assert (best.used >= 20).all()


@pytest.mark.parametrize("load", ["estimate", "exact"])
def test_cost_decides_between_few_large_and_many_small_brokers(load: str) -> None:
    params = AllocationParams(lcf=1.0, load=load)  # type: ignore[arg-type]
    dear = two_kinds([100.0, 1.0], [60.0, 30.0])
    cheap = two_kinds([1.0, 1.0], [60.0, 30.0])
    saving, wasting = (best_allocation(problem, params, 0, never) for problem in (dear, cheap))
    require_sound(dear, params, saving)
    assert (saving.used >= 20).all()
    assert (wasting.used < 20).any()
    assert worth(dear, saving)[0] == saving.brokers
    assert worth(dear, saving) < worth(dear, wasting)


def test_whole_brokers_are_exchanged_for_cheaper_ones() -> None:
    """Loads follow their clients when whole brokers are exchanged."""
    problem = replace(problem_of(8, 30, 3, brokers=40), cost=np.linspace(5.0, 1.0, 40))
    best = best_allocation(problem, FULL, 0, never)
    require_sound(problem, FULL, best)
    assert sorted(best.used.tolist()) == list(range(40 - best.brokers, 40))


@pytest.mark.parametrize("load", ["estimate", "exact"])
@pytest.mark.parametrize("most", [0, 3, None])
def test_new_clients_join_and_few_others_move(load: str, most: int | None) -> None:
    params = AllocationParams(lcf=1.0, load=load)  # type: ignore[arg-type]
    problem = problem_of(8, 40, 7, circles=2)
    origin = ranked_allocation(problem, "gli", params, 0).broker.copy()
    origin[[2, 15, 30, 47]] = NONE
    found = best_allocation(problem, params, 0, never, start=origin, most_moves=most)
    require_sound(problem, params, found)
    assert found.moved_from(origin) <= (len(origin) if most is None else most)


def test_more_moves_need_no_more_brokers() -> None:
    problem = problem_of(8, 40, 7, circles=2)
    old = ranked_allocation(problem, "baseline", FULL, 0)
    kept, few, many = (
        best_allocation(problem, FULL, 0, never, start=old.broker, most_moves=most)
        for most in (0, 6, None)
    )
    assert np.array_equal(kept.broker, old.broker)
    assert 0 < few.moved_from(old.broker) <= 6
    assert worth(problem, many) < worth(problem, few) < worth(problem, kept)


def test_brokers_that_shrink_need_moves_and_the_answer_says_how_many() -> None:
    problem = problem_of(8, 40, 7)
    old = ranked_allocation(problem, "gli", FULL, 0)
    smaller = replace(problem, capacity=problem.capacity * 0.8)
    with pytest.raises(InfeasibleError, match="clients must move") as error:
        best_allocation(smaller, FULL, 0, never, start=old.broker, most_moves=1)
    needed = int(error.value.value)
    found = best_allocation(smaller, FULL, 0, never, start=old.broker, most_moves=needed)
    require_sound(smaller, FULL, found)
    assert 1 < found.moved_from(old.broker) <= needed


def with_more(problem: ClientProblem, more: int) -> ClientProblem:
    """More brokers, as large as the first."""
    count = len(problem.brokers) + more
    return replace(
        problem,
        brokers=pa.array([f"b{i}" for i in range(count)]),
        capacity=np.full(count, problem.capacity[0]),
        cost=np.ones(count),
    )


def test_too_few_brokers_and_how_many_would_do() -> None:
    problem = problem_of(8, 30, 4, brokers=3)
    with pytest.raises(InfeasibleError, match="more like 'b0'") as error:
        best_allocation(problem, FULL, 0, never)
    needed = int(error.value.value)
    found = best_allocation(with_more(problem, needed - 3), FULL, 0, never)
    require_sound(with_more(problem, needed - 3), FULL, found)


def test_are_so_many_brokers_enough() -> None:
    problem = problem_of(8, 30, 4)
    best, bound = best_allocation(problem, FULL, 0, never), fewest_brokers(problem, FULL)
    require_fitting(problem, FULL, best.brokers, bound)
    require_enough(best, best.brokers, bound)
    with pytest.raises(InfeasibleError, match=f"{best.brokers} are enough"):
        require_enough(best, best.brokers - 1, bound)
    with pytest.raises(InfeasibleError, match=f"fewer than {bound}"):
        require_fitting(problem, FULL, bound - 1, bound)
    with pytest.raises(InputError, match="0 hold nobody"):
        require_fitting(problem, FULL, 0, bound)


def test_too_big_a_client_is_a_no_with_the_capacity_that_would_do() -> None:
    problem = replace(problem_of(8, 30, 4), capacity=np.full(40, 11.0))
    with pytest.raises(InfeasibleError, match="is too big for every broker") as caught:
        require_fitting(problem, FULL, 40, 1)
    larger = replace(problem, capacity=np.full(40, caught.value.value))
    require_fitting(larger, FULL, 40, 1)
    assert len(best_allocation(larger, FULL, 0, never).lone) == 0


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("capacity", [[np.inf, np.inf, 30.0], [*[30.0] * 6, np.inf]])
def test_a_broker_without_a_limit_takes_all(capacity: list[float]) -> None:
    """Room without end, less room without end, was no number, which Python said on stderr."""
    problem = replace(problem_of(8, 30, 3, brokers=len(capacity)), capacity=np.array(capacity))
    for load in ("exact", "estimate"):
        best = best_allocation(problem, replace(FULL, load=load), 0, never)
        assert best.brokers == 1
        assert np.isinf(problem.capacity[best.used]).all()
