"""Random: each flow goes to a channel drawn uniformly."""

from __future__ import annotations

import numpy as np

from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.channels_params import ChannelParams, require_enough_flows
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.published.membership import one_channel_per_row


def random_map(
    problem: InterestProblem, params: ChannelParams, seed: int, stop: Stop
) -> ChannelMap:
    """Each flow's channel is drawn on its own; a channel may stay empty."""
    require_enough_flows(problem, params.channels)
    generator = np.random.default_rng(seed)
    channel = generator.integers(params.channels, size=problem.size, dtype=np.int32)
    return one_channel_per_row(problem, channel, params.channels)
