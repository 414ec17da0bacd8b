"""Content spaces: half-open intervals lose nothing."""

from __future__ import annotations

import math
import pickle

from hypothesis import given
from hypothesis import strategies as st

from fanplan.workload.space import PLAIN, Box, CategoryAttribute, NumberAttribute, Space, just_above

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
PRICE = NumberAttribute("price", 0.0, 1000.0)
VENUE = CategoryAttribute("venue", ("N", "Q"))
SPACE = Space((VENUE, PRICE), (2, 4))


@given(FLOATS, FLOATS)
def test_half_open_ends_say_the_same_as_closed_and_open_ones(x: float, end: float) -> None:
    assert (x > end) == (x >= just_above(end))
    assert (x <= end) == (x < just_above(end))


@given(st.one_of(FLOATS, st.just(-5e-324)))
def test_just_above_is_never_minus_zero(x: float) -> None:
    assert just_above(x) != 0.0 or math.copysign(1.0, just_above(x)) == 1.0


def test_the_domain_is_closed() -> None:
    whole = SPACE.whole()
    assert whole.contains((0.0, 0.0))
    assert whole.contains((1.0, 1000.0))
    assert not whole.contains((1.0, just_above(1000.0)))
    assert not whole.contains((2.0, 0.0))


def test_axes_and_positions() -> None:
    assert (SPACE.axis("price"), SPACE.axis("volume")) == (1, None)
    assert SPACE.axes == {"venue": 0, "price": 1}
    assert VENUE.positions == {"N": 0, "Q": 1}
    assert (VENUE.size, PRICE.size) == (2.0, 1000.0)


def test_cached_positions_change_neither_equality_nor_pickling() -> None:
    fresh = Space((CategoryAttribute("venue", ("N", "Q")), PRICE), (2, 4))
    assert SPACE.axes
    assert VENUE.positions
    assert fresh == SPACE
    assert hash(fresh) == hash(SPACE)
    assert pickle.loads(pickle.dumps(SPACE)) == SPACE


def test_the_plain_space_has_one_point() -> None:
    assert PLAIN.whole() == Box((), ())
    assert PLAIN.whole().contains(())
    assert PLAIN.whole().volume == 1.0


INTERVALS = st.tuples(st.floats(-5, 5), st.floats(-5, 5))


@given(st.lists(st.tuples(INTERVALS, INTERVALS, st.floats(-5, 5)), min_size=1, max_size=3))
def test_a_point_is_in_the_meet_iff_it_is_in_both(
    axes: list[tuple[tuple[float, float], tuple[float, float], float]],
) -> None:
    a = Box(tuple(axis[0][0] for axis in axes), tuple(axis[0][1] for axis in axes))
    b = Box(tuple(axis[1][0] for axis in axes), tuple(axis[1][1] for axis in axes))
    point = tuple(axis[2] for axis in axes)
    assert a.meet(b).contains(point) == (a.contains(point) and b.contains(point))
    assert not (a.empty and a.contains(point))
