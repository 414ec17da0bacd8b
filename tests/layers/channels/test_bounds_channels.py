"""Bounds never exceed the optimum, and are worth having on structured workloads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from datasets import Flow, World, make_problem, plan_dataset, save_plan, write_dataset
from forging import forge
from hypothesis import given, settings
from hypothesis import strategies as st

from fanplan.core.ledger import cost
from fanplan.core.prices import Weights
from fanplan.core.stop import never
from fanplan.data.build import from_workload
from fanplan.data.interest import InterestProblem, load_interest
from fanplan.layers.channels.bounds import best_bounds, dual_bound, lower_bound, spectral_bound
from fanplan.layers.channels.ledger import analytic_ledger, perfect
from fanplan.layers.channels.map import Bound
from fanplan.layers.channels.published.exact import ExactParams, exact
from fanplan.verbs.check import check_plan
from fanplan.workload.generators import load_kind

USERS = 6
weight = st.floats(0.2, 4.0)
weights = st.one_of(st.just(Weights()), st.builds(Weights, weight, weight, weight))
instances = st.lists(
    st.tuples(st.sets(st.integers(0, USERS - 1), min_size=1), st.integers(0, 20)),
    min_size=1,
    max_size=8,
)


def optimum(problem: InterestProblem, w: Weights, channels: int, multiple: bool) -> float:
    map = exact(problem, ExactParams(channels, w, multiple=multiple), 0, never)
    return cost(analytic_ledger(problem, map), w)


@settings(max_examples=150, deadline=None)
@given(instances, weights, st.integers(1, 2))
def test_no_bound_exceeds_the_optimum(
    rows: list[tuple[set[int], int]], w: Weights, channels: int
) -> None:
    problem = make_problem([a for a, _ in rows], [float(m) for _, m in rows], USERS)
    best = optimum(problem, w, channels, False) * (1 + 1e-12)
    assert spectral_bound(problem, w, channels) <= best
    assert dual_bound(problem, w, channels).cost <= best
    bound, single = best_bounds(problem, w, channels)
    assert single.cost <= best
    assert bound.cost <= optimum(problem, w, channels, True) * (1 + 1e-12)


def test_both_bounds_lie_above_the_simple_one_on_random_interest() -> None:
    random = np.random.default_rng(1)
    wanted = random.random((120, 20)) < 0.4
    problem = make_problem([set(np.flatnonzero(row)) for row in wanted], [1.0] * 120, 20)
    simple = lower_bound(problem, Weights(), 5)
    assert spectral_bound(problem, Weights(), 5) > simple
    assert dual_bound(problem, Weights(), 5).cost > simple


@pytest.mark.parametrize("name", ["market", "websphere"])
def test_best_bound_is_named_and_above_perfect(name: str) -> None:
    kind = load_kind(name)
    sizes = {"market": {"flows": 500, "users": 40}, "websphere": {"topics": 500, "processes": 40}}
    problem = from_workload(kind.generate(kind.params(**sizes[name]), 1))
    bound, single = best_bounds(problem, Weights(), 10)
    assert single.name in ("dual", "spectral")
    assert single.cost > bound.cost > perfect(problem, Weights())
    assert bound.name == "distinct audiences"


def test_bounds_hold_when_light_rows_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fanplan.layers.channels.bounds.MOST_ROWS", 4)
    monkeypatch.setattr("fanplan.layers.channels.bounds.LARGEST", 4)
    random = np.random.default_rng(5)
    for _ in range(20):
        wanted = random.random((9, USERS)) < 0.5
        wanted[:, 0] |= ~wanted.any(axis=1)
        sets = [set(np.flatnonzero(row)) for row in wanted]
        problem = make_problem(sets, random.integers(1, 9, 9), USERS)
        best = optimum(problem, Weights(), 2, False)
        least = float(problem.messages @ (problem.audience_sizes + 1))
        assert least <= dual_bound(problem, Weights(), 2).cost <= best
        assert least <= spectral_bound(problem, Weights(), 2) <= best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("argument", ["distinct audiences", "spectral", "dual"])
def test_the_check_proves_what_each_argument_gives(
    tmp_path: Path, seed: int, argument: str
) -> None:
    """Whatever the argument, the bound that planners state passes, and a higher one does not."""
    random = np.random.default_rng(seed)
    wanted = random.random((40, 12 + 20 * (seed % 2))) < 0.4
    flows = tuple(
        Flow(frozenset(np.flatnonzero(row).tolist()), 1.0 + i) for i, row in enumerate(wanted)
    )
    dataset = write_dataset(tmp_path / "dataset", World(flows, wanted.shape[1]))
    problem, made = load_interest(dataset), plan_dataset(dataset, "lloyd", 3)
    bounds = {
        "distinct audiences": lambda: made.bound,
        "spectral": lambda: Bound(spectral_bound(problem, made.weights, 3), "spectral"),
        "dual": lambda: dual_bound(problem, made.weights, 3),
    }
    bound = bounds[argument]()
    plan = save_plan(replace(made, single_bound=bound), dataset, tmp_path / "plan").folder
    assert check_plan(plan, dataset).ok
    higher = bound.cost * (1 + 1e-6)
    forge(plan, "channels", "single_bound", to=higher)
    percent = 100 * (higher - made.perfect) / made.perfect
    forge(plan, "channels", "single_bound_percent", to=percent)
    (found,) = check_plan(plan, dataset).violations
    assert found.startswith("plan.json: single_bound (1): stated")
