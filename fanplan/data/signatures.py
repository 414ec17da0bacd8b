"""The signature of an audience: 128 bits that stand for a set of subscribers.

It is the sum of the hashes of their names, so it neither depends on their order nor on how a
dataset numbers them: the same people have the same signature today and tomorrow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from fanplan.core.arrays import Ints, Longs
from fanplan.core.kernels import compiled

Hashes = NDArray[np.uint64]

WORDS = 4
"""32-bit numbers that a signature is written as, in the place of a cell."""


def name_hashes(names: Iterable[str]) -> Hashes:
    """Two 64-bit numbers for each name."""
    digests = [hashlib.blake2b(name.encode(), digest_size=16).digest() for name in names]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64).reshape(-1, 2)


@compiled
def signatures(offsets: Longs, members: Ints, hashes: Hashes) -> Hashes:
    """The signature of each audience ``members[offsets[i]:offsets[i + 1]]``; none: zeros."""
    result = np.zeros((len(offsets) - 1, 2), np.uint64)
    for i in range(len(offsets) - 1):
        for k in range(offsets[i], offsets[i + 1]):
            result[i, 0] += hashes[members[k], 0]
            result[i, 1] += hashes[members[k], 1]
    return result


def as_words(signature: Hashes) -> Ints:
    """Signatures as rows of ``WORDS`` numbers."""
    return np.ascontiguousarray(signature).view(np.int32).reshape(-1, WORDS)
