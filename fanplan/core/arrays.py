"""Types of arrays, one name each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Shorts = NDArray[np.uint16]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Words = NDArray[np.uint64]
"""Sets as bits, 64 in a word."""
Floats = NDArray[np.float64]

Position = int | np.integer[Any]
"""A position: a number, or one from an array."""

NONE = -1
"""In an array of positions: no position."""


def starts_of(sizes: ArrayLike) -> Longs:
    """Where parts of these sizes start that lie one after the other, with the end appended."""
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def expanded(starts: Longs, row: Ints | Longs) -> tuple[Longs, Longs]:
    """For every i the entries of list ``row[i]``, one list after the other: (i, position).

    List r has the positions ``starts[r]:starts[r + 1]``.
    """
    sizes = np.diff(starts)[row]
    which = np.repeat(np.arange(len(sizes)), sizes)
    return which, np.arange(len(which)) + (starts[row] - starts_of(sizes)[:-1])[which]


def listed_by(keys: Ints | Longs, count: int) -> tuple[Longs, Longs]:
    """Positions by their keys: those of key k are ``order[starts[k]:starts[k + 1]]``.

    Keys are below ``count``. The result is starts and order.
    """
    return starts_of(np.bincount(keys, minlength=count)), np.argsort(keys, kind="stable")


def places_among(keys: Longs, wanted: Longs) -> Longs:
    """Where each of the wanted keys stands first, NONE where it does not."""
    if not len(keys):
        return np.full(len(wanted), NONE)
    order = np.argsort(keys, kind="stable")
    at = order[np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)]
    return np.where(keys[at] == wanted, at, NONE)


def values_at(matrix: Any, row: Ints | Longs, column: Ints | Longs) -> Floats:
    """What a sparse matrix has at some places; asked for none, it answers with a matrix."""
    found = matrix[row, column]
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found, np.float64).ravel()
