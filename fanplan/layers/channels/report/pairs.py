"""Relations of a plan as lists of pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.data.interest import repeat_audiences
from fanplan.layers.channels.check.evidence import Relation, Truth


class Pairs(NamedTuple):
    """Pairs of numbers: flow and subscriber, flow and channel, channel and member."""

    left: Longs
    right: Longs


def pairs_of(relation: Relation) -> Pairs:
    """Ascending pairs."""
    left = np.repeat(np.arange(len(relation.starts) - 1), np.diff(relation.starts))
    return Pairs(left, relation.right.astype(np.int64))


def audience_pairs(truth: Truth) -> Pairs:
    """Every flow with each subscriber who wants it."""
    sizes = np.diff(truth.audience_starts)[truth.classes]
    starts = np.append(0, np.cumsum(sizes))
    audience = repeat_audiences(truth.audience_starts, truth.audience, truth.classes, starts)
    return Pairs(np.repeat(np.arange(len(truth.classes)), sizes), audience.astype(np.int64))
