"""Notification probability and weight (sections 3.4 and 3.5 of the paper)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from datasets import make_problem, unhurried
from hypothesis import given
from hypothesis import strategies as st

from fanplan.layers.channels.published.genetic.plan import heaviest_positions
from fanplan.layers.channels.published.genetic.problem import Lists, SubscriptionProblem
from fanplan.layers.channels.published.genetic.weight import (
    row_probability,
    row_weight,
    subject_weight,
    subscription_probability,
    subscription_weight,
)


def problem(hits: Any = (80, 20, 10), root_hits: float = 100.0) -> SubscriptionProblem:
    """One topic on [0, 40): subscriptions to [0, 10), [0, 20) and [15, 20)."""
    interest = make_problem([{0, 1}, {1}, {1, 2}], [70.0, 10.0, 20.0], 3)
    return SubscriptionProblem(
        topic=np.zeros(3, dtype=np.int32),
        boxes=Lists(np.arange(4), np.arange(3, dtype=np.int32)),
        lo=np.array([[0.0], [0.0], [15.0]]),
        hi=np.array([[10.0], [20.0], [20.0]]),
        subscribers=Lists(np.arange(4), np.arange(3, dtype=np.int32)),
        rows=Lists(np.array([0, 1, 4, 5]), np.array([0, 0, 1, 2, 2], dtype=np.int32)),
        hits=np.array(hits),
        interest=replace(interest, seconds=10.0),
        row_topic=np.zeros(3, dtype=np.int64),
        row_volume=np.array([10.0, 5.0, 5.0]),
        topic_messages=np.array([400.0]),
        topic_volume=np.array([40.0]),
        root_hits=np.array([root_hits]),
    )


def test_probability_by_volume_and_by_hits() -> None:
    by_volume = subscription_probability(problem(), "volume", 50)
    assert by_volume.tolist() == [10 / 40, 20 / 40, 5 / 40]
    by_hits = subscription_probability(problem((70, 100, 20)), "hits", 50)
    assert by_hits.tolist() == [0.7, 1.0, 0.2]
    assert row_probability(problem(), "hits", 50).tolist() == [0.7, 0.1, 0.2]
    # With fewer hits than the sample, the share of the root's volume, which is 20.
    few = subscription_probability(problem((7, 10, 2), 10.0), "hits", 50)
    assert few.tolist() == [10 / 20, 1.0, 5 / 20]
    assert row_probability(problem((7, 10, 2), 10.0), "hits", 50).tolist() == [0.5, 0.25, 0.25]


def test_weight_is_subject_weight_times_probability() -> None:
    assert subject_weight(problem(), "volume").tolist() == [40.0]
    assert subject_weight(problem(), "hits").tolist() == [10.0]
    assert subscription_weight(problem(), "volume", 50).tolist() == [10.0, 20.0, 5.0]
    assert row_weight(problem(), "hits", 50).tolist() == [7.0, 1.0, 2.0]


def test_weight_in_bytes_is_that_of_messages_times_their_mean_size() -> None:
    sized = problem()
    sized = replace(sized, interest=replace(sized.interest, bytes=np.array([700.0, 200.0, 100.0])))
    # 1,000 bytes in 100 messages that somebody wants.
    assert subject_weight(sized, "volume", "bytes").tolist() == [400.0]
    assert subject_weight(sized, "hits", "bytes").tolist() == [100.0]
    assert subscription_weight(sized, "volume", 50, "bytes").tolist() == [100.0, 200.0, 50.0]
    assert row_weight(sized, "hits", 50, "bytes").tolist() == [70.0, 10.0, 20.0]
    silent = replace(sized.interest, messages=np.zeros(3), bytes=np.zeros(3))
    assert subject_weight(replace(sized, interest=silent), "volume", "bytes").tolist() == [0.0]


@unhurried
@given(st.lists(st.integers(0, 5).map(float), min_size=1), st.floats(0.01, 1.0))
def test_the_heaviest_part_outweighs_the_rest(weights: list[float], share: float) -> None:
    chosen = heaviest_positions(np.array(weights), share)
    rest = np.delete(np.array(weights), chosen)
    assert len(chosen) >= share * len(weights) - 1e-6 > len(chosen) - 1 - 1e-6
    assert (np.diff(chosen) > 0).all()
    assert len(rest) == 0 or rest.max() <= np.array(weights)[chosen].min()
