"""Allocation: orders by hand, loads against plain counting, limits that hold, and the bound."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from fanplan.core.errors import InfeasibleError, InputError
from fanplan.core.stop import never
from fanplan.layers.overlay.allocation.allocation import (
    Allocation,
    AllocationParams,
    Load,
    Ranking,
    fillable,
    placing_of,
    ranked_allocation,
    ranked_clients,
)
from fanplan.layers.overlay.allocation.best import best_allocation
from fanplan.layers.overlay.allocation.bound import fewest_brokers
from fanplan.layers.overlay.allocation.loads import clients_of
from fanplan.layers.overlay.allocation.phases import Deployed, deployed, stable
from fanplan.layers.overlay.check.fewest import fewest_brokers_proved
from fanplan.layers.overlay.published.similar import overlap_tree
from fanplan.network.brokers import ClientProblem, Routes

RANKINGS: tuple[Ranking, ...] = ("gli", "gi", "gig", "baseline")


def problem_of(
    publishers: int,
    subscribers: int,
    seed: int,
    brokers: int = 40,
    capacity: float = 30.0,
    circles: int = 1,
) -> ClientProblem:
    """Two routes per publisher, each half of its messages, to random subscribers of its circle.

    So interest is 0, ½ or 1, and the estimate of a subscriber's load is exact.
    """
    random = np.random.default_rng(seed)
    rates = random.integers(1, 6, publishers).astype(np.float64)
    wants = random.random((2 * publishers, subscribers)) < 0.35
    wants &= np.arange(2 * publishers)[:, None] // 2 % circles == np.arange(subscribers) % circles
    source = np.repeat(np.arange(publishers), 2).astype(np.int32)
    starts = np.concatenate(([0], np.cumsum(wants.sum(axis=1)))).astype(np.int64)
    messages = np.repeat(rates, 2) * 5.0
    routes = Routes(source, starts, np.nonzero(wants)[1].astype(np.int32), messages, messages)
    interest = (wants[::2].astype(float) + wants[1::2]) / 2
    common = wants.T.astype(float) @ wants
    np.fill_diagonal(common, 0)
    return ClientProblem(
        pa.array([f"p{i}" for i in range(publishers)]),
        pa.array([f"s{i}" for i in range(subscribers)]),
        rates,
        scipy.sparse.csr_array(interest),
        scipy.sparse.csr_array(common),
        routes,
        pa.array([f"b{i}" for i in range(brokers)]),
        np.full(brokers, capacity),
        np.ones(brokers),
        10.0,
        "test",
    )


def plain_estimate(problem: ClientProblem, broker: np.ndarray) -> np.ndarray:
    """Eq. 6.2 as it is printed."""
    sent = problem.interest.toarray() * problem.rates[:, None]
    home, there = np.split(broker, [len(problem.rates)])
    load = np.zeros(len(problem.brokers))
    for b in range(len(load)):
        load[b] = problem.rates[home == b].sum() + sent[:, there == b].sum()
        load[b] -= sent[np.ix_(home == b, there == b)].sum()
    return load


def plain_exact(problem: ClientProblem, broker: np.ndarray) -> np.ndarray:
    """Every message once at each broker with its publisher or one of its subscribers."""
    home, there = np.split(broker, [len(problem.rates)])
    load = np.zeros(len(problem.brokers))
    routes = problem.routes
    for route in range(len(routes)):
        at = {int(home[routes.source[route]]), *there[routes.destinations(route)].tolist()}
        load[list(at)] += routes.messages[route] / problem.seconds
    return load


def by_rule(allocation: Allocation, params: AllocationParams) -> np.ndarray:
    return allocation.exact if params.load == "exact" else allocation.estimate


def require_sound(problem: ClientProblem, params: AllocationParams, found: Allocation) -> None:
    """Loads are what plain counting says, and only named clients exceed their brokers."""
    assert found.estimate == pytest.approx(plain_estimate(problem, found.broker))
    assert found.exact == pytest.approx(plain_exact(problem, found.broker))
    assert sorted(found.used.tolist()) == np.unique(found.broker).tolist()
    over = np.flatnonzero(by_rule(found, params) > params.room(problem) * (1 + 1e-9))
    assert sorted(found.broker[found.lone].tolist()) == over.tolist()
    clients = np.bincount(found.broker, minlength=len(problem.brokers))
    assert (clients[over] == 1).all()


cases = st.tuples(st.integers(1, 10), st.integers(1, 30), st.integers(0, 10**6))


@settings(max_examples=15, deadline=None)
@given(cases, st.sampled_from(["estimate", "exact"]), st.sampled_from([0.4, 0.75, 1.0]))
def test_loads_are_exact_and_limits_hold(
    case: tuple[int, int, int], load: Load, lcf: float
) -> None:
    problem = problem_of(*case)
    params = AllocationParams(lcf=lcf, load=load)
    made = [ranked_allocation(problem, ranking, params, 1) for ranking in RANKINGS]
    best = best_allocation(problem, params, 1, never)
    for found in (*made, best):
        require_sound(problem, params, found)
        assert found.brokers >= fewest_brokers(problem, params)
    if all(len(found.lone) == 0 for found in made):
        assert best.brokers <= min(found.brokers for found in made[1:3])


def fewest_by_trying(problem: ClientProblem, params: AllocationParams) -> int:
    """The fewest brokers of all allocations, where clients too big stand alone."""
    room = params.room(problem)
    count = plain_exact if params.load == "exact" else plain_estimate
    clients = len(problem.publishers) + len(problem.subscribers)
    fewest = clients
    for broker in product(range(len(problem.brokers)), repeat=clients):
        where = np.array(broker)
        if len(np.unique(where)) >= fewest:
            continue
        over = count(problem, where) > room * (1 + 1e-9)
        if (np.bincount(where, minlength=len(room))[over] == 1).all():
            fewest = len(np.unique(where))
    return fewest


@pytest.mark.parametrize("load", ["estimate", "exact"])
@pytest.mark.parametrize("seed", range(6))
def test_bound_is_below_the_optimum(seed: int, load: Load) -> None:
    problem = problem_of(2, 3, seed, brokers=4, capacity=[4.0, 6.0, 9.0][seed % 3])
    params = AllocationParams(lcf=1.0, load=load)
    assert 1 <= fewest_brokers(problem, params) <= fewest_by_trying(problem, params)


def test_bound_counts_subscribers_that_cannot_share_a_broker() -> None:
    wants = np.eye(3)
    problem = replace(
        problem_of(3, 3, 0),
        rates=np.full(3, 20.0),
        interest=scipy.sparse.csr_array(wants),
        routes=Routes(
            np.arange(3, dtype=np.int32),
            np.arange(4),
            np.arange(3, dtype=np.int32),
            np.full(3, 200.0),
            np.full(3, 200.0),
        ),
    )
    for load in ("estimate", "exact"):
        assert fewest_brokers(problem, AllocationParams(lcf=1.0, load=load)) == 3


def test_bound_knows_that_a_publisher_beside_it_can_make_a_client_fit() -> None:
    """A subscriber with overlapping regions wants 12 of a rate of 6; together they cost 6."""
    problem = replace(
        problem_of(1, 1, 0),
        rates=np.array([6.0]),
        interest=scipy.sparse.csr_array(np.array([[2.0]])),
        capacity=np.full(40, 10.0),
    )
    params = AllocationParams(lcf=1.0)
    assert fewest_brokers(problem, params) == 1
    assert best_allocation(problem, params, 0, never).brokers == 1


def by_hand() -> ClientProblem:
    """Rates 4 and 1; s0 wants ¾ of p1, s1 half of p0 and half of p1, s2 a quarter of p0."""
    interest = np.array([[0.0, 0.5, 0.25], [0.75, 0.5, 0.0]])
    problem = problem_of(2, 3, 0)
    return replace(problem, rates=np.array([4.0, 1.0]), interest=scipy.sparse.csr_array(interest))


@pytest.mark.parametrize(
    ("ranking", "orders"),
    [
        # Impacts: p0 4 (or what its routes carry), s1 2.5, s2 1, p1, s0 0.75.
        # p1–s0 ¾, then p0–s1 ½ and p1–s1 ½ as they are drawn, then p0–s2
        ("gi", {(1, 2, 0, 3, 4), (1, 2, 3, 0, 4)}),
        ("gig", {(1, 2, 3, 0, 4)}),  # the group of p1 (¾): s0, s1; then that of p0 (½): s2
    ],
)
def test_orders_by_hand(ranking: Ranking, orders: set[tuple[int, ...]]) -> None:
    problem = by_hand()
    clients = clients_of(problem)
    found = {tuple(ranked_clients(problem, clients, ranking, seed).tolist()) for seed in range(20)}
    assert found == orders


@pytest.mark.parametrize("ranking", ["gi", "gig"])
def test_equal_interests_are_drawn_and_greater_ones_go_first(ranking: Ranking) -> None:
    """All publishers want-all: their order is drawn; p0 of less interest is last."""
    problem = problem_of(6, 8, 2)
    whole = np.ones((6, 8))
    whole[0] = 0.5
    problem = replace(problem, interest=scipy.sparse.csr_array(whole))
    clients = clients_of(problem)
    orders = [ranked_clients(problem, clients, ranking, seed).tolist() for seed in range(20)]
    publishers = [[client for client in order if client < 6] for order in orders]
    assert all(order[-1] == 0 for order in publishers)
    assert len({order[0] for order in publishers}) == 5
    assert orders[3] == ranked_clients(problem, clients, ranking, 3).tolist()


def test_parts_that_hear_only_themselves_stay_together() -> None:
    """By Eq. 6.2 such a part costs its publishers' rates: two brokers, where rankings need many."""
    problem = problem_of(24, 120, 7, brokers=60, capacity=60.0, circles=4)
    for load in ("estimate", "exact"):
        params = AllocationParams(lcf=0.75, load=load)
        found = best_allocation(problem, params, 0, never)
        require_sound(problem, params, found)
        assert found.brokers == fewest_brokers(problem, params)
    theirs = ranked_allocation(problem, "gig", AllocationParams(lcf=0.75), 0).brokers
    assert best_allocation(problem, AllocationParams(lcf=0.75), 0, never).brokers < theirs / 2


