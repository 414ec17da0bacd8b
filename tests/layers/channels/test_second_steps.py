"""The second steps against dense matrices: changes, greedy choices, limits and coverage."""

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
from fanplan.core.ledger import cost, unicast_fraction
from fanplan.core.prices import Weights
from fanplan.core.stop import Stop, never
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import analytic_ledger
from fanplan.layers.channels.map import ChannelMap, map_pairs
from fanplan.layers.channels.published.params import HybridParams, ReverseParams
from fanplan.layers.channels.published.plain import all_by_unicast, random_map
from fanplan.layers.channels.published.second_step.moves import (
    greedy_path,
    heaviest_first,
    item_change,
    lightest_first,
    order_path,
)
from fanplan.layers.channels.published.second_step.moving_pairs import (
    BY_UNICAST,
    COST,
    flow_items,
    pair_items,
    send_by_unicast,
    served_by_map,
    served_map,
    user_items,
)
from fanplan.layers.channels.published.second_step.reverse import (
    ANY,
    all_unicast,
    gather_rows,
    reverse,
)
from fanplan.layers.channels.published.second_step.two_step import (
    MOVES,
    SECOND_STEPS,
    hybrid,
)
from fanplan.layers.channels.published.tock import tock

FLOWS, USERS, CHANNELS = 6, 5, 3
ITEMS = {"flow": flow_items, "user": user_items, "pair": pair_items}
few = settings(unhurried, max_examples=40)
weight = st.floats(0.2, 5.0)
weights = st.builds(Weights, weight, weight, weight)
seeds = st.integers(0, 2**32 - 1)


def bits(rng: np.random.Generator, rows: int, columns: Any, chance: float = 0.5) -> Any:
    return (rng.random((rows, columns)) < chance).astype(np.int64)


def drawn_problem(seed: int, flows: int = FLOWS, users: int = USERS) -> Any:
    """A problem in which everyone may want everything; rates from 0, some audiences equal."""
    rng = np.random.default_rng(seed)
    wanted = bits(rng, flows, users)
    wanted[rng.integers(flows)] = wanted[0]
    wanted[wanted.sum(axis=1) == 0, rng.integers(users)] = 1
    rates = rng.integers(0, 9, flows).astype(float)
    return make_problem([set(np.flatnonzero(w).tolist()) for w in wanted], rates, users)


def drawn_map(problem: InterestProblem, seed: int, channels: int = CHANNELS) -> Any:
    """A valid map: several channels per flow, useless members, some unicast, nobody left out."""
    rng = np.random.default_rng((seed, 1))
    wanted = dense_interest(problem)
    x, y = bits(rng, problem.size, channels), bits(rng, channels, wanted.shape[1])
    t = ((wanted == 1) & (x @ y == 0)).astype(np.int64)
    return ChannelMap(channels, *(map_pairs(*np.nonzero(m)) for m in (x, y, t)))


def dense_interest(problem: InterestProblem) -> Any:
    wanted = np.zeros((problem.size, len(problem.subscribers)), dtype=np.int64)
    wanted[np.repeat(np.arange(problem.size), problem.audience_sizes), problem.audience] = 1
    return wanted


def dense(relation: Any, rows: int, columns: Any) -> Any:
    matrix = np.zeros((rows, columns), dtype=np.int64)
    matrix[relation.left, relation.right] = 1
    return matrix


def assert_serves(problem: InterestProblem, map: ChannelMap, w: Weights) -> Any:
    """XY + T ≥ W, and the ledger's cost is Eq. 1; returns the cost."""
    users = len(problem.subscribers)
    x = dense(map.assigned, problem.size, map.channels)
    y = dense(map.members, map.channels, users)
    t = dense(map.unicast, problem.size, users)
    assert (x @ y + t >= dense_interest(problem)).all()
    rate = problem.messages
    equation_1 = w.w1 * (rate @ (x @ y)).sum() + w.w2 * (rate @ x).sum()
    equation_1 += w.unicast * (rate @ t).sum()
    measured = cost(analytic_ledger(problem, map), w)
    assert math.isclose(measured, equation_1, rel_tol=1e-12, abs_tol=1e-9)
    return measured


def copied(state: Any) -> Any:
    return type(state)(*(v.copy() if isinstance(v, np.ndarray) else v for v in state))


def pairs_of(items: Any, item: int) -> Any:
    return items.pairs[items.starts[item] : items.starts[item + 1]]


def send(state: Any, moving: Any) -> None:
    for p in moving:
        if state.entry[p] != BY_UNICAST:
            send_by_unicast(state, p)


