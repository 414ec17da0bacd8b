"""The exact planner against brute force over all decisions of Eq. 1."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from datasets import make_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from fanplan.core.errors import InputError
from fanplan.core.ledger import cost
from fanplan.core.prices import Weights
from fanplan.core.stop import never
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import analytic_ledger
from fanplan.layers.channels.published.exact import ExactParams, exact

USERS = 3
weight = st.floats(0.2, 4.0)
audiences = st.lists(st.sets(st.integers(0, USERS - 1), min_size=1), min_size=1, max_size=4)


def brute_force(
    problem: InterestProblem, w: Weights, channels: int, multicast_only: bool, multiple: bool
) -> float:
    """The least cost over every X and Y; T is then whatever is missing."""
    wanted = np.zeros((problem.size, USERS), dtype=int)
    wanted[np.repeat(np.arange(problem.size), problem.audience_sizes), problem.audience] = 1
    subsets = [np.array(x) for x in itertools.product((0, 1), repeat=channels)]
    if not multiple:
        subsets = [x for x in subsets if x.sum() <= 1]
    best = math.inf
    for bits in itertools.product((0, 1), repeat=channels * USERS):
        y = np.array(bits).reshape(channels, USERS)
        total = 0.0
        for row in range(problem.size):
            options = []
            for x in subsets:
                missing = ((wanted[row] == 1) & (x @ y == 0)).sum()
                if not (multicast_only and missing):
                    options.append(w.w1 * (x @ y).sum() + w.w2 * x.sum() + w.unicast * missing)
            total += problem.messages[row] * min(options, default=math.inf)
        best = min(best, total)
    return best


@settings(max_examples=40, deadline=None)
@given(
    audiences, st.builds(Weights, weight, weight, weight), st.booleans(), st.booleans(), st.data()
)
def test_nothing_is_cheaper(
    sets: Any, w: Weights, multicast_only: bool, multiple: bool, data: st.DataObject
) -> None:
    messages = data.draw(st.lists(st.integers(1, 9), min_size=len(sets), max_size=len(sets)))
    problem = make_problem(sets, messages, USERS)
    params = ExactParams(2, w, multicast_only=multicast_only, multiple=multiple)
    map = exact(problem, params, 0, never)
    ledger = analytic_ledger(problem, map)
    assert ledger.missed == 0
    assert not multicast_only or len(map.unicast) == 0
    assert multiple or map.assigned.counts(problem.size).max(initial=0) <= 1
    expected = brute_force(problem, w, 2, multicast_only, multiple)
    assert math.isclose(cost(ledger, w), expected, rel_tol=1e-9)


def test_equal_subscribers_count_as_one() -> None:
    sets = [set(range(10)), set(range(10, 20)), set(range(20))]
    problem = make_problem(sets, [3.0, 2.0, 1.0], 20)
    map = exact(problem, ExactParams(2), 0, never)
    assert cost(analytic_ledger(problem, map), Weights()) == 3 * 11 + 2 * 11 + 1 * 22


def test_large_instances_are_refused_with_a_remedy() -> None:
    sets = [set(np.flatnonzero(row)) for row in np.eye(30, dtype=int) + np.eye(30, k=1, dtype=int)]
    problem = make_problem(sets, [1.0] * 30, 30)
    with pytest.raises(InputError, match="kmodes"):
        exact(problem, ExactParams(3), 0, never)
