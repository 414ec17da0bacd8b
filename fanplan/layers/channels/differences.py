"""What differs between two channel maps, in the words of those who must carry it out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.layers.channels.map import ChannelMap, Pairs


@dataclass(frozen=True)
class Changes:
    """Pairs to add and to remove. Unicast follows from the rest and is not counted."""

    joins: int
    """(channel, subscriber) pairs that are new."""
    leaves: int
    """(channel, subscriber) pairs that are gone."""
    added: int
    """(row, channel) pairs that are new."""
    removed: int
    """(row, channel) pairs that are gone."""

    @property
    def total(self) -> int:
        return self.joins + self.leaves + self.added + self.removed


def changes(old: ChannelMap, new: ChannelMap) -> Changes:
    """Count the changes from one map to another; channels are compared by number."""
    return Changes(
        joins=without(new.members, old.members),
        leaves=without(old.members, new.members),
        added=without(new.assigned, old.assigned),
        removed=without(old.assigned, new.assigned),
    )


def without(pairs: Pairs, others: Pairs) -> int:
    """How many pairs are not among the others."""
    return len(np.setdiff1d(keys(pairs), keys(others), assume_unique=True))


def keys(pairs: Pairs) -> Longs:
    """One number for each pair."""
    return (pairs.left.astype(np.int64) << 32) | pairs.right
