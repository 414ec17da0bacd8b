"""Problems made in memory: nothing is lost, equal audiences become one row."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from datasets import unhurried
from hypothesis import given
from hypothesis import strategies as st

from fanplan.core.errors import InputError
from fanplan.data.build import from_pairs, from_workload
from fanplan.data.interest import InterestProblem, Rows
from fanplan.workload.generators import load_kind
from fanplan.workload.generators.plain_topics import MarketParams

FLOWS, USERS = 12, 5
some_pairs = st.lists(st.tuples(st.integers(0, FLOWS - 1), st.integers(0, USERS - 1)), max_size=40)


def audiences_of(problem: InterestProblem) -> Any:
    return [
        frozenset(problem.audience[problem.indptr[i] : problem.indptr[i + 1]].tolist())
        for i in range(problem.size)
    ]


def build(wanted: Any, kind: Rows = "class") -> Any:
    flow, who = zip(*wanted, strict=True) if wanted else ((), ())
    messages = np.arange(1, FLOWS + 1)
    names = [f"s{i}" for i in range(USERS)]
    return from_pairs(np.array(flow, int), np.array(who, int), messages, names=names, kind=kind)


@unhurried
@given(some_pairs)
def test_classes_are_the_different_audiences_with_all_their_traffic(wanted: Any) -> None:
    audience: dict[Any, set[Any]] = defaultdict(set)
    total: dict[Any, float] = defaultdict(float)
    count: dict[Any, int] = defaultdict(int)
    for flow, user in wanted:
        audience[flow].add(user)
    for flow in sorted(audience):
        key = frozenset(audience[flow])
        total[key] += flow + 1
        count[key] += 1
    problem = build(wanted)
    assert audiences_of(problem) == list(total)
    assert problem.messages.tolist() == list(total.values())
    assert problem.flows.tolist() == list(count.values())
    assert all(np.all(np.diff(sorted(a)) > 0) for a in audiences_of(problem))


@unhurried
@given(some_pairs)
def test_flows_keep_their_order_and_know_their_class(wanted: Any) -> None:
    flows, classes = build(wanted, "flow"), build(wanted)
    assert flows.messages.tolist() == [flow + 1 for flow in sorted({flow for flow, _ in wanted})]
    assert audiences_of(flows) == [audiences_of(classes)[c] for c in flows.classes]


@pytest.mark.parametrize(
    ("rows", "who", "messages", "match"),
    [
        ([0, 3], [0, 0], [1.0], "rows"),
        ([0], [-1], [1.0], "subscribers"),
        ([0], [0, 1], [1.0], "subscribers"),
        ([0], [0], [float("nan")], "messages"),
        ([0], [0], [-1.0], "messages"),
    ],
)
def test_bad_pairs_are_named(rows: Any, who: Any, messages: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        from_pairs(rows, who, messages)


def test_generated_market_has_the_rates_and_interest_of_its_tables() -> None:
    generated = load_kind("market").generate(MarketParams(flows=60, users=20), 3)
    problem = from_workload(generated, seconds=10.0)
    table = generated.tables["subscriptions"]
    wanted = set(zip(table["topic"].to_pylist(), table["subscriber"].to_pylist(), strict=True))
    rates = dict(zip(generated.law.topics.to_pylist(), generated.law.rates, strict=True))
    demand = sum(10.0 * rates[topic] for topic, _ in wanted)
    assert np.isclose(np.dot(problem.messages, problem.audience_sizes), demand)
    assert problem.flow_count == len({topic for topic, _ in wanted})
    assert problem.bytes.sum() == pytest.approx(200 * problem.messages.sum())


def test_generated_filters_need_the_pipeline() -> None:
    kind = load_kind("content")
    with pytest.raises(InputError, match="ingest"):
        from_workload(kind.generate(kind.params(), 1))
