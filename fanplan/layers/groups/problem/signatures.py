"""Signatures of sets of brokers: 128 bits that are sums over the members.

Every broker has two words of 64 bits, and the signature of a set is the sum of its members' words,
modulo 2⁶⁴. So a signature grows member by member, in any order, and along the axes of a grid. Two
different sets have the same one by chance only: one in 2¹²⁸ for a pair of sets.
"""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Ints, Longs, Words
from fanplan.core.bits import mix
from fanplan.core.kernels import compiled


@compiled
def broker_words(brokers: Longs) -> Words:
    """Two words for each of some brokers, given by their positions."""
    words = np.empty((len(brokers), 2), np.uint64)
    for i in range(len(brokers)):
        # The finaliser of splitmix64 on two sequences that have no number in common.
        words[i, 0] = mix(np.uint64(2 * brokers[i] + 1) * np.uint64(0x9E3779B97F4A7C15))
        words[i, 1] = mix(np.uint64(2 * brokers[i] + 2) * np.uint64(0x9E3779B97F4A7C15))
    return words


@compiled
def set_signatures(starts: Longs, members: Ints) -> Words:
    """The signature of each set ``members[starts[s]:starts[s + 1]]``."""
    signatures = np.zeros((len(starts) - 1, 2), np.uint64)
    words = broker_words(members.astype(np.int64))
    for s in range(len(starts) - 1):
        for k in range(starts[s], starts[s + 1]):
            signatures[s, 0] += words[k, 0]
            signatures[s, 1] += words[k, 1]
    return signatures
