"""Union volumes against inclusion–exclusion and against counting on a grid."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanplan.boxes.volumes import FEW, LOOSE, union_of_largest, union_volume

SIDE = 6


@st.composite
def box_lists(draw: st.DrawFn, most: int = 9) -> tuple[np.ndarray, np.ndarray]:
    """Boxes with whole end points, in up to five axes; some are empty or equal."""
    axes, count = draw(st.integers(1, 5)), draw(st.integers(0, most))
    ends = st.tuples(st.integers(0, SIDE - 1), st.integers(0, 4))
    drawn = [[draw(ends) for _ in range(axes)] for _ in range(count)]
    table = np.array(drawn, dtype=np.float64).reshape(count, axes, 2)
    return table[..., 0].copy(), np.minimum(table.sum(axis=2), SIDE)


def volume(lo: np.ndarray, hi: np.ndarray) -> float:
    return float(np.prod(np.maximum(hi - lo, 0)))


def cells_within(lo: np.ndarray, hi: np.ndarray, side: int) -> int:
    """How many unit cells of a cube lie in at least one box."""
    cells = np.array(list(product(range(side), repeat=lo.shape[1])), dtype=np.float64) + 0.5
    held = (lo <= cells[:, None]) & (cells[:, None] < hi)
    return int(np.any(np.all(held, axis=2), axis=1).sum())


def included_and_excluded(lo: np.ndarray, hi: np.ndarray) -> float:
    return sum(
        (-1.0) ** (size + 1) * volume(lo[list(some)].max(axis=0), hi[list(some)].min(axis=0))
        for size in range(1, len(lo) + 1)
        for some in combinations(range(len(lo)), size)
    )


@given(box_lists(most=7))
def test_inclusion_and_exclusion(boxes: tuple[np.ndarray, np.ndarray]) -> None:
    assert union_volume(*boxes) == included_and_excluded(*boxes)


@given(box_lists())
def test_counting_cells(boxes: tuple[np.ndarray, np.ndarray]) -> None:
    assert union_volume(*boxes) == cells_within(*boxes, SIDE)


@given(box_lists(), st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter(
    boxes: tuple[np.ndarray, np.ndarray], draw: st.DataObject
) -> None:
    lo, hi = boxes
    order = [*range(len(lo)), *range(len(lo) // 2)]
    draw.shuffle(order)  # type: ignore[attr-defined]
    assert union_volume(lo[order], hi[order]) == union_volume(lo, hi)


@pytest.mark.parametrize("axes", [2, 4])
def test_many_thin_boxes(axes: int) -> None:
    """Slabs that cross each other: no box holds another, and the free rest is a product."""
    slabs = 20
    lo, hi = np.zeros((axes * slabs, axes)), np.full((axes * slabs, axes), 100.0)
    for axis in range(axes):
        rows = slice(axis * slabs, (axis + 1) * slabs)
        lo[rows, axis] = np.arange(slabs) * 4
        hi[rows, axis] = np.arange(slabs) * 4 + 1
    assert union_volume(lo, hi) == pytest.approx(100.0**axes - (100.0 - slabs) ** axes)


def test_without_axes_a_box_is_one() -> None:
    assert union_volume(np.empty((0, 0)), np.empty((0, 0))) == 0.0
    assert union_volume(np.empty((3, 0)), np.empty((3, 0))) == 1.0


@pytest.mark.parametrize("axes", [2, 3])
def test_more_boxes_than_are_clipped_at_once(axes: int) -> None:
    """Space is cut first; then parts are clipped."""
    draw, side = np.random.default_rng(axes), 24
    lo = draw.integers(0, side - 3, (8 * FEW, axes)).astype(np.float64)
    hi = lo + draw.integers(1, 4, lo.shape)
    assert union_volume(lo, hi) == cells_within(lo, hi, side)


@st.composite
def many_boxes(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """More boxes than are clipped at once: around a point, but for some anywhere, and points."""
    axes, apart = draw(st.integers(1, 5)), draw(st.integers(0, 3 * LOOSE))
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    middle = chance.integers(1, SIDE, axes)
    lo = middle - chance.integers(0, middle + 1, (FEW + 20, axes))
    hi = middle + chance.integers(0, SIDE - middle + 1, lo.shape)
    wide = chance.random(lo.shape) < draw(st.sampled_from([0.0, 0.3, 0.7]))
    lo[wide], hi[wide] = 0, SIDE
    lo[:apart] = chance.integers(0, SIDE, (apart, axes))
    hi[:apart] = np.minimum(lo[:apart] + chance.integers(0, 3, (apart, axes)), SIDE)
    chance.shuffle(order := np.arange(len(lo)))
    return lo[order].astype(np.float64), hi[order].astype(np.float64)


@given(many_boxes())
def test_many_boxes_around_a_point(boxes: tuple[np.ndarray, np.ndarray]) -> None:
    """Space is cut at the point into cells in which most boxes are corners."""
    lo, hi = boxes
    filled = cells_within(lo, hi, SIDE)
    assert union_of_largest(lo, hi, np.arange(len(lo))) == pytest.approx(filled)
    assert union_volume(lo, hi) == pytest.approx(filled)


@pytest.mark.parametrize("before", [0, 4])
def test_slabs_that_meet_are_one(before: int) -> None:
    """A box within two slabs together, but within neither alone, adds nothing."""
    lo = np.array([[0, 0], [3, 0], [1, 2], [7, 0]], dtype=np.float64)
    hi = np.array([[4, 9], [6, 9], [5, 4], [8, 9]], dtype=np.float64)
    # On axes before theirs the slabs are open; the box is not.
    lo, hi = (np.pad(ends, ((0, 0), (before, 0))) for ends in (lo, hi))
    hi[:, :before] = np.where(np.arange(len(hi)) == 2, 1.0, 4.0)[:, None]
    assert union_volume(lo, hi) == 7 * 9 * 4**before
