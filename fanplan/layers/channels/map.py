"""What a planner decides (a channel map) and what is known about it afterwards (a plan)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fanplan.core.arrays import Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.core.ledger import Ledger, cost, excess_percent, unicast_fraction
from fanplan.core.prices import Weights
from fanplan.data.interest import Rows
from fanplan.layers.channels.bitmap import Bitmap, bitmap
from fanplan.layers.channels.bounds.bounds import Bound


@dataclass(frozen=True, eq=False)
class Pairs:
    """A relation between two numberings: ascending pairs, none twice. Made with ``pairs``."""

    left: Ints
    right: Ints

    def __post_init__(self) -> None:
        self.left.setflags(write=False)
        self.right.setflags(write=False)

    def __len__(self) -> int:
        return len(self.left)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pairs):
            return NotImplemented
        same = np.array_equal(self.left, other.left) and np.array_equal(self.right, other.right)
        return bool(same)

    def counts(self, size: int) -> Longs:
        """How many pairs each left number from 0 to ``size - 1`` has."""
        return np.bincount(self.left, minlength=size)

    def starts(self, size: int) -> Longs:
        """Where the pairs of each left number start, with the end appended."""
        return np.concatenate(([0], np.cumsum(self.counts(size)))).astype(np.int64)


def pairs(left: Any, right: Any) -> Pairs:
    """Pairs from two equally long lists of numbers in any order; a pair given twice counts once.

    Linear if the pairs are in order already, else a sort.
    """
    left, right = np.array(left, dtype=np.int32), np.array(right, dtype=np.int32)
    if ascending(left, right):
        return Pairs(left, right)
    keys = np.unique((left.astype(np.int64) << 32) | right)
    return Pairs((keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32))


NO_PAIRS = Pairs(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32))


@compiled
def ascending(left: Ints, right: Ints) -> bool:
    """Whether each pair is greater than the one before."""
    for i in range(1, len(left)):
        if left[i] < left[i - 1] or (left[i] == left[i - 1] and right[i] <= right[i - 1]):
            return False
    return True


@dataclass(frozen=True)
class ChannelMap:
    """Which rows go to which channels, who joins them, and what goes by unicast.

    In the paper's letters: ``assigned`` is X, ``members`` is Y and ``unicast`` is T.
    """

    channels: int
    assigned: Pairs
    """(row, channel)"""
    members: Pairs
    """(channel, subscriber)"""
    unicast: Pairs
    """(row, subscriber)"""

    def member_bits(self, subscribers: int) -> Bitmap:
        return bitmap(self.members.left, self.members.right, self.channels, subscribers)


@dataclass(frozen=True)
class ChannelLayer:
    """A channel map with its origin and its cost.

    The same input, parameters, seed and version give an equal plan: it holds no time and no host.
    ``rows`` says whether a row of the map is an audience class or a single flow; ``bound`` is a
    cost that no plan with as many channels can undercut, and ``single_bound`` one that no plan
    with one channel per flow can; ``seconds`` is the window of the ledger.
    """

    map: ChannelMap
    rows: Rows
    source: str
    method: str
    params: dict[str, Any]
    weights: Weights
    seed: int
    ledger: Ledger
    perfect: float
    bound: Bound
    single_bound: Bound
    flows: int
    audience_classes: int
    seconds: float
    version: str
    layer: Literal["channels"] = "channels"

    @property
    def cost(self) -> float:
        return cost(self.ledger, self.weights)

    @property
    def excess_percent(self) -> float:
        return excess_percent(self.cost, self.perfect)

    @property
    def bound_percent(self) -> float:
        """The bound's excess over perfect multicast, in percent."""
        return excess_percent(self.bound.cost, self.perfect)

    @property
    def single_bound_percent(self) -> float:
        return excess_percent(self.single_bound.cost, self.perfect)

    @property
    def unicast_fraction(self) -> float:
        return unicast_fraction(self.ledger)
