"""Tiny problems: the default command is optimal, whatever the limits that it can look at."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from datasets import make_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from fanplan.core.errors import InfeasibleError
from fanplan.core.ledger import cost
from fanplan.core.prices import Weights
from fanplan.core.stop import never
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import map_cost
from fanplan.layers.channels.lone import counted_fraction, kept_by, tidied
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.methods import channels_by_method, find_method
from fanplan.layers.channels.published.exact import ExactParams, exact
from fanplan.layers.channels.search import tiny
from fanplan.layers.channels.search.kmodes import kmodes
from fanplan.layers.channels.search.task import make_task

USERS, CHANNELS = 3, 2
weight = st.floats(0.2, 4.0)
weights = st.one_of(st.just(Weights()), st.builds(Weights, weight, weight, weight))
rows = st.lists(
    st.tuples(st.sets(st.integers(0, USERS - 1), min_size=1), st.integers(0, 9)),
    min_size=1,
    max_size=4,
).filter(lambda drawn: any(messages for _, messages in drawn))
limits = st.fixed_dictionaries(
    {
        "unicast_limit": st.sampled_from([None, 0.0, 0.3]),
        "max_channels_per_subscriber": st.one_of(
            st.none(), st.lists(st.integers(0, 2), min_size=USERS, max_size=USERS)
        ),
        "max_channel_rate": st.sampled_from([None, 6.0]),
        "pinned": st.sampled_from([(), (0,)]),
        "multiple": st.booleans(),
        "lone": st.booleans(),
    }
)


def random_tiny(seed: int) -> InterestProblem:
    """9 flows with whole rates, 7 subscribers."""
    random = np.random.default_rng([22, seed])
    wanted = random.random((9, 7)) < random.uniform(0.2, 0.7)
    wanted[np.arange(9), random.integers(0, 7, 9)] = True
    return make_problem([set(np.flatnonzero(row)) for row in wanted], random.integers(1, 20, 9), 7)


def brute_force(problem: InterestProblem, params: KmodesParams) -> float:
    """The least cost over every X and Y that keep all limits; infinite if none does."""
    wanted = np.zeros((problem.size, USERS), dtype=int)
    wanted[np.repeat(np.arange(problem.size), problem.audience_sizes), problem.audience] = 1
    subsets = np.array(list(itertools.product((0, 1), repeat=CHANNELS)))
    if not params.multiple:
        subsets = subsets[subsets.sum(axis=1) <= 1]
    choices = np.array(list(itertools.product(range(len(subsets)), repeat=problem.size)))
    on = subsets[choices]
    costs = [
        plan_costs(problem, params, wanted, on, np.array(bits).reshape(CHANNELS, USERS)).min()
        for bits in itertools.product((0, 1), repeat=CHANNELS * USERS)
    ]
    return float(min(costs))


def plan_costs(
    problem: InterestProblem, params: KmodesParams, wanted: Any, on: Any, members: Any
) -> Any:
    """What plans with these members cost, plans × rows × channels; infinite outside the limits."""
    w, rate, several = params.weights, problem.messages, wanted.sum(axis=1) >= 2 - params.lone
    missing = ((wanted == 1) & (on @ members == 0)).sum(axis=2)
    total = (w.w1 * (on @ members).sum(axis=2) + w.w2 * on.sum(axis=2) + w.unicast * missing) @ rate
    barred = missing[:, list(params.pinned)].any(axis=1)
    if params.max_channels_per_subscriber is not None:
        barred |= bool((members.sum(axis=0) > params.max_channels_per_subscriber).any())
    if params.max_channel_rate is not None:
        barred |= ((on * rate[:, None]).sum(axis=1) > params.max_channel_rate).any(axis=1)
    if params.unicast_limit is not None:
        counted = (missing * several) @ rate
        barred |= counted > params.unicast_limit * ((missing + on.sum(axis=2)) @ rate) + 1e-9
    if not params.lone:
        asked = on[:, list(params.pinned)].any(axis=1)
        barred |= (on.any(axis=1) & ~asked & (members.sum(axis=1) < 2)).any(axis=1)
    return np.where(barred, math.inf, total)


@settings(max_examples=150, deadline=None)
@given(rows, weights, limits)
def test_nothing_within_the_limits_is_cheaper(drawn: Any, w: Weights, chosen: Any) -> None:
    """The optimum where members decide; never below it, and within the limits, elsewhere."""
    problem = make_problem([a for a, _ in drawn], [float(m) for _, m in drawn], USERS)
    params = KmodesParams(CHANNELS, w, **chosen)
    best = brute_force(problem, params)
    try:
        found = map_cost(problem, kmodes(problem, params, 0, never), w)
    except InfeasibleError:
        found = math.inf
    assert found >= best * (1 - 1e-9)
    # Where unicast is dear, somebody who wants nothing could make a channel of a lone subscriber:
    # cheaper by the prices, and nothing that anybody would set up.
    company = w.w3 > 1 and not params.lone
    alone = (params.pinned and params.multicast_only) or company
    together = params.max_channel_rate is not None or params.unicast_limit == 0.3 or alone
    if not together:
        assert found == pytest.approx(best, rel=1e-9) or found == best


@pytest.mark.parametrize("part", range(4))
def test_the_default_command_is_optimal_on_random_tiny_instances(part: int) -> None:
    """1,000 instances are in benchmarks/channels.py; these are the first of them."""
    for seed in range(part * 10, part * 10 + 10):
        problem = random_tiny(seed)
        best = map_cost(problem, exact(problem, ExactParams(3), 0, never), Weights())
        made = channels_by_method(problem, find_method("kmodes"), KmodesParams(3), seed)
        assert cost(made.ledger, Weights()) == pytest.approx(best)


def test_limits_on_all_rows_together_hold_where_the_optimum_breaks_them() -> None:
    problem = random_tiny(1)
    free = kmodes(problem, KmodesParams(3), 0, never)
    share = counted_fraction(problem, free) / 2
    params = KmodesParams(3, unicast_limit=share)
    found = kmodes(problem, params, 0, never)
    assert share > 0
    assert counted_fraction(problem, found) <= share
    assert map_cost(problem, found, Weights()) > map_cost(problem, free, Weights())


def test_larger_problems_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, params = random_tiny(3), KmodesParams(3)
    optimum = kmodes(problem, params, 0, never)
    monkeypatch.setattr(tiny, "MOST_STEPS", 1e6)
    assert tiny.look_at_all(make_task(problem, params)) is None
    found = tidied(problem, kmodes(problem, params, 0, never), kept_by(params))
    assert map_cost(problem, found, Weights()) >= map_cost(problem, optimum, Weights()) - 1e-9