def test_greatest_load_impact_first() -> None:
    problem = by_hand()
    nothing = np.empty(0)
    none = np.empty(0, dtype=np.int32)
    quiet = replace(
        problem, routes=Routes(none, np.zeros(1, dtype=np.int64), none, nothing, nothing)
    )
    clients = clients_of(quiet)
    assert clients.impact.tolist() == [4.0, 1.0, 0.75, 2.5, 1.0]
    assert ranked_clients(quiet, clients, "gli", 0).tolist() == [0, 3, 1, 4, 2]


def test_client_bigger_than_every_broker_is_alone_and_named() -> None:
    problem = problem_of(4, 6, 3, capacity=30.0)
    problem = replace(problem, rates=np.array([100.0, 1.0, 1.0, 1.0]))
    params = AllocationParams(lcf=1.0)
    for ranking in RANKINGS:
        found = ranked_allocation(problem, ranking, params, 0)
        assert 0 in found.lone
        assert (found.broker == found.broker[0]).sum() == 1


def test_largest_brokers_come_first_and_too_few_are_an_answer() -> None:
    problem = problem_of(6, 12, 1, brokers=12)
    problem = replace(problem, capacity=np.arange(12.0) * 5 + 20)
    found = ranked_allocation(problem, "gli", AllocationParams(lcf=1.0), 0)
    assert found.used.tolist() == list(range(11, 11 - found.brokers, -1))
    few = replace(problem, brokers=problem.brokers[:1], capacity=np.array([8.0]), cost=np.ones(1))
    with pytest.raises(InfeasibleError, match="1 brokers leave"):
        ranked_allocation(few, "gli", AllocationParams(), 0)
    with pytest.raises(InfeasibleError, match="1 brokers leave"):
        best_allocation(few, AllocationParams(), 0, never)


