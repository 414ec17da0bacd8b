"""Types of arrays, one name each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Words = NDArray[np.uint64]
"""Sets as bits, 64 in a word."""
Floats = NDArray[np.float64]

Position = int | np.integer[Any]
"""A position: a number, or one from an array."""

NONE = -1
"""In an array of positions: no position."""


def starts_of(sizes: NDArray[Any]) -> Longs:
    """Where parts of these sizes start that lie one after the other, with the end appended."""
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
