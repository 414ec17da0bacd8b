"""Sets of subscribers as rows of bits: 1/8 byte for each channel and subscriber."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fanplan.core.arrays import Ints
from fanplan.core.kernels import compiled

Bitmap = NDArray[np.uint8]


def empty_bitmap(height: int, width: int) -> Bitmap:
    return np.zeros((height, (width + 7) // 8), dtype=np.uint8)


def bitmap(left: Ints, right: Ints, height: int, width: int) -> Bitmap:
    """The bitmap in which exactly the given (left, right) pairs are set."""
    bits = empty_bitmap(height, width)
    set_pairs(bits, left, right)
    return bits


def bitmap_pairs(bits: Bitmap) -> tuple[Ints, Ints]:
    """The (left, right) pairs that are set, ascending. Unpacks one row at a time."""
    rows = [np.flatnonzero(np.unpackbits(row, bitorder="little")) for row in bits]
    left = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    right = np.concatenate(rows) if rows else np.empty(0)
    return left.astype(np.int32), right.astype(np.int32)


@compiled
def set_bit(bits: Bitmap, row: int, column: int) -> None:
    bits[row, column >> 3] |= np.uint8(1 << (column & 7))


@compiled
def has_bit(bits: Bitmap, row: int, column: int) -> bool:
    return (bits[row, column >> 3] >> (column & 7)) & 1 != 0


@compiled
def set_pairs(bits: Bitmap, left: Ints, right: Ints) -> None:
    for i in range(len(left)):
        set_bit(bits, left[i], right[i])
