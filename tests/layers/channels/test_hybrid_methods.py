"""The first steps of Bickson et al. (2010): coverage, their own aims, the paper's orderings."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from datasets import make_problem, unhurried
from hypothesis import given, settings
from hypothesis import strategies as st

from fanplan.core.errors import InputError
from fanplan.core.ledger import cost, excess_percent
from fanplan.core.prices import Weights
from fanplan.core.stop import never
from fanplan.data.build import from_pairs, from_workload
from fanplan.data.interest import InterestProblem, Rows
from fanplan.layers.channels.ledger import analytic_ledger, perfect
from fanplan.layers.channels.map import ChannelMap, count_overlaps
from fanplan.layers.channels.methods import find_method
from fanplan.layers.channels.published.interest_vectors import (
    batch_pass,
    best_members,
    bmd,
    drawn_centroids,
    drawn_rows,
    move_nearest,
    online_pass,
    two_phase_means,
)
from fanplan.layers.channels.published.interior_point import (
    barrier,
    interior_point,
    newton_direction,
    solve_positive,
)
from fanplan.layers.channels.published.merge import (
    class_groups,
    find_all_nearest,
    flow_merge,
    follow,
    groups_cost,
    merge_cheapest,
    user_groups,
    user_merge,
)
from fanplan.layers.channels.published.params import BmdParams, FirstStepParams, HybridParams
from fanplan.layers.channels.published.plain import random_map
from fanplan.layers.channels.published.second_step.two_step import hybrid
from fanplan.layers.channels.published.tock import (
    assignment_cost,
    nothing_assigned,
    reassign,
    tock,
)
from fanplan.workload.generators.plain_topics import MarketParams, WebsphereParams
from fanplan.workload.generators.plain_topics import generate_market as market
from fanplan.workload.generators.plain_topics import generate_websphere as websphere

FIRST_STEPS = {
    step.__name__: step
    for step in (
        tock,
        two_phase_means,
        bmd,
        interior_point,
        flow_merge,
        user_merge,
    )
}
ONE_CHANNEL_PER_ROW = sorted(FIRST_STEPS.keys() - {"interior_point", "user_merge"})
few = settings(unhurried, max_examples=30)
seeds = st.integers(0, 2**32 - 1)
weight = st.floats(0.2, 5.0)
weights = st.builds(Weights, weight, weight, weight)
every_step = pytest.mark.parametrize("name", sorted(FIRST_STEPS))


def drawn_problem(seed: int, flows: int = 9, users: int = 6, kind: Rows = "flow") -> Any:
    """Everyone wants every flow with chance 1/2; some audiences are equal, some rates 0."""
    rng = np.random.default_rng(seed)
    wanted = rng.random((flows, users)) < 0.5
    wanted[rng.integers(flows, size=2)] = wanted[0]
    wanted[:, rng.integers(users)] |= ~wanted.any(axis=1)
    rates = rng.integers(0, 9, flows).astype(float)
    names = [f"s{i}" for i in range(users)]
    row, user = np.nonzero(wanted)
    return from_pairs(row, user, rates, names=names, kind=kind)


def dense(left: Any, right: Any, rows: int, columns: Any) -> Any:
    matrix = np.zeros((rows, columns), dtype=np.int64)
    matrix[left, right] = 1
    return matrix


def interest(problem: InterestProblem) -> Any:
    row = np.repeat(np.arange(problem.size), problem.audience_sizes)
    return dense(row, problem.audience, problem.size, len(problem.subscribers))


def assert_serves(problem: InterestProblem, map: ChannelMap, w: Weights) -> Any:
    """XY ≥ W with no unicast, and the ledger's cost is C; returns it."""
    x = dense(map.assigned.left, map.assigned.right, problem.size, map.channels)
    y = dense(map.members.left, map.members.right, map.channels, len(problem.subscribers))
    assert len(map.unicast) == 0
    assert (x @ y >= interest(problem)).all()
    c = w.w1 * (problem.messages @ (x @ y)).sum() + w.w2 * (problem.messages @ x).sum()
    measured = cost(analytic_ledger(problem, map), w)
    assert math.isclose(measured, c, rel_tol=1e-12, abs_tol=1e-9)
    return measured


def excess(problem: InterestProblem, map: ChannelMap) -> float:
    w = Weights()
    return excess_percent(cost(analytic_ledger(problem, map), w), perfect(problem, w))