def brute_change(
    problem: InterestProblem, map: ChannelMap, state: Any, moving: Any, w: Weights
) -> Any:
    """The cost after the move, by a new map and the ledger, less the cost before."""
    after = copied(state)
    send(after, moving)
    before = cost(analytic_ledger(problem, served_map(problem, state)), w)
    return cost(analytic_ledger(problem, served_map(problem, after)), w) - before


@few
@given(seeds, weights, st.integers(0, 12))
def test_the_state_keeps_the_cost_of_its_map(seed: int, w: Weights, moves: int) -> None:
    problem = drawn_problem(seed)
    map = drawn_map(problem, seed)
    state = served_by_map(problem, map, w)
    assert assert_serves(problem, served_map(problem, state), w) <= cost(
        analytic_ledger(problem, map), w
    ) * (1 + 1e-12)
    for p in np.random.default_rng(seed).permutation(problem.nnz)[:moves]:
        send(state, [p])
        expected = assert_serves(problem, served_map(problem, state), w)
        assert math.isclose(state.totals[COST], expected, rel_tol=1e-9, abs_tol=1e-9)


@few
@given(seeds, weights, st.sampled_from(sorted(ITEMS)), st.integers(0, 8))
def test_changes_are_those_of_the_moved_map(seed: int, w: Weights, kind: str, moves: int) -> None:
    problem = drawn_problem(seed)
    map = drawn_map(problem, seed)
    state, items = served_by_map(problem, map, w), ITEMS[kind](problem)
    send(state, np.random.default_rng(seed).permutation(problem.nnz)[:moves])
    for item in range(len(items.weight)):
        expected = brute_change(problem, map, state, pairs_of(items, item), w)
        change = item_change(state, items.kind, item)
        assert math.isclose(change, expected, rel_tol=1e-9, abs_tol=1e-8)


@few
@given(seeds, weights, st.sampled_from(sorted(ITEMS)), st.booleans())
def test_greedy_always_takes_the_best(seed: int, w: Weights, kind: str, forced: bool) -> None:
    problem = drawn_problem(seed)
    map = drawn_map(problem, seed)
    state, items = served_by_map(problem, map, w), ITEMS[kind](problem)
    reference = copied(state)
    params = HybridParams(CHANNELS, w, forced=forced)
    steps = list(itertools.chain(*greedy_path(state, items, params, never)))
    for step in steps:
        left = [i for i in range(len(items.weight)) if carried(reference, items, i)]
        best = min(brute_change(problem, map, reference, pairs_of(items, i), w) for i in left)
        before = cost(analytic_ledger(problem, served_map(problem, reference)), w)
        assert math.isclose(step[COST] - before, best, rel_tol=1e-9, abs_tol=1e-8)
        follow(reference, items, left, step)
    if forced:
        assert (state.entry == BY_UNICAST).all()
    else:
        changes = [item_change(state, items.kind, i) for i in range(len(items.weight))]
        assert min(changes) > -1e-8


def carried(state: Any, items: Any, item: int) -> Any:
    return bool((state.entry[pairs_of(items, item)] != BY_UNICAST).any())


def follow(reference: Any, items: Any, left: Any, step: Any) -> None:
    """Make in the reference a move that leads to the same totals."""
    for item in left:
        after = copied(reference)
        send(after, pairs_of(items, item))
        if np.allclose(after.totals, step, rtol=1e-9, atol=1e-8):
            send(reference, pairs_of(items, item))
            return
    pytest.fail("no item leads to these totals")


@few
@given(seeds, st.sampled_from([flow_items, user_items]), st.booleans())
def test_ordered_steps_end_at_the_cheapest_map_on_the_way(
    seed: int, items: Any, heaviest: bool
) -> None:
    problem = drawn_problem(seed)
    map, w = drawn_map(problem, seed), Weights()
    movable = items(problem)
    order = (heaviest_first if heaviest else lightest_first)(movable)
    ordered = movable.weight[order]
    assert (np.diff(ordered) <= 0).all() if heaviest else (np.diff(ordered) >= 0).all()
    state = served_by_map(problem, map, w)
    path = [state.totals[COST]]
    for item in order:
        send(state, pairs_of(movable, item))
        path.append(cost(analytic_ledger(problem, served_map(problem, state)), w))
    made = order_path(served_by_map(problem, map, w), movable, order, 1.0)
    assert np.allclose(made[:, COST], path[1:])
    name = ("heaviest" if heaviest else "lightest") + ("-flow" if items is flow_items else "-user")
    best = MOVES[name](problem, map, HybridParams(CHANNELS, w), never)
    assert math.isclose(assert_serves(problem, best, w), min(path), abs_tol=1e-9)
    forced = MOVES[name](problem, map, HybridParams(CHANNELS, w, forced=True), never)
    assert len(forced.unicast) == problem.nnz


