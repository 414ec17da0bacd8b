"""Unicast: no channels, every flow goes to each of its audience point to point."""

from __future__ import annotations

import numpy as np

from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.channels_params import ChannelParams
from fanplan.layers.channels.map import NO_PAIRS, ChannelMap, pairs


def unicast(problem: InterestProblem, params: ChannelParams, seed: int, stop: Stop) -> ChannelMap:
    """Every (row, interested subscriber) pair by unicast."""
    rows = np.repeat(np.arange(problem.size, dtype=np.int32), problem.audience_sizes)
    return ChannelMap(0, NO_PAIRS, NO_PAIRS, pairs(rows, problem.audience))
