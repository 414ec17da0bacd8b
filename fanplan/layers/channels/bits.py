"""Audiences as rows of bits: the quickest way to count overlaps when subscribers are few."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from fanplan.core.arrays import Ints, Longs, Words
from fanplan.core.kernels import compiled


@intrinsic
def popcount(typing_context: Any, word: Any) -> Any:
    """How many bits of a 64-bit word are set: one machine instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


def audience_bits(indptr: Longs, audience: Ints, users: int) -> Words:
    """One row of bits per audience, or none at all if that would take more than the audiences.

    A count then costs a row ``users / 64`` steps; by the users' lists it costs a step per pair.
    """
    width = (users + 63) // 64
    rows = len(indptr) - 1
    if rows * width > len(audience):
        return np.empty((0, width), dtype=np.uint64)
    bits = np.zeros((rows, width), dtype=np.uint64)
    set_bits(indptr, audience, bits)
    return bits


@compiled
def set_bits(indptr: Longs, audience: Ints, bits: Words) -> None:
    for row in range(len(indptr) - 1):
        for user in audience[indptr[row] : indptr[row + 1]]:
            bits[row, user >> 6] |= np.uint64(1) << np.uint64(user & 63)


@compiled
def column_bits(column: Ints, width: int) -> Words:
    """A set of users as a row of bits."""
    bits = np.zeros(width, dtype=np.uint64)
    for user in column:
        bits[user >> 6] |= np.uint64(1) << np.uint64(user & 63)
    return bits


@compiled
def common(bits: Words, row: int, other: Words) -> int:
    """How many bits a row has in common with another."""
    count = np.uint64(0)
    for word in range(len(other)):
        count += popcount(bits[row, word] & other[word])  # type: ignore[call-arg]
    return int(count)