@few
@given(seeds, weights, st.sampled_from(sorted(SECOND_STEPS)), st.floats(0, 1), st.booleans())
def test_every_second_step_serves_all_within_the_limit(
    seed: int, w: Weights, second: Any, limit: float, forced: bool
) -> None:
    problem = drawn_problem(seed)
    params = HybridParams(2, w, unicast_limit=limit, forced=forced)
    map = hybrid(random_map, second)(problem, params, seed, never)
    after = assert_serves(problem, map, w)
    assert unicast_fraction(analytic_ledger(problem, map)) <= limit
    if not forced:
        before = cost(analytic_ledger(problem, random_map(problem, params, seed, never)), w)
        assert after <= before * (1 + 1e-12)
    assert map == hybrid(random_map, second)(problem, params, seed, never)


@few
@given(seeds, st.floats(0.05, 0.95), st.sampled_from(["greedy-flow", "greedy-user"]))
def test_forced_steps_use_up_the_limit(seed: int, limit: float, second: str) -> None:
    problem = drawn_problem(seed)
    params = HybridParams(2, unicast_limit=limit, forced=True)
    map = hybrid(random_map, second)(problem, params, seed, never)
    state = served_by_map(problem, map, params.weights)
    items = ITEMS[second.removeprefix("greedy-")](problem)
    for item in range(len(items.weight)):
        if carried(state, items, item):
            after = copied(state)
            send(after, pairs_of(items, item))
            share = unicast_fraction(analytic_ledger(problem, served_map(problem, after)))
            assert share > limit * (1 - 1e-9)


def test_a_limit_of_nothing_moves_only_what_sends_nothing() -> None:
    problem = make_problem([{0, 1}, {2}, {0, 3}], [3.0, 2.0, 0.0], 4)
    params = HybridParams(1, unicast_limit=0.0, forced=True)
    map = hybrid(random_map, "greedy-flow")(problem, params, 0, never)
    assert set(map.unicast.left.tolist()) == {2}
    assert unicast_fraction(analytic_ledger(problem, map)) == 0.0


def test_what_is_already_unicast_stays() -> None:
    problem = make_problem([{0, 1}, {1, 2}], [1.0, 1.0], 3)
    map = ChannelMap(1, map_pairs([1], [0]), map_pairs([0, 0], [1, 2]), map_pairs([0, 0], [0, 1]))
    after = MOVES["greedy-flow"](problem, map, HybridParams(1), never)
    assert set(map.unicast.left.tolist()) <= set(after.unicast.left.tolist())
    assert_serves(problem, after, Weights())


def test_a_map_that_leaves_someone_out_is_refused() -> None:
    problem = make_problem([{0, 1}], [1.0], 2)
    with pytest.raises(InputError, match="subscriber s1 does not get row 0"):
        MOVES["greedy-flow"](
            problem, ChannelMap(1, map_pairs([0], [0]), map_pairs([0], [0]), map_pairs([], [])),
            HybridParams(1), never,
        )  # fmt: skip


def test_a_row_that_nobody_gets_by_channel_leaves_it() -> None:
    """Subscriber 0 alone wants the heavy flow; when it goes, so does the flow."""
    problem = make_problem([{0}, {1, 2, 3}], [100.0, 1.0], 4)
    map = ChannelMap(1, map_pairs([0, 1], [0, 0]), map_pairs([0] * 4, range(4)), map_pairs([], []))
    after = MOVES["greedy-user"](problem, map, HybridParams(1), never)
    assert after.assigned == map_pairs([1], [0])
    assert after.members == map_pairs([0, 0, 0], [1, 2, 3])
    assert after.unicast == map_pairs([0], [0])


@few
@given(seeds, weights, st.integers(1, 4))
def test_reverse_takes_the_best_flow_each_time(seed: int, w: Weights, channels: int) -> None:
    problem = drawn_problem(seed)
    anywhere = np.full(problem.size, ANY, dtype=np.int32)
    state = all_unicast(problem, ReverseParams(channels, w), anywhere)
    while True:
        place = state.channel.copy()
        best = best_rise(problem, w, channels, place)
        if gather_rows(state, 1.0, 1) == 0:
            break
        change = placed_cost(problem, w, channels, state.channel)
        assert math.isclose(state.totals[COST], change, rel_tol=1e-9, abs_tol=1e-8)
        change -= placed_cost(problem, w, channels, place)
        assert math.isclose(change, best, rel_tol=1e-9, abs_tol=1e-8)
    assert best > -1e-8
    map = reverse(problem, ReverseParams(channels, w), seed, never)
    assert math.isclose(assert_serves(problem, map, w), state.totals[COST], rel_tol=1e-9)


