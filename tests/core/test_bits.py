"""Sets as bits behave as sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fanplan.core.bits import bits_of, bits_of_lists, bits_of_pairs, common, has_bit, pairs_of_bits

SIZE = 130
sets = st.lists(st.sets(st.integers(0, SIZE - 1)), max_size=4)


@given(sets)
def test_bits_hold_the_elements_of_sets(found: list[set[int]]) -> None:
    elements = [np.array(sorted(one), np.int32) for one in found]
    starts = np.cumsum([0, *map(len, elements)]).astype(np.int64)
    flat = np.concatenate([np.empty(0, np.int32), *elements])
    bits = bits_of_lists(starts, flat, SIZE)
    row = np.repeat(np.arange(len(found), dtype=np.int32), np.diff(starts))
    assert np.array_equal(bits, bits_of_pairs(row, flat, len(found), SIZE))
    assert [a.tolist() for a in pairs_of_bits(bits)] == [row.tolist(), flat.tolist()]
    for words, one in zip(bits, found, strict=True):
        assert [has_bit(words, i) for i in range(SIZE)] == [i in one for i in range(SIZE)]


@given(st.sets(st.integers(0, SIZE - 1)), st.sets(st.integers(0, SIZE - 1)))
def test_common_elements_are_counted(one: set[int], other: set[int]) -> None:
    a, b = (bits_of(np.array(sorted(own), np.int32), 3) for own in (one, other))
    assert common(a, b) == len(one & other)