@every_step
@few
@given(seeds, weights, st.integers(1, 9), st.sampled_from(["flow", "class"]))
def test_everyone_is_served_and_the_seed_decides(
    name: str, seed: int, w: Weights, channels: int, kind: Rows
) -> None:
    problem = drawn_problem(seed, kind=kind)
    params = FirstStepParams(channels, w)
    map = FIRST_STEPS[name](problem, params, seed, never)
    assert map.channels == channels
    assert_serves(problem, map, w)
    assert map == FIRST_STEPS[name](problem, params, seed, never)
    if name in ONE_CHANNEL_PER_ROW:
        assert map.assigned.left.tolist() == list(range(problem.size))


@every_step
def test_a_stop_at_once_still_serves_everyone(name: str) -> None:
    problem = drawn_problem(1, flows=40, users=10)
    map = FIRST_STEPS[name](problem, FirstStepParams(5), 0, lambda cost: True)
    assert_serves(problem, map, Weights())


@every_step
def test_more_channels_than_flows_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="10 channels are more than the 9 flows"):
        FIRST_STEPS[name](drawn_problem(0), FirstStepParams(10), 0, never)


@every_step
def test_no_flows_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="1 channels are more than the 0 flows"):
        FIRST_STEPS[name](make_problem([], [], 3), FirstStepParams(1), 0, never)


@every_step
def test_fewer_than_one_channel_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="0 channels cannot carry a flow"):
        FIRST_STEPS[name](drawn_problem(0), FirstStepParams(0), 0, never)


@pytest.mark.parametrize("name", ["tock", "flow_merge"])
@few
@given(seeds)
def test_a_channel_for_each_audience_is_perfect(name: str, seed: int) -> None:
    problem = drawn_problem(seed)
    params = FirstStepParams(problem.class_count)
    map = FIRST_STEPS[name](problem, params, seed, never)
    assert math.isclose(excess(problem, map), 0.0, abs_tol=1e-9)


@few
@given(seeds, weights)
def test_passes_of_tock_never_raise_the_cost(seed: int, w: Weights) -> None:
    problem = drawn_problem(seed, flows=20, users=8)
    wanted = problem.indptr, problem.audience, problem.messages
    state = nothing_assigned(*wanted, len(problem.subscribers), 4)
    order = np.random.default_rng(seed).permutation(problem.size)
    reassign(state, order)
    for _ in range(4):
        before = assignment_cost(state, w)
        reassign(state, order)
        assert assignment_cost(state, w) <= before * (1 + 1e-12)
    wanted = interest(problem)
    on = np.eye(4, dtype=np.int64)[state.channel]
    assert (state.needs == (wanted.T @ on)).all()
    assert (state.joined == (state.needs > 0)).all()
    assert (state.sizes == (state.needs > 0).sum(axis=0)).all()
    assert np.allclose(state.loads, problem.messages @ on)


def test_tock_ends_where_no_single_move_pays() -> None:
    problem = drawn_problem(7, flows=30, users=8)
    map = tock(problem, FirstStepParams(4, iterations=100), 0, never)
    wanted, place = interest(problem), map.assigned.right.copy()

    def total(place: Any) -> Any:
        return sum(
            problem.messages[place == j].sum() * (1 + wanted[place == j].any(axis=0).sum())
            for j in range(4)
        )

    for row, j in itertools.product(range(problem.size), range(4)):
        moved = place.copy()
        moved[row] = j
        assert total(moved) >= total(place) - 1e-9


def test_overlaps_count_beyond_a_byte() -> None:
    joined = np.ones((700, 3), dtype=np.uint8)
    joined[::2, 1] = 0
    members = np.empty(3, dtype=np.int32)
    count_overlaps(np.arange(700, dtype=np.int32), joined, np.empty(3, dtype=np.uint8), members)
    assert members.tolist() == [700, 350, 700]


def squared_error(problem: InterestProblem, channel: Any, channels: int) -> Any:
    """The aim of K-means: distances of all flows to the mean of their cluster."""
    wanted = np.repeat(interest(problem), problem.flows, axis=0)
    channel = np.repeat(channel, problem.flows)
    clusters = [wanted[channel == j] for j in range(channels)]
    return sum(((c - c.mean(axis=0)) ** 2).sum() for c in clusters if len(c))


@few
@given(seeds, st.sampled_from(["flow", "class"]))
def test_online_moves_lower_the_squared_error(seed: int, kind: Rows) -> None:
    problem = drawn_problem(seed, flows=20, users=8, kind=kind)
    state = drawn_centroids(problem, 4, seed)
    batch_pass(state)
    error = squared_error(problem, state.channel, 4)
    while online_pass(state):
        after = squared_error(problem, state.channel, 4)
        assert after <= error + 1e-9
        error = after
    for row, j in itertools.product(range(problem.size), range(4)):
        moved = state.channel.copy()
        moved[row] = j
        assert squared_error(problem, moved, 4) >= error - 1e-9


