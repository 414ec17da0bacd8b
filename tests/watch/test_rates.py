"""Rates are folded in whole numbers: how a stream is cut into batches does not matter."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fanplan.watching.rates import (
    SCALE,
    Flows,
    Rates,
    flows_from_table,
    flows_together,
    folded,
    kept_of,
    no_flows,
)


def sent(rows: list[tuple[str, int, float, int, int]]) -> Flows:
    """Rows of topic, signature, point, window and messages."""
    topic, sign, point, window, messages = zip(*rows, strict=True)
    signs = np.column_stack([np.array(sign, np.uint64)] * 2)
    numbers = (np.array(each, np.int64) for each in (window, messages, messages))
    return Flows(pa.array(topic), signs, np.array(point, float)[:, None], *numbers)


def same(a: Flows, b: Flows) -> bool:
    return bool(a.table().equals(b.table()))


def rows_drawn(seed: int) -> list[tuple[str, int, float, int, int]]:
    draw = np.random.default_rng(seed)
    numbers = zip(*(draw.integers(0, n, 200).tolist() for n in (3, 2, 9, 4, 7)), strict=True)
    return [(f"t{a}", b, float(c), d, e + 1) for a, b, c, d, e in numbers]


@pytest.mark.parametrize("cuts", [(10, 20), (1, 199), (100, 100), (0, 57)])
def test_batches_may_end_anywhere(cuts: tuple[int, int]) -> None:
    rows = rows_drawn(0)
    parts = [part for part in np.split(np.arange(200), cuts) if len(part)]
    at_once = flows_together(no_flows(1), sent(rows))
    in_parts = no_flows(1)
    for part in parts[::-1]:
        in_parts = flows_together(in_parts, sent([rows[i] for i in part]))
    assert same(at_once, in_parts)


def test_the_least_point_stands_for_a_flow_and_amounts_are_added() -> None:
    found = flows_together(sent([("t", 1, 5.0, 0, 2), ("t", 1, 3.0, 0, 4), ("t", 2, 9.0, 0, 1)]))
    assert found.x[:, 0].tolist() == [3.0, 9.0]
    assert found.messages.tolist() == [6, 1]


def test_what_is_sent_steadily_has_its_own_rate_from_the_first_window_on() -> None:
    rates, kept = Rates(no_flows(1)), kept_of(5)
    for window in range(30):
        rates = folded(rates, sent([("t", 1, 1.0, window, 10)]), window, kept)
        assert rates.messages == pytest.approx([10], rel=1e-2)


def test_traffic_counts_half_after_the_half_life_and_windows_without_any_count() -> None:
    kept = kept_of(4)
    steady = Rates(no_flows(1))
    for window in range(100):
        steady = folded(steady, sent([("t", 1, 1.0, window, 1000)]), window, kept)
    other = sent([("u", 1, 1.0, 104, 1)])
    later = folded(steady, other, 104, kept)
    share = later.flows.messages[0] / steady.flows.messages[0]
    assert later.flows.topic.to_pylist() == ["t", "u"]
    assert share == pytest.approx(0.5 * 0.5**0.25, rel=1e-2)
    assert later.windows == pytest.approx(steady.windows, rel=1e-2)


def test_what_is_not_sent_any_more_is_forgotten() -> None:
    rates, kept = Rates(no_flows(1)), kept_of(1)
    rates = folded(rates, sent([("old", 1, 1.0, 0, 3)]), 0, kept)
    rates = folded(rates, sent([("new", 1, 1.0, 9, 3)]), 100, kept)
    assert rates.flows.topic.to_pylist() == ["new"]
    assert rates.flows.messages.tolist() == [3 * SCALE]


def test_flows_are_stored_as_they_are() -> None:
    flows = flows_together(sent(rows_drawn(1)))
    assert same(flows_from_table(flows.table()), flows)
    assert same(flows_from_table(no_flows(2).table()), no_flows(2))