def placed_cost(problem: InterestProblem, w: Weights, channels: int, place: Any) -> Any:
    """Eq. 1 with row i on channel place[i], or by unicast if that is −1."""
    wanted, rate = dense_interest(problem), problem.messages
    total = w.unicast * rate[place < 0] @ wanted[place < 0].sum(axis=1)
    for on in (place == j for j in range(channels)):
        total += rate[on].sum() * (w.w2 + w.w1 * wanted[on].any(axis=0).sum())
    return total


def best_rise(problem: InterestProblem, w: Weights, channels: int, place: Any) -> Any:
    """The least change of cost by moving one row from unicast to a channel, 0 if there is none."""
    before = placed_cost(problem, w, channels, place)
    changes = [0.0]
    for row, j in itertools.product(np.flatnonzero(place < 0), range(channels)):
        tried = place.copy()
        tried[row] = j
        changes.append(placed_cost(problem, w, channels, tried) - before)
    return min(changes)


@few
@given(seeds, st.floats(0, 1))
def test_reverse_goes_on_until_the_limit_is_met(seed: int, limit: float) -> None:
    problem = drawn_problem(seed)
    map = reverse(problem, ReverseParams(2, unicast_limit=limit), seed, lambda cost: True)
    assert_serves(problem, map, Weights())
    assert unicast_fraction(analytic_ledger(problem, map)) <= limit + 1e-12


@few
@given(seeds, weights)
def test_reverse_is_no_dearer_than_unicast(seed: int, w: Weights) -> None:
    problem = drawn_problem(seed)
    params = ReverseParams(2, w)
    all_unicast = cost(analytic_ledger(problem, all_by_unicast(problem, params, 0, never)), w)
    map = reverse(problem, params, seed, never)
    assert cost(analytic_ledger(problem, map), w) <= all_unicast * (1 + 1e-12)


@few
@given(seeds, weights)
def test_reverse_towards_tock_uses_the_channels_of_k_means_alone(seed: int, w: Weights) -> None:
    problem = drawn_problem(seed)
    params = ReverseParams(3, w, towards="tock")
    map = reverse(problem, params, seed, never)
    given = tock(problem, params, seed, never).assigned.right
    assert np.array_equal(map.assigned.right, given[map.assigned.left])
    place = np.full(problem.size, -1)
    place[map.assigned.left] = map.assigned.right
    least = placed_cost(problem, w, 3, place)
    assert math.isclose(assert_serves(problem, map, w), least, rel_tol=1e-9)
    for row in np.flatnonzero(place < 0):
        tried = place.copy()
        tried[row] = given[row]
        assert placed_cost(problem, w, 3, tried) >= least * (1 - 1e-9)


def test_stop_keeps_what_was_moved() -> None:
    problem = drawn_problem(3, flows=60, users=20)
    params = HybridParams(4)
    start = tock(problem, params, 0, never)
    asked = []

    def at_second_question(best_cost: float) -> bool:
        asked.append(best_cost)
        return len(asked) == 2

    map = MOVES["greedy-pair"](problem, start, HybridParams(4, forced=True), at_second_question)
    assert 0 < len(map.unicast) < problem.nnz
    assert_serves(problem, map, Weights())


def test_iterative_solves_after_each_batch() -> None:
    problem = drawn_problem(5, flows=12, users=8)
    solved = []

    def counted(problem: InterestProblem, params: Any, seed: int, stop: Stop) -> Any:
        solved.append(problem.size)
        return tock(problem, params, seed, stop)

    params = HybridParams(2, batch=3, forced=True)
    map = hybrid(counted, "lightest-flow-iterative")(problem, params, 0, never)
    assert solved == [12, 9, 6, 3]
    assert len(map.unicast) == problem.nnz


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("unicast_limit", -0.1), ("unicast_limit", 1.1), ("unicast_limit", math.nan),
        ("iterations", 0), ("batch", 0), ("patience", 0), ("channels", 0),
    ],
)  # fmt: skip
def test_params_are_checked(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=field.replace("_", " ")):
        HybridParams(**{"channels": 2, field: value})


def test_an_unknown_second_step_is_named() -> None:
    with pytest.raises(InputError, match=r"'best' is not known.*greedy-flow"):
        hybrid(random_map, "best")(drawn_problem(0), HybridParams(2), 0, never)