@few
@given(seeds)
def test_rounds_of_bmd_approach_the_matrix(seed: int) -> None:
    problem = drawn_problem(seed, flows=20, users=8)
    channel = np.random.default_rng(seed).integers(4, size=problem.size, dtype=np.int32)
    distance = np.inf
    for _ in range(5):
        joined = best_members(problem, channel, 4)
        by_members = np.abs(joined.T[channel] - interest(problem)).sum()
        move_nearest(problem.indptr, problem.audience, joined, channel)
        by_rows = np.abs(joined.T[channel].astype(int) - interest(problem)).sum()
        assert by_rows <= by_members <= distance
        distance = by_rows


def assert_merges_cheapest(state: Any, group_cost: Any) -> None:
    """Each merge costs what the best pair of all costs; ``group_cost`` costs a set of groups."""
    find_all_nearest(state)
    for left in range(len(state.into), 1, -1):
        groups = members_of(state)
        best = min(
            group_cost(a + b) - group_cost(a) - group_cost(b)
            for a, b in itertools.combinations(groups, 2)
        )
        before = sum(map(group_cost, groups))
        assert merge_cheapest(state, left, left - 1, 1) == left - 1
        after = sum(map(group_cost, members_of(state)))
        assert math.isclose(after - before, best, rel_tol=1e-9, abs_tol=1e-9)
        assert math.isclose(groups_cost(state), after, rel_tol=1e-9)


def members_of(state: Any) -> Any:
    roots = follow(state.into)
    return [np.flatnonzero(roots == root).tolist() for root in np.unique(roots)]


@few
@given(seeds, weights)
def test_flow_merge_takes_the_best_pair(seed: int, w: Weights) -> None:
    problem = drawn_problem(seed, kind="class")
    wanted, rows = interest(problem), np.arange(problem.size)

    def group_cost(rows: int) -> Any:
        return problem.messages[rows].sum() * (w.w2 + w.w1 * wanted[rows].any(axis=0).sum())

    groups = class_groups(problem, FirstStepParams(1, w), rows, rows)
    assert_merges_cheapest(groups, group_cost)


@few
@given(seeds, weights)
def test_user_merge_takes_the_best_pair(seed: int, w: Weights) -> None:
    problem = drawn_problem(seed)
    wanted = interest(problem)
    wanting, who = np.unique(problem.audience, return_inverse=True)

    def group_cost(users: np.ndarray) -> Any:
        rows = wanted[:, wanting[users]].any(axis=1)
        return problem.messages[rows].sum() * (w.w2 + w.w1 * len(users))

    groups = user_groups(problem, FirstStepParams(1, w), who, len(wanting))
    assert_merges_cheapest(groups, group_cost)


@few
@given(seeds, weights, st.integers(1, 6))
def test_user_merge_goes_on_while_the_cost_falls(seed: int, w: Weights, channels: int) -> None:
    problem = drawn_problem(seed)
    map = user_merge(problem, FirstStepParams(channels, w), 0, never)
    assert (np.bincount(map.members.right) <= 1).all()
    wanted, y = interest(problem), dense(map.members.left, map.members.right, channels, 6)

    def group_cost(users: np.ndarray) -> Any:
        rows = wanted[:, users].any(axis=1)
        return problem.messages[rows].sum() * (w.w2 + w.w1 * users.sum())

    for a, b in itertools.combinations(y[y.any(axis=1)] == 1, 2):
        assert group_cost(a | b) >= (group_cost(a) + group_cost(b)) * (1 - 1e-12)