def test_broker_without_capacity_is_named() -> None:
    problem = replace(problem_of(2, 2, 0, brokers=2), capacity=np.array([5.0, 0.0]))
    with pytest.raises(InputError, match="'b1' has no capacity"):
        ranked_allocation(problem, "gi", AllocationParams(), 0)


def test_stable_phases_leave_no_broker_overloaded() -> None:
    problem = problem_of(12, 40, 1, brokers=120, capacity=25.0, circles=3)
    params = AllocationParams(lcf=1.0, load="exact")
    once = deployed(problem, ranked_allocation(problem, "gig", params, 0), overlap_tree)
    rounds = []

    def again(now: AllocationParams) -> Deployed:
        rounds.append(now)
        return deployed(problem, ranked_allocation(problem, "gig", now, 0), overlap_tree)

    found = stable(problem, again, params)
    assert len(once.overloaded) > 0
    assert len(found.overloaded) == 0
    assert len(rounds) > 1
    assert (found.ledger.processed / 10.0 <= found.overlay.capacity * (1 + 1e-9)).all()


def test_brokers_inherit_similarity_and_routes_from_clients() -> None:
    problem = problem_of(5, 9, 2)
    made = ranked_allocation(problem, "gi", AllocationParams(), 0)
    overlay = deployed(problem, made, overlap_tree).overlay
    names = overlay.brokers.to_pylist()
    home = [names.index(problem.brokers[int(b)].as_py()) for b in made.broker]
    common = problem.common.toarray()
    expected = np.zeros((len(names), len(names)))
    for s, t in product(range(9), repeat=2):
        expected[home[5 + s], home[5 + t]] += common[s, t]
    np.fill_diagonal(expected, 0)
    assert overlay.similarity.overlap.toarray() == pytest.approx(expected)
    for route in range(len(problem.routes)):
        wanted = {home[5 + s] for s in problem.routes.destinations(route).tolist()}
        assert overlay.routes.destinations(route).tolist() == sorted(wanted)


