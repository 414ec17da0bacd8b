"""Covering relations, volumes and notification probability (sections 3.2 to 3.5 of the paper)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from datasets import make_problem, unhurried
from hypothesis import given
from hypothesis import strategies as st

from fanplan.layers.channels.published.genetic.plan import heaviest_positions
from fanplan.layers.channels.published.genetic.problem import UNCOUNTED, Lists, SubscriptionProblem
from fanplan.layers.channels.published.genetic.weight import (
    CountedSubscription,
    boxes_cover,
    condition_covers,
    covers_notification,
    disjoint,
    estimate_hits,
    known_hits,
    measures,
    row_probability,
    row_weight,
    subject_weight,
    subscription_probability,
    subscription_weight,
    volume,
)

SIDE = 5
POINTS = [np.array(p, dtype=float) for p in product(range(SIDE), repeat=2)]

ends = st.tuples(st.integers(0, SIDE), st.integers(0, SIDE)).map(sorted)
box = st.tuples(ends, ends)


def matrices(boxes: Any) -> tuple[np.ndarray, np.ndarray]:
    made = np.array(boxes, dtype=float).reshape(-1, 2, 2)
    return made[:, :, 0], made[:, :, 1]


some_boxes = st.lists(box, min_size=1, max_size=4).map(matrices)


def points_in(boxes: Any) -> set[int]:
    """Unit cells whose corner a union of boxes holds: with whole ends, the union itself."""
    return {i for i, point in enumerate(POINTS) if covers_notification(*boxes, point)}


def one(*sides: tuple[float, float], hits: int = 0) -> CountedSubscription:
    return CountedSubscription(
        *(np.array([side], dtype=float) for side in zip(*sides, strict=True)), hits
    )


@unhurried
@given(some_boxes, some_boxes)
def test_covering_is_containment_of_points(a: Any, b: Any) -> None:
    assert boxes_cover(*a, *b) == (points_in(a) >= points_in(b))


@unhurried
@given(some_boxes, some_boxes, some_boxes)
def test_covering_is_transitive(a: Any, b: Any, c: Any) -> None:
    assert not (boxes_cover(*a, *b) and boxes_cover(*b, *c)) or boxes_cover(*a, *c)


@unhurried
@given(box, st.integers(0, SIDE), st.integers(0, SIDE))
def test_a_box_covers_what_all_its_conditions_cover(sides: Any, x: int, y: int) -> None:
    every = all(condition_covers(*side, value) for side, value in zip(sides, (x, y), strict=True))
    assert covers_notification(*matrices([sides]), np.array([x, y])) == every


@unhurried
@given(some_boxes)
def test_volume_counts_each_point_once(boxes: Any) -> None:
    assert volume(*boxes) == len(points_in(boxes))


@unhurried
@given(some_boxes)
def test_disjoint_boxes_are_the_same_union_and_never_meet(boxes: Any) -> None:
    parts = disjoint(*boxes)
    assert points_in(parts) == points_in(boxes)
    assert measures(*parts).sum() == len(points_in(boxes))


def test_the_volume_of_the_papers_example() -> None:
    # Section 3.3: (symbol = ibm or sun) and price > 50; symbols are numbered ibm, msft, sun.
    lo = np.array([[0.0, 50.0], [2.0, 50.0]])
    hi = np.array([[1.0, 1000.0], [3.0, 1000.0]])
    assert volume(lo, hi) == 1900.0
    assert volume(lo, hi) / 3000.0 == pytest.approx(0.63, abs=0.005)


def test_hits_between_a_smaller_and_a_larger_subscription() -> None:
    known = [one((0, 10), hits=100), one((2, 4), hits=30), one((3, 4), hits=20)]
    # s- is (2, 4), s+ is (0, 10): 100 (5 - 2) / 10 + 30.
    assert estimate_hits(one((1, 6)), known) == 60
    # No s-: 100 * 1 / 10. No more than s+ even if s- is dense: 30 * (2 - 1) / 2 + 20 = 35.
    assert estimate_hits(one((8, 9)), known) == 10
    assert estimate_hits(one((2, 4)), known[1:]) == 30
    # Rounded down: 100 * 1.55 / 10.
    assert estimate_hits(one((8, 9.55)), known) == 15


def test_hits_of_a_subscription_that_none_covers() -> None:
    assert estimate_hits(one((1, 6)), []) == 0
    root = one((0, 10), hits=100)
    assert estimate_hits(one((-5, 20)), [root]) == 100
    assert estimate_hits(one((20, 30)), [root]) == 0
    assert estimate_hits(one((5, 30)), [root]) == 50
    # The smallest cover of (0, 4) and (6, 10) is the root, with the hits of the larger.
    assert estimate_hits(one((5, 15)), [one((0, 4), hits=40), one((6, 10), hits=20)]) == 20


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


def test_subscriptions_not_counted_yet_are_estimated() -> None:
    # [0, 20) is known; [0, 10) has half of its volume, [15, 20) a quarter.
    assert known_hits(problem((UNCOUNTED, 100, UNCOUNTED))).tolist() == [50, 100, 25]
    assert known_hits(problem((UNCOUNTED,) * 3)).tolist() == [0, 0, 0]
    assert known_hits(problem()).tolist() == [80, 20, 10]


@unhurried
@given(st.lists(st.integers(0, 5).map(float), min_size=1), st.floats(0.01, 1.0))
def test_the_heaviest_part_outweighs_the_rest(weights: list[float], share: float) -> None:
    chosen = heaviest_positions(np.array(weights), share)
    rest = np.delete(np.array(weights), chosen)
    assert len(chosen) >= share * len(weights) - 1e-6 > len(chosen) - 1 - 1e-6
    assert (np.diff(chosen) > 0).all()
    assert len(rest) == 0 or rest.max() <= np.array(weights)[chosen].min()