@few
@given(seeds, st.integers(1, 6))
def test_the_newton_direction_solves_the_gradient(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    point, linear = rng.uniform(0.6, 0.9, size), rng.uniform(0, 3, size)
    needed = rng.uniform(0.9, 1.0, (3, size)) * 2 / (0.6 * size)
    step = newton_direction(point, linear, needed)
    shift, eye = 1e-5, np.eye(size) * 1e-5
    gradient = [
        (barrier(point + e, linear, needed) - barrier(point - e, linear, needed)) / 2 / shift
        for e in eye
    ]
    assert np.dot(gradient, step) < 0
    halfway = barrier(point + 1e-3 * step, linear, needed)
    assert halfway < barrier(point, linear, needed)
    matrix = rng.normal(size=(size, size))
    matrix = matrix @ matrix.T + np.eye(size)
    right = rng.normal(size=size)
    assert np.allclose(solve_positive(matrix.copy(), right.copy()), np.linalg.solve(matrix, right))


def test_interior_point_refuses_what_it_cannot_solve() -> None:
    problem = drawn_problem(0, flows=300, users=100)
    with pytest.raises(InputError, match=r"40000 variables are more than the 20000.*tock"):
        interior_point(problem, FirstStepParams(100), 0, never)


@pytest.fixture(scope="module")
def human() -> Any:
    """Market of 1,500 symbols and 150 users."""
    return from_workload(market(MarketParams(flows=1500, users=150), seed=0), "flow")


@pytest.fixture(scope="module")
def mechanical() -> Any:
    """WebSphere-like cell of 2,000 topics and 79 processes."""
    return from_workload(websphere(WebsphereParams(topics=2000), seed=0), "flow")


@pytest.mark.parametrize("workload", ["human", "mechanical"])
def test_kmeans_on_the_true_cost_is_the_best_of_five(
    workload: str, request: pytest.FixtureRequest
) -> None:
    """Table 1 and Figure 4; the interior point cannot solve these sizes."""
    problem, params = request.getfixturevalue(workload), FirstStepParams(20)
    others = [
        excess(problem, step(problem, params, 0, never))
        for step in (random_map, two_phase_means, bmd)
    ]
    assert excess(problem, tock(problem, params, 0, never)) < min(others)


def test_interior_point_is_not_competitive() -> None:
    """Section 4.1, on the paper's small system: 200 flows, 100 users, 10 channels."""
    problem = from_workload(market(MarketParams(flows=200, users=100), seed=0), "flow")
    params = FirstStepParams(10)
    rounded = excess(problem, interior_point(problem, params, 0, never))
    assert excess(problem, tock(problem, params, 0, never)) < rounded
    assert rounded < excess(problem, random_map(problem, params, 0, never))


def test_bmd_moves_only_if_it_starts_from_rows(human: Any) -> None:
    """Section 4.1: nobody wants half of a random channel, so Y is empty and nothing moves."""
    random = excess(human, random_map(human, FirstStepParams(20), 0, never))
    still = excess(human, bmd(human, BmdParams(20, first="memberships"), 0, never))
    assert math.isclose(still, random)
    assert excess(human, bmd(human, BmdParams(20), 0, never)) < 0.8 * random


def test_bmd_starts_with_the_audiences_of_different_rows() -> None:
    problem = drawn_problem(3, flows=20, users=8)
    drawn = drawn_rows(problem, 4, np.random.default_rng(1))
    rows = np.random.default_rng(1).permutation(problem.size)[:4]
    assert np.array_equal(drawn.T, interest(problem)[rows])


@pytest.mark.parametrize(
    ("method", "options"), [("bmd", {"first": "users"}), ("reverse", {"towards": "lloyd"})]
)
def test_unknown_readings_are_refused_with_the_known_ones(method: str, options: Any) -> None:
    with pytest.raises(InputError, match=r"rows or memberships|any or tock"):
        find_method(method).params(2, **options)


def second(problem: InterestProblem, name: str, **options: Any) -> float:
    return excess(problem, hybrid(tock, name)(problem, HybridParams(20, **options), 0, never))


@pytest.mark.parametrize("workload", ["human", "mechanical"])
def test_greedy_flow_is_the_best_one_shot_step_and_hybrid_beats_both_pure_schemes(
    workload: str, request: pytest.FixtureRequest
) -> None:
    """Figures 5, 8 and 9."""
    problem = request.getfixturevalue(workload)
    greedy = second(problem, "greedy-flow")
    orders = ("lightest-flow", "heaviest-flow", "lightest-user", "heaviest-user")
    assert greedy < min(second(problem, name) for name in orders)
    assert greedy < second(problem, "greedy-flow", unicast_limit=0.0)
    assert greedy < second(problem, "greedy-flow", forced=True)
    assert second(problem, "greedy-flow-iterative", patience=2) < greedy


def test_greedy_user_leads_on_human_and_greedy_flow_on_mechanical_interest(
    human: Any, mechanical: Any
) -> None:
    """Figures 5 and 8, at the same unicast share."""
    share = {"unicast_limit": 0.8, "forced": True}
    assert second(human, "greedy-user", **share) < second(human, "greedy-flow", **share)
    assert second(mechanical, "greedy-flow", **share) < second(mechanical, "greedy-user", **share)


def test_heaviest_user_raises_the_cost_on_mechanical_interest(mechanical: Any) -> None:
    """Figure 8."""
    before = excess(mechanical, tock(mechanical, FirstStepParams(20), 0, never))
    for limit in (0.3, 0.5, 0.8):
        assert second(mechanical, "heaviest-user", unicast_limit=limit, forced=True) > before