@pytest.mark.parametrize("load", ["estimate", "exact"])
@pytest.mark.parametrize("capacity", [2.0, 9.0, 20.0, 30.0])
def test_the_check_proves_the_same_bound(capacity: float, load: Load) -> None:
    """Also where interest is more than all of a publisher, and where some clients fit nowhere."""
    params = AllocationParams(lcf=0.8, load=load)
    found = set()
    for seed in range(12):
        problem = problem_of(20, 60, seed, capacity=capacity, circles=1 + seed % 3)
        if seed % 2:
            problem = replace(problem, interest=problem.interest * 1.7)
        proved = fewest_brokers_proved(problem, load == "exact", params.room(problem))
        assert proved == fewest_brokers(problem, params)
        found.add(proved)
    assert len(found) > 1


@pytest.mark.parametrize(("capacity", "filled"), [(11.0, 11.0), (11.4, 11.0), (11.9, 11.5)])
def test_room_is_what_whole_messages_can_fill(capacity: float, filled: float) -> None:
    """Five messages of a rate of 1 in ten seconds: loads are multiples of 0.5."""
    problem, params = problem_of(8, 30, 4, capacity=capacity), AllocationParams(1.0, "exact")
    room = fillable(problem, placing_of(problem, params)).room
    assert room == pytest.approx(np.full(40, filled))
    assert (room <= capacity).all()
    # By the estimate, or with parts of messages, any load is possible.
    estimated, longer = AllocationParams(1.0), replace(problem, seconds=problem.seconds * np.pi)
    assert (fillable(problem, placing_of(problem, estimated)).room == capacity).all()
    assert (fillable(longer, placing_of(longer, params)).room == capacity).all()
