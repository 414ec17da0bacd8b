"""Random: each flow goes to a channel drawn uniformly."""

from __future__ import annotations

import numpy as np

from fanplan.plan.channels.types import ChannelMap
from fanplan.planners.channels.membership import one_channel_per_row
from fanplan.planners.channels.params import ChannelParams, require_enough_flows
from fanplan.planners.stop import Stop
from fanplan.problem.interest import InterestProblem


def random_map(
    problem: InterestProblem, params: ChannelParams, seed: int, stop: Stop
) -> ChannelMap:
    """Each flow's channel is drawn on its own; a channel may stay empty."""
    require_enough_flows(problem, params.channels)
    generator = np.random.default_rng(seed)
    channel = generator.integers(params.channels, size=problem.size, dtype=np.int32)
    return one_channel_per_row(problem, channel, params.channels)
