"""Boxes that come and go: at any time, the answers are those of brute force and of a new index."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanplan.boxes import matching
from fanplan.boxes.changing import ChangingBoxes
from fanplan.boxes.sieve import BLOCK
from fanplan.core.errors import InputError

STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.integers(1, 700), st.sampled_from([0.01, 0.3, 0.9]), st.sampled_from([1, 999])
        ),
        st.floats(0.0, 1.0),
    ),
    max_size=7,
)
"""Boxes to add, their width and how many at once; or the share of boxes to remove."""


class Plain:
    """The boxes of one topic as a table."""

    def __init__(self, axes: int, seed: int, open_share: float = 0.5) -> None:
        self.open_share = open_share
        self.random = np.random.default_rng(seed)
        self.boxes: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.axes, self.next = axes, 0

    def draw(self, count: int, width: float) -> tuple[range, np.ndarray, np.ndarray]:
        """Boxes that leave some axes open, with end points that coincide; few are empty."""
        lo = self.random.integers(-5, 20, (count, self.axes)) / 10
        hi = lo + width * self.random.integers(1, 3, (count, self.axes))
        open_axis = self.random.random((count, self.axes)) < self.open_share
        lo[open_axis], hi[open_axis] = -np.inf, np.inf
        hi[self.random.random(count) < 0.05] = -np.inf
        numbers = range(self.next, self.next + count)
        self.boxes.update({b: (lo[i], hi[i]) for i, b in enumerate(numbers)})
        self.next += count
        return numbers, lo, hi

    def grow(self, changing: ChangingBoxes, count: int, width: float, at_once: int) -> None:
        """Add boxes to topic 7, so many at once."""
        numbers, lo, hi = self.draw(count, width)
        for i in range(0, count, at_once):
            part = slice(i, i + at_once)
            changing.add(numbers[part], 7, lo[part], hi[part])

    def shrink(self, changing: ChangingBoxes, share: float) -> None:
        """Remove a share of the boxes."""
        for box in self.random.permutation(sorted(self.boxes))[: int(share * len(self.boxes))]:
            changing.remove(int(box))
            del self.boxes[int(box)]

    def points(self) -> np.ndarray:
        x = self.random.integers(-8, 30, (60, self.axes)) / 10
        x[::9, :1] = np.nan
        return x

    def holding(self, x: np.ndarray) -> list[list[int]]:
        numbers = sorted(self.boxes)
        lo = np.array([self.boxes[b][0] for b in numbers]).reshape(len(numbers), self.axes)
        hi = np.array([self.boxes[b][1] for b in numbers]).reshape(len(numbers), self.axes)
        inside = np.all((lo <= x[:, None]) & (x[:, None] < hi), axis=2)
        return [[numbers[i] for i in np.flatnonzero(row)] for row in inside]

    def indexed(self, x: np.ndarray) -> list[list[int]]:
        """The answer of an index made from the boxes that are there now."""
        numbers = np.array(sorted(self.boxes), np.int64)
        lo, hi = (np.array([self.boxes[b][i] for b in numbers.tolist()]) for i in (0, 1))
        zeros, sizes = np.zeros_like(numbers), np.full(len(numbers), self.axes, np.int32)
        index = matching.index_boxes(zeros, sizes, lo, hi, zeros, numbers)
        order, offsets, boxes = matching.find_boxes(index, np.zeros(len(x), np.int64), x)
        found = [sorted(numbers[index.given[boxes[a:b]]].tolist()) for a, b in pairwise(offsets)]
        return [found[row] for row in np.argsort(order)]


def answers(changing: ChangingBoxes, x: np.ndarray) -> list[list[int]]:
    offsets, boxes = changing.find(7, x)
    return [boxes[a:b].tolist() for a, b in pairwise(offsets)]


@settings(max_examples=40, deadline=None)
@given(STEPS, st.sampled_from([0, 1, 3, 8, 20]), st.sampled_from([0.0, 0.5]), st.integers(0, 99))
def test_answers_are_those_of_the_boxes_that_are_there(
    steps: list[float | tuple[int, float, int]], axes: int, open_share: float, seed: int
) -> None:
    plain, changing = Plain(axes, seed, open_share), ChangingBoxes()
    for step in steps:
        if isinstance(step, tuple):
            plain.grow(changing, *step)
        else:
            plain.shrink(changing, step)
        x = plain.points()
        assert len(changing) == len(plain.boxes)
        assert answers(changing, x) == plain.holding(x)
    if plain.boxes:
        assert plain.indexed(x) == plain.holding(x)


@pytest.mark.parametrize("axes", [2, 12])
def test_a_topic_that_grows_box_by_box_is_divided(axes: int) -> None:
    plain, changing = Plain(axes, seed=axes), ChangingBoxes()
    plain.grow(changing, 3 * BLOCK, 0.2, at_once=3 * BLOCK)
    plain.grow(changing, 2 * BLOCK, 0.2, at_once=1)
    topic = changing._topics[7]
    assert topic.laid_out_for <= 3 * BLOCK
    assert topic.blocks > 5
    x = plain.points()
    assert answers(changing, x) == plain.holding(x)


def test_few_points_give_what_many_give() -> None:
    plain, changing = Plain(6, seed=1), ChangingBoxes()
    plain.grow(changing, 2000, 0.9, at_once=2000)
    x = plain.points()
    for i, expected in enumerate(plain.holding(x)):
        assert changing.find(7, x[i : i + 1])[1].tolist() == expected


def test_topics_do_not_meet() -> None:
    changing, lo = ChangingBoxes(), np.zeros((1, 2))
    changing.add([1], 1, lo, lo + 1)
    changing.add([2], 2, lo[:, :1], lo[:, :1] + 1)
    assert changing.find(1, lo)[1].tolist() == [1]
    assert changing.find(2, lo[:, :1])[1].tolist() == [2]
    assert changing.find(3, lo)[1].tolist() == []
    changing.remove(1)
    assert changing.find(1, lo)[1].tolist() == []


def test_a_wrong_change_is_refused_and_changes_nothing() -> None:
    changing, lo = ChangingBoxes(), np.zeros((2, 2))
    changing.add([1, 2], 1, lo, lo + 1)
    with pytest.raises(InputError, match="box 2: it is already there"):
        changing.add([3, 2], 1, lo, lo + 1)
    with pytest.raises(InputError, match="box 4: it is already there"):
        changing.add([4, 4], 1, lo, lo + 1)
    with pytest.raises(InputError, match="topic 1: its boxes have 2 axes, not 3"):
        changing.add([5], 1, np.zeros((1, 3)), np.ones((1, 3)))
    with pytest.raises(InputError, match="box 9: it is not there"):
        changing.remove(9)
    assert changing.find(1, lo[:1])[1].tolist() == [1, 2]
    assert len(changing) == 2
