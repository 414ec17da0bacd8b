"""Values of pairs of owners as compiled code collects them: a growing table of (i, j, value)."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Floats, Longs
from fanplan.core.kernels import compiled

Pairs = tuple[Longs, Longs, Floats]


@compiled
def start_pairs() -> Pairs:
    """An empty table."""
    return np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64)


@compiled
def append_row(sums: Floats, i: int, out: Pairs, used: int) -> tuple[Pairs, int]:
    """Write the sums of owner i behind ``used`` entries of a table, and clear them."""
    left, right, value = out
    count = used + np.count_nonzero(sums)
    if count > len(left):
        left, right = _grown(left, used, 2 * count), _grown(right, used, 2 * count)
        value = _grown(value, used, 2 * count)
    for j in range(len(sums)):
        if sums[j] != 0.0:
            left[used], right[used], value[used] = i, j, sums[j]
            used += 1
    sums[:] = 0.0
    return (left, right, value), used


@compiled
def _grown(old: np.ndarray, used: int, size: int) -> np.ndarray:
    new = np.empty(size, old.dtype)
    new[:used] = old[:used]
    return new
