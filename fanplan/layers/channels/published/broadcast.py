"""Broadcast: one channel carries everything."""

from __future__ import annotations

import numpy as np

from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.channels_params import ChannelParams
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.published.membership import one_channel_per_row


def broadcast(problem: InterestProblem, params: ChannelParams, seed: int, stop: Stop) -> ChannelMap:
    """All flows on channel 0, joined by every subscriber that wants anything."""
    return one_channel_per_row(problem, np.zeros(problem.size, dtype=np.int32), 1)
