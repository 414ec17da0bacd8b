"""Costs against the papers' matrices, and what must hold for every valid plan."""

from __future__ import annotations

import itertools
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import make_problem, unhurried
from hypothesis import given
from hypothesis import strategies as st

from fanplan.core.errors import InputError
from fanplan.core.ledger import (
    Ledger,
    channelization_cost,
    cost,
    excess_percent,
    unicast_fraction,
)
from fanplan.core.prices import Weights
from fanplan.layers.channels.bounds import lower_bound
from fanplan.layers.channels.ledger import analytic_ledger, perfect
from fanplan.layers.channels.map import ChannelMap, map_pairs

FLOWS, USERS, CHANNELS = 5, 4, 3
weight = st.floats(0.1, 8.0)
weights = st.builds(Weights, weight, weight, weight)
rates = st.lists(st.integers(0, 9).map(float), min_size=FLOWS, max_size=FLOWS)


def matrix(rows: int, columns: int) -> Any:
    bits = st.lists(st.booleans(), min_size=rows * columns, max_size=rows * columns)
    return bits.map(lambda values: np.array(values, dtype=np.int64).reshape(rows, columns))


def everything_is_wanted(wanted: Any) -> bool:
    """As in every interest problem: a flow that nobody wants is not planned."""
    return bool(wanted.any(axis=1).all())


interest = matrix(FLOWS, USERS)
decisions = st.tuples(matrix(FLOWS, CHANNELS), matrix(CHANNELS, USERS), matrix(FLOWS, USERS))


def problem_of(wanted: Any, messages: Any) -> Any:
    audiences = [set(map(int, np.flatnonzero(row))) for row in wanted]
    return make_problem(audiences, messages, USERS)


def map_of(x: Any, y: Any, t: Any) -> ChannelMap:
    return ChannelMap(len(y), *(map_pairs(*np.nonzero(m)) for m in (x, y, t)))


def equation_1(x: Any, y: Any, t: Any, rate: Any, w: Weights) -> float:
    """Eq. 1 of Bickson et al. (2010), term by term."""
    received = sum(
        x[i, j] * y[j, h] * rate[i]
        for i, j, h in itertools.product(range(len(x)), range(len(y)), range(y.shape[1]))
    )
    sent = sum(x[i, j] * rate[i] for i, j in np.ndindex(x.shape))
    unicast = sum(t[i, h] * rate[i] for i, h in np.ndindex(t.shape))
    return float(w.w1 * received + w.w2 * sent + w.w3 * (w.w1 + w.w2) * unicast)


def completed(wanted: Any, x: Any, y: Any, t: Any) -> Any:
    """The same decisions with unicast added for whoever is not served."""
    return x, y, np.where((wanted == 1) & (x @ y == 0), 1, t)


@unhurried
@given(interest, decisions, rates, weights)
def test_costs_are_equation_1(wanted: Any, decided: Any, messages: Any, w: Weights) -> None:
    x, y, t = decided
    ledger = analytic_ledger(problem_of(wanted, messages), map_of(x, y, t))
    assert math.isclose(cost(ledger, w), equation_1(x, y, t, messages, w), abs_tol=1e-9)
    without = equation_1(x, y, np.zeros_like(t), messages, w)
    assert math.isclose(channelization_cost(ledger, w), without, abs_tol=1e-9)


@unhurried
@given(interest, decisions, rates)
def test_ledger_is_the_dense_count(wanted: Any, decided: Any, messages: Any) -> None:
    x, y, t = decided
    rate = np.array(messages)
    copies = x @ y + t
    reached = (copies > 0) & (wanted == 1)
    expected = Ledger(
        sent_multicast=rate @ x.sum(axis=1),
        sent_unicast=rate @ t.sum(axis=1),
        received_wanted=rate @ reached.sum(axis=1),
        received_unwanted=rate @ (copies.sum(axis=1) - reached.sum(axis=1)),
        missed=rate @ ((wanted == 1) & (copies == 0)).sum(axis=1),
        sent_bytes=10 * rate @ (x.sum(axis=1) + t.sum(axis=1)),
        received_bytes=10 * rate @ copies.sum(axis=1),
    )
    assert analytic_ledger(problem_of(wanted, messages), map_of(x, y, t)) == expected


