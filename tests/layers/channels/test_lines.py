"""Lines: each row on one channel within a rate, and how they change overnight."""

from __future__ import annotations

import numpy as np
import pytest

from fanplan.core.arrays import Bools
from fanplan.core.errors import InfeasibleError
from fanplan.core.stop import never
from fanplan.data.build import from_pairs
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import analytic_ledger
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.search import kmodes as planner
from fanplan.layers.channels.search.lines import (
    Kept,
    heaviest_first,
    let_go,
    moved,
    plan_lines,
    priced,
    replan_lines,
)
from fanplan.layers.channels.search.model.demand import transpose

ROWS, USERS, LINES = 7, 6, 3


def drawn(seed: int, rows: int = ROWS, users: int = USERS) -> InterestProblem:
    random = np.random.default_rng([41, seed])
    wanted: Bools = random.random((rows, users)) < 0.4
    wanted[:, :2] |= ~wanted.any(axis=1, keepdims=True)
    row, user = np.nonzero(wanted)
    return from_pairs(row, user, random.integers(1, 9, rows), kind="flow")


def received(problem: InterestProblem, line: np.ndarray) -> float:
    """Messages at all who join a line; infinity never."""
    total = 0.0
    for j in set(line.tolist()):
        own = np.flatnonzero(line == j)
        parts = [problem.audience[problem.indptr[i] : problem.indptr[i + 1]] for i in own]
        total += problem.messages[own].sum() * len(np.unique(np.concatenate(parts)))
    return total


def within(problem: InterestProblem, line: np.ndarray, cap: float) -> bool:
    return bool((np.bincount(line, problem.messages) <= cap * (1 + 1e-9)).all())


def divisions(size: int) -> list[tuple[int, ...]]:
    """All ways to divide rows among lines that are alike: each is tried under one naming."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(size):
        found = [(*one, line) for one in found for line in range(min(len({*one}) + 1, LINES))]
    return found


def test_lines_keep_their_rate_and_are_near_the_best_of_all() -> None:
    excess = []
    for seed in range(20):
        problem = drawn(seed)
        cap = 1.3 * float(problem.messages.sum()) / LINES
        best = min(
            received(problem, np.array(line))
            for line in divisions(problem.size)
            if within(problem, np.array(line), cap)
        )
        line = plan_lines(problem, LINES, cap, seed, never)
        assert within(problem, line, cap)
        excess.append(received(problem, line) / best - 1)
    assert min(excess) >= -1e-9
    assert np.mean(excess) < 0.02


def blocks(moved: int) -> InterestProblem:
    """Rows that some users of one of 8 blocks want; the first rows are of another block by now."""
    random = np.random.default_rng(42)
    rate = random.integers(1, 9, 240)
    block = np.arange(240) % 8
    wanted = random.random((240, 5)) < 0.7
    wanted[:, 0] = True
    row, user = np.nonzero(wanted)
    block[:moved] += 1 + np.arange(moved) % 7
    return from_pairs(row, block[row] % 8 * 5 + user, rate, kind="flow")


def test_fewer_moves_cost_more_and_none_are_made_beyond_the_most() -> None:
    cap = 1.5 * float(blocks(0).messages.sum()) / 8
    older = plan_lines(blocks(0), 8, cap, 1, never)
    older[200:210] = -1
    problem, costs = blocks(40), []
    for most in (0, 15, 240):
        line = replan_lines(problem, 8, cap, older, most, never)
        assert (line >= 0).all()
        assert within(problem, line, cap)
        assert int(((line != older) & (older >= 0)).sum()) <= most
        costs.append(received(problem, line))
    assert costs[0] > costs[1] > costs[2]


@pytest.mark.parametrize("most", [0, 6, 1000])
def test_letting_users_go_lowers_the_cost_and_keeps_rates_and_moves(most: int) -> None:
    problem, gained = blocks(40), 0.0
    cap = 1.5 * float(problem.messages.sum()) / 8
    for seed in range(5):
        older = np.random.default_rng([43, seed]).integers(0, 8, problem.size).astype(np.int32)
        price = np.full(problem.size, 0.5)
        stays = Kept(older, 1e6 * price, problem.flows, np.zeros(1))
        state = moved(problem, 8, 2 * cap, older, stays, heaviest_first(problem), never)
        assert (state.channel == older).all()
        kept = Kept(older, price, problem.flows, np.full(1, float(most)))
        before, users = priced(state, kept), len(problem.subscribers)
        rows = transpose(problem.indptr, problem.audience, users)
        let_go(state, rows, 2 * cap, kept, np.random.default_rng(seed), 2000)
        gone = int((state.channel != older).sum())
        assert gone <= most
        assert kept.left[0] == most - gone
        assert within(problem, state.channel, 2 * cap)
        again = moved(
            problem,
            8,
            2 * cap,
            state.channel,
            stays._replace(line=state.channel),
            heaviest_first(problem),
            never,
        )
        np.testing.assert_array_equal(again.sizes, state.sizes)
        np.testing.assert_array_equal(again.needs, state.needs)
        gained += before - priced(state, kept)
        assert priced(state, kept) <= before
    assert (gained > 0) == (most > 0)


def test_kmodes_plans_lines_where_pairs_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "MANY", 100)
    problem = drawn(5, 200, 30)
    cap = 1.3 * float(problem.messages.sum()) / 6
    params = KmodesParams(6, unicast_limit=0.0, multiple=False, max_channel_rate=cap)
    map = planner.kmodes(problem, params, 1, never)
    ledger = analytic_ledger(problem, map)
    assert ledger.missed == 0
    several = problem.audience_sizes[map.unicast.left] >= 2
    assert not several.any()
    assert within(problem, map.assigned.right, np.inf)
    loads = np.bincount(map.assigned.right, problem.messages[map.assigned.left])
    assert (loads <= cap * (1 + 1e-9)).all()
    with pytest.raises(InfeasibleError):
        planner.kmodes(
            problem,
            KmodesParams(6, unicast_limit=0.0, multiple=False, max_channel_rate=cap / 2),
            1,
            never,
        )
