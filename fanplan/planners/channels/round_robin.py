"""Round-robin: flows are dealt to the channels in turn, whoever wants them."""

from __future__ import annotations

import numpy as np

from fanplan.plan.channels.types import ChannelMap
from fanplan.planners.channels.membership import one_channel_per_row
from fanplan.planners.channels.params import ChannelParams, require_enough_flows
from fanplan.planners.stop import Stop
from fanplan.problem.interest import InterestProblem


def round_robin(
    problem: InterestProblem, params: ChannelParams, seed: int, stop: Stop
) -> ChannelMap:
    """Flow ``i`` in stored order goes to channel ``i`` mod K."""
    require_enough_flows(problem, params.channels)
    channel = np.arange(problem.size) % params.channels
    return one_channel_per_row(problem, channel.astype(np.int32), params.channels)
