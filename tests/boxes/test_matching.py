"""The compiled index against brute force, on instances full of end points that coincide.

Topics have a grid or a sieve, or some have the one and some the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanplan.boxes import grid, matching
from fanplan.boxes import index as indexing
from fanplan.boxes.sifting import fill_batch, make_batch

TOPICS = 4
# Few values, so that end points meet; both zeros are equal.
COORDINATES = st.sampled_from([-2.0, -0.0, 0.0, 0.5, 1.0, np.nextafter(1.0, 2.0), 3.0])


@dataclass(frozen=True)
class Instance:
    """Boxes and points of topics with ``sizes`` axes each; points beyond them are NaN."""

    sizes: np.ndarray
    box_topic: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    owner: np.ndarray
    subscription: np.ndarray
    topic: np.ndarray
    x: np.ndarray
    weight: np.ndarray
    grid_axes: int = indexing.GRID_AXES

    def index(self) -> matching.BoxIndex:
        sizes = self.sizes[self.box_topic].astype(np.int32)
        with patch.object(indexing, "suits_sieve", lambda _, axes, __: axes > self.grid_axes):
            return matching.index_boxes(
                self.box_topic, sizes, self.lo, self.hi, self.owner, self.subscription
            )

    def holds(self, box: int, point: int) -> bool:
        """Whether a box holds a point, straight from the definition."""
        axes = range(self.sizes[self.box_topic[box]])
        return self.box_topic[box] == self.topic[point] and all(
            self.lo[box, a] <= self.x[point, a] < self.hi[box, a] for a in axes
        )

    def audience(self, point: int) -> list[int]:
        boxes = range(len(self.box_topic))
        return sorted({int(self.owner[b]) for b in boxes if self.holds(b, point)})


def matrix(draw: st.DrawFn, rows: int, width: int) -> np.ndarray:
    values = draw(st.lists(COORDINATES, min_size=rows * width, max_size=rows * width))
    return np.array(values, float).reshape(rows, width)


def numbers(draw: st.DrawFn, count: int, low: int, high: int) -> np.ndarray:
    values = draw(st.lists(st.integers(low, high), min_size=count, max_size=count))
    return np.array(values, np.int64)


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    sizes = numbers(draw, TOPICS + 1, 0, 3)
    width = int(sizes.max())
    boxes, points = draw(st.integers(0, 40)), draw(st.integers(0, 30))
    topic = numbers(draw, points, 0, TOPICS)
    x = matrix(draw, points, width)
    x[np.arange(width) >= sizes[topic][:, None]] = np.nan
    return Instance(
        sizes,
        numbers(draw, boxes, 0, TOPICS - 1),
        matrix(draw, boxes, width),
        matrix(draw, boxes, width),
        numbers(draw, boxes, 999_990, 1_000_000),
        np.arange(boxes),
        topic,
        x,
        numbers(draw, points, 0, 5).astype(float),
        draw(st.sampled_from([-1, 1, 9])),
    )


@settings(max_examples=200, deadline=None)
@given(instances())
def test_hits_are_the_weight_inside_each_box(case: Instance) -> None:
    index = case.index()
    hits = np.zeros(len(index.owner))
    matching.count_hits(index, case.topic, case.x, case.weight, hits)
    found = dict(zip(index.subscriptions[index.subscription], hits, strict=True))
    for box in range(len(case.box_topic)):
        inside = [case.holds(box, point) for point in range(len(case.topic))]
        assert found.get(box, 0.0) == case.weight[inside].sum()


@settings(max_examples=200, deadline=None)
@given(instances())
def test_audiences_are_sorted_and_distinct(case: Instance) -> None:
    order, offsets, owners = matching.find_audiences(case.index(), case.topic, case.x)
    assert sorted(order) == list(range(len(case.topic)))
    for row, point in enumerate(order):
        assert list(owners[offsets[row] : offsets[row + 1]]) == case.audience(point)


@settings(max_examples=200, deadline=None)
@given(instances())
def test_boxes_are_those_that_hold_the_point(case: Instance) -> None:
    index = case.index()
    order, offsets, boxes = matching.find_boxes(index, case.topic, case.x)
    assert sorted(order) == list(range(len(case.topic)))
    for row, point in enumerate(order):
        found = boxes[offsets[row] : offsets[row + 1]]
        assert list(found) == sorted(found)
        holding = [b for b in range(len(case.box_topic)) if case.holds(b, point)]
        assert sorted(index.given[found]) == holding


@settings(max_examples=200, deadline=None)
@given(instances(), st.integers(1, 6))
def test_wants_count_a_point_once_per_owner(case: Instance, keys: int) -> None:
    key = np.arange(len(case.topic)) * 7 % keys
    found = matching.wants(case.index(), case.topic, case.x, case.weight, key, keys)
    expected: dict[tuple[int, int], float] = {}
    for point in range(len(case.topic)):
        for owner in case.audience(point):
            pair = (int(key[point]), owner)
            expected[pair] = expected.get(pair, 0.0) + case.weight[point]
    assert {(k, o): w for k, o, w in zip(*found, strict=True)} == expected


@settings(max_examples=100, deadline=None)
@given(instances())
def test_candidates_bound_the_audience(case: Instance) -> None:
    # With so few points, the sample of a sieve has all of them.
    listed = matching.count_candidates(case.index(), case.topic, case.x)
    for point in range(len(case.topic)):
        assert listed[point] >= len(case.audience(point))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 9), max_size=5))))
def test_lists_of_equal_keys_are_summed(rows: list[tuple[int, list[int]]]) -> None:
    key = np.array([k for k, _ in rows], np.int64)
    offsets = np.cumsum([0, *(len(owners) for _, owners in rows)])
    owner = np.array([o for _, owners in rows for o in owners], np.int64)
    found = matching.sum_lists(key, 4, offsets, owner, np.ones(len(owner)))
    pairs = [(k, o) for k, owners in rows for o in owners]
    assert {(k, o): w for k, o, w in zip(*found, strict=True)} == {
        pair: pairs.count(pair) for pair in pairs
    }


def crowd(boxes: int, dims: int, tail: float, seed: int) -> Instance:
    """One topic with boxes of very different sizes, crowded at one corner, and points there."""
    random = np.random.default_rng(seed)
    centre = random.random((boxes, dims)) ** 4
    half = random.pareto(tail, (boxes, dims)) / 100
    topic = np.zeros(300, np.int64)
    return Instance(
        np.array([dims]), np.zeros(boxes, np.int64), centre - half, centre + half,
        np.arange(boxes), np.arange(boxes),
        topic, random.random((300, dims)) ** 4, np.ones(300),
    )  # fmt: skip


@pytest.mark.parametrize(("boxes", "dims", "tail"), [(3000, 3, 0.7), (3000, 1, 0.5), (500, 4, 1.0)])
def test_a_skewed_topic_is_indexed_within_bounds(boxes: int, dims: int, tail: float) -> None:
    case = crowd(boxes, dims, tail, seed=1)
    index = case.index()
    # Splits are chosen from a sample of boxes, so the bound on entries holds roughly.
    assert len(index.grid.cut) + len(index.grid.cover) <= 2 * grid.ENTRIES_PER_BOX * boxes
    assert index.grid.first_cell[-1] <= grid.CELLS_PER_BOX * boxes
    _, _, owners = matching.find_audiences(index, case.topic, case.x)
    inside = (case.lo <= case.x[:, None]) & (case.x[:, None] < case.hi)
    assert len(owners) == inside.all(axis=2).sum()
    assert matching.count_candidates(index, case.topic, case.x).sum() < 300 * boxes


def test_an_axis_left_open_is_not_split() -> None:
    random = np.random.default_rng(2)
    lo = np.column_stack([random.random(1000), np.zeros(1000)])
    hi = np.column_stack([lo[:, 0] + 0.01, np.ones(1000)])
    zeros = np.zeros(1000, np.int64)
    index = matching.index_boxes(zeros, np.full(1000, 2, np.int32), lo, hi, zeros, zeros)
    assert index.grid.splits[0, 0] > 16
    assert index.grid.splits[0, 1] == 1


def test_categories_are_never_cut() -> None:
    lo = np.repeat(np.arange(5.0), 20)[:, None]
    zeros = np.zeros(100, np.int64)
    index = matching.index_boxes(zeros, np.ones(100, np.int32), lo, lo + 1, zeros, zeros)
    assert len(index.grid.cut) == 0
    assert len(index.grid.cover) == 100


def test_many_equal_boxes_of_one_owner_count_once_in_audiences() -> None:
    lo, zeros = np.zeros((5000, 2)), np.zeros(5000, np.int64)
    index = matching.index_boxes(zeros, np.full(5000, 2, np.int32), lo, lo + 1, zeros + 7, zeros)
    _, _, owners = matching.find_audiences(index, np.zeros(1, np.int64), np.full((1, 2), 0.5))
    assert list(owners) == [7]


def open_boxes(boxes: int, axes: int, bounded: int) -> matching.BoxIndex:
    """The index of one topic with boxes that bound the first axes only."""
    random, topic = np.random.default_rng(4), np.zeros(boxes, np.int64)
    lo, hi = np.zeros((boxes, axes)), np.ones((boxes, axes))
    lo[:, :bounded] = random.random((boxes, bounded)) / 2
    hi[:, :bounded] = lo[:, :bounded] + 0.001
    return matching.index_boxes(topic, np.full(boxes, axes, np.int32), lo, hi, topic, topic)


@pytest.mark.parametrize(
    ("boxes", "axes", "bounded", "sifted"),
    [
        (1000, 3, 2, False),
        (60_000, 3, 3, False),
        (60_000, 3, 2, True),
        (60_000, 2, 1, False),
        (1000, 5, 5, True),
        (100, 5, 5, False),
        (100, 8, 1, True),
    ],
)
def test_the_index_suits_the_boxes(boxes: int, axes: int, bounded: int, sifted: bool) -> None:
    assert open_boxes(boxes, axes, bounded).first_sifted == (0 if sifted else 1)


def test_very_many_boxes_have_a_sieve_from_three_axes_on() -> None:
    boxes, axes = np.full(3, 10**6), np.array([1, 2, 3])
    assert indexing.suits_sieve(boxes, axes, axes.astype(float)).tolist() == [False, False, True]


def filters(boxes: int, dims: int, predicates: int, width: float, seed: int) -> Instance:
    """One topic whose boxes bound some of many axes; some values are categories, many coincide."""
    random = np.random.default_rng(seed)
    lo, hi = np.zeros((boxes, dims)), np.ones((boxes, dims))
    axes = np.argsort(random.random((boxes, dims)), axis=1)[:, :predicates]
    low = random.integers(0, 40, (boxes, predicates)) / 40 * (1 - width)
    np.put_along_axis(lo, axes, low, 1)
    np.put_along_axis(hi, axes, low + width, 1)
    lo[::7, 0], hi[::7, 0] = -np.inf, np.inf
    x = random.integers(0, 81, (400, dims)) / 80
    x[::50, dims // 2] = np.nan
    return Instance(
        np.array([dims]), np.zeros(boxes, np.int64), lo, hi,
        random.integers(0, boxes // 2, boxes), np.arange(boxes),
        np.zeros(400, np.int64), x, np.ones(400), grid_axes=0,
    )  # fmt: skip


@pytest.mark.parametrize("width", [0.025, 0.4, 0.95])
@pytest.mark.parametrize("dims", [1, 2, 5, 11, 20, 25])
def test_a_sieve_finds_all_boxes_of_a_point(dims: int, width: float) -> None:
    case = filters(3000, dims, (dims + 1) // 2, width, seed=dims)
    index = case.index()
    assert index.first_sifted == 0
    order, offsets, boxes = matching.find_boxes(index, case.topic, case.x)
    expected = ((case.lo <= case.x[:, None]) & (case.x[:, None] < case.hi)).all(axis=2)
    found = np.zeros_like(expected)
    found[np.repeat(order, np.diff(offsets)), index.given[boxes]] = True
    assert np.array_equal(found, expected)
    assert len(boxes) == expected.sum()


def test_blocks_hold_boxes_that_are_alike() -> None:
    """A point needs few blocks, even though every box leaves half of the axes open."""
    case = filters(20_000, 10, 5, 0.05, seed=3)
    sieve = case.index().sieve
    batch = fill_batch(sieve, 0, case.x, np.arange(400), make_batch(sieve, 400))
    passed = [
        np.bitwise_count(np.bitwise_and.reduce(batch.sets[sides[:count]])).sum()
        for sides, count in zip(sieve.sides, sieve.side_count, strict=True)
    ]
    assert np.mean(passed) < 0.3 * batch.number