@unhurried
@given(interest.filter(everything_is_wanted), decisions, rates, weights)
def test_no_valid_plan_undercuts_the_bound(
    wanted: Any, decided: Any, messages: Any, w: Weights
) -> None:
    x, y, t = completed(wanted, *decided)
    problem = problem_of(wanted, messages)
    plan_cost = cost(analytic_ledger(problem, map_of(x, y, t)), w)
    used = int((x.any(axis=0)).sum())
    assert lower_bound(problem, w, used) <= plan_cost * (1 + 1e-12)
    if w.w3 >= 1:
        assert perfect(problem, w) <= plan_cost * (1 + 1e-12)


def least_cost(wanted: Any, messages: Any, w: Weights, channels: int) -> float:
    """The best plan of all: every membership, then the best choice for each flow."""
    users = wanted.shape[1]
    best = math.inf
    for members in itertools.product(range(2**users), repeat=channels):
        y = np.array([[m >> h & 1 for h in range(users)] for m in members]).reshape(channels, users)
        flow_cost = 0.0
        for row, rate in zip(wanted, messages, strict=True):
            flow_cost += rate * min(
                w.w1 * (np.array(x) @ y).sum()
                + w.w2 * sum(x)
                + w.unicast * ((row == 1) & (np.array(x) @ y == 0)).sum()
                for x in itertools.product((0, 1), repeat=channels)
            )
        best = min(best, flow_cost)
    return best


@unhurried
@given(matrix(3, 3).filter(everything_is_wanted), rates, weights, st.integers(0, 2))
def test_bound_against_the_best_of_all_plans(
    wanted: Any, messages: Any, w: Weights, channels: int
) -> None:
    problem = problem_of(wanted, messages[:3])
    bound, best = lower_bound(problem, w, channels), least_cost(wanted, messages[:3], w, channels)
    assert bound <= best * (1 + 1e-12)
    if channels == 0 or (w.w3 >= 1 and problem.class_count <= channels):
        assert math.isclose(bound, best, abs_tol=1e-9)


def test_bound_lies_above_perfect_multicast_when_audiences_outnumber_channels() -> None:
    problem = make_problem([{0, 1}, {1, 2}, {0, 2}], [5.0, 3.0, 2.0], 3)
    w = Weights()
    assert perfect(problem, w) == 30.0
    assert [lower_bound(problem, w, k) for k in (1, 2, 3)] == [35.0, 32.0, 30.0]
    assert lower_bound(problem, w, 0) == 40.0


@unhurried
@given(st.sets(st.integers(0, 3), min_size=1), st.integers(0, 9))
def test_unicast_flow_exceeds_perfect_by_its_other_receivers(audience: Any, rate: int) -> None:
    problem = make_problem([audience], [float(rate)], 4)
    t = ChannelMap(
        0, map_pairs([], []), map_pairs([], []), map_pairs([0] * len(audience), sorted(audience))
    )
    excess = cost(analytic_ledger(problem, t), Weights()) - perfect(problem, Weights())
    assert excess == rate * (len(audience) - 1)


@unhurried
@given(interest, matrix(CHANNELS, USERS), st.data())
def test_excess_of_one_channel_per_flow_is_hamming_distance(
    wanted: Any, y: Any, data: st.DataObject
) -> None:
    rate = data.draw(rates)
    channel = data.draw(st.lists(st.integers(0, CHANNELS - 1), min_size=FLOWS, max_size=FLOWS))
    x = np.eye(CHANNELS, dtype=np.int64)[channel]
    t = ((wanted == 1) & (x @ y == 0)).astype(np.int64)
    problem = problem_of(wanted, rate)
    excess = cost(analytic_ledger(problem, map_of(x, y, t)), Weights())
    excess -= perfect(problem, Weights())
    assert excess == np.array(rate) @ np.abs(wanted - y[channel]).sum(axis=1)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, math.nan])
def test_weights_must_be_positive_and_finite(wrong: Any) -> None:
    with pytest.raises(InputError, match="w2"):
        Weights(1.0, wrong, 1.0)


def test_shares_of_nothing_are_zero() -> None:
    assert excess_percent(0.0, 0.0) == 0.0
    assert unicast_fraction(Ledger()) == 0.0
    assert unicast_fraction(Ledger(sent_multicast=1.0, sent_unicast=3.0)) == 0.75
    assert excess_percent(15.0, 10.0) == 50.0


def test_documentation_has_every_entry() -> None:
    text = (Path(__file__).parents[3] / "docs" / "ledger.md").read_text(encoding="utf-8")
    rows = [
        f"| `{f.name}` | {f.metadata['unit']} | {f.metadata['meaning']} |" for f in fields(Ledger)
    ]
    assert "\n".join(["| entry | unit | meaning |", "| --- | --- | --- |", *rows, ""]) in text
