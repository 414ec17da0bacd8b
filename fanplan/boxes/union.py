"""Whether boxes together hold all of another box. Only coordinates are compared: it is exact."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Floats
from fanplan.core.kernels import compiled


@compiled
def united(low: Floats, high: Floats, lo: Floats, hi: Floats) -> bool:
    """Whether every point of [low, high) lies in one of the boxes, of which each line is one.

    What the first box leaves is cut into pieces, which the next ones must hold. It ends at the
    first piece that no box meets.
    """
    axes = len(low)
    rest_lo, rest_hi = np.empty((8, axes)), np.empty((8, axes))
    box = np.zeros(8, np.int64)
    rest_lo[0], rest_hi[0], pieces = low, high, 1
    while pieces:
        pieces -= 1
        piece_lo, piece_hi = rest_lo[pieces].copy(), rest_hi[pieces].copy()
        k = box[pieces]
        while k < len(lo) and not meets(piece_lo, piece_hi, lo[k], hi[k]):
            k += 1
        if k == len(lo):
            return False
        if pieces + 2 * axes > len(box):
            rest_lo, rest_hi = doubled(rest_lo, axes), doubled(rest_hi, axes)
            box = np.append(box, np.zeros(len(rest_lo) - len(box), np.int64))
        for axis in range(axes):
            if piece_lo[axis] < lo[k, axis]:
                rest_lo[pieces], rest_hi[pieces], box[pieces] = piece_lo, piece_hi, k + 1
                rest_hi[pieces, axis] = piece_lo[axis] = lo[k, axis]
                pieces += 1
            if hi[k, axis] < piece_hi[axis]:
                rest_lo[pieces], rest_hi[pieces], box[pieces] = piece_lo, piece_hi, k + 1
                rest_lo[pieces, axis] = piece_hi[axis] = hi[k, axis]
                pieces += 1
    return True


@compiled
def meets(a_lo: Floats, a_hi: Floats, b_lo: Floats, b_hi: Floats) -> bool:
    axis = 0
    while axis < len(a_lo) and a_lo[axis] < b_hi[axis] and b_lo[axis] < a_hi[axis]:
        axis += 1
    return axis == len(a_lo)


@compiled
def doubled(rows: Floats, more: int) -> Floats:
    """The same rows with room for at least as many, and more."""
    room = np.empty((2 * len(rows) + 2 * more, rows.shape[1]))
    room[: len(rows)] = rows
    return room
