"""Unicast: no channels, every flow goes to each of its audience point to point."""

from __future__ import annotations

import numpy as np

from fanplan.plan.channels.types import NO_PAIRS, ChannelMap, pairs
from fanplan.planners.channels.params import ChannelParams
from fanplan.planners.stop import Stop
from fanplan.problem.interest import InterestProblem


def unicast(problem: InterestProblem, params: ChannelParams, seed: int, stop: Stop) -> ChannelMap:
    """Every (row, interested subscriber) pair by unicast."""
    rows = np.repeat(np.arange(problem.size, dtype=np.int32), problem.audience_sizes)
    return ChannelMap(0, NO_PAIRS, NO_PAIRS, pairs(rows, problem.audience))
