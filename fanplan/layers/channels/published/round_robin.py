"""Round-robin: flows are dealt to the channels in turn, whoever wants them."""

from __future__ import annotations

import numpy as np

from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.channels_params import ChannelParams, require_enough_flows
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.published.membership import one_channel_per_row


def round_robin(
    problem: InterestProblem, params: ChannelParams, seed: int, stop: Stop
) -> ChannelMap:
    """Flow ``i`` in stored order goes to channel ``i`` mod K."""
    require_enough_flows(problem, params.channels)
    channel = np.arange(problem.size) % params.channels
    return one_channel_per_row(problem, channel.astype(np.int32), params.channels)
