"""Broadcast: one channel carries everything."""

from __future__ import annotations

import numpy as np

from fanplan.plan.channels.types import ChannelMap
from fanplan.planners.channels.membership import one_channel_per_row
from fanplan.planners.channels.params import ChannelParams
from fanplan.planners.stop import Stop
from fanplan.problem.interest import InterestProblem


def broadcast(problem: InterestProblem, params: ChannelParams, seed: int, stop: Stop) -> ChannelMap:
    """All flows on channel 0, joined by every subscriber that wants anything."""
    return one_channel_per_row(problem, np.zeros(problem.size, dtype=np.int32), 1)
