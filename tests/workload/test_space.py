"""Content spaces: half-open intervals lose nothing."""

from __future__ import annotations

import math
import pickle

from hypothesis import given
from hypothesis import strategies as st
from meanings import holds

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
    assert holds(whole, (0.0, 0.0))
    assert holds(whole, (1.0, 1000.0))
    assert not holds(whole, (1.0, just_above(1000.0)))
    assert not holds(whole, (2.0, 0.0))


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
    assert holds(PLAIN.whole(), ())
