"""Demand as whole numbers: parts of a sum then add up alike however rows are dealt to tasks.

A message total m counts as the whole number nearest to m · 2^e. The exponent e is as large as the
sum of all rows allows in 62 bits. Whole totals (counted publications) lose nothing; of others, n
rows lose at most n · 2^−61 of the sum together.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.core.prices import Weights

BITS = 61
"""Binary digits of the largest sum; rounding adds far less than the one that is left."""


def exponent_of(total: float) -> int:
    """The exponent e for rows whose totals add up to ``total``."""
    return BITS - math.frexp(total)[1] if total > 0 else 0


def to_whole(messages: Floats, exponent: int) -> Longs:
    return np.rint(np.ldexp(messages, exponent)).astype(np.int64)


@compiled
def add_shares(
    indptr: Longs, audience: Ints, amount: Longs, channel: Ints, wanted: Longs, traffic: Longs
) -> None:
    """Add each row's amount to its channel's traffic and to what its audience wants there.

    ``wanted`` is channels × users. A row on channel −1 adds nothing.
    """
    for row in range(len(amount)):
        if channel[row] >= 0:
            traffic[channel[row]] += amount[row]
            for user in audience[indptr[row] : indptr[row + 1]]:
                wanted[channel[row], user] += amount[row]


def joins(wanted: Longs, traffic: int, weights: Weights) -> NDArray[np.bool_]:
    """Y-step of one channel: join iff the priced demand exceeds what all its traffic costs."""
    return weights.unicast * wanted.astype(np.float64) > weights.w1 * float(traffic)


def channel_gain(
    wanted: Longs, traffic: int, members: NDArray[np.bool_], weights: Weights
) -> float:
    """What a channel with these members saves against unicast, in units of 2^−e messages."""
    served = float(wanted[members].sum(dtype=np.float64))
    cost = weights.w2 + weights.w1 * int(members.sum())
    return weights.unicast * served - cost * float(traffic)
