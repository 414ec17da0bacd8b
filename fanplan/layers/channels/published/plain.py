"""Baselines that look at no interest: random, broadcast, round robin, unicast."""

from __future__ import annotations

import numpy as np

from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import NO_PAIRS, ChannelMap, map_pairs, one_channel_per_row
from fanplan.layers.channels.method_params import MethodParams, require_enough_flows


def random_map(
    problem: InterestProblem, params: MethodParams, seed: int, _stop: Stop
) -> ChannelMap:
    """Each flow's channel is drawn on its own; a channel may stay empty."""
    require_enough_flows(problem, params.channels)
    generator = np.random.default_rng(seed)
    channel = generator.integers(params.channels, size=problem.size, dtype=np.int32)
    return one_channel_per_row(problem, channel, params.channels)


def broadcast(
    problem: InterestProblem, _params: MethodParams, _seed: int, _stop: Stop
) -> ChannelMap:
    """All flows on channel 0, joined by every subscriber that wants anything."""
    return one_channel_per_row(problem, np.zeros(problem.size, dtype=np.int32), 1)


def round_robin(
    problem: InterestProblem, params: MethodParams, _seed: int, _stop: Stop
) -> ChannelMap:
    """Flow ``i`` in stored order goes to channel ``i`` mod K."""
    require_enough_flows(problem, params.channels)
    channel = np.arange(problem.size) % params.channels
    return one_channel_per_row(problem, channel.astype(np.int32), params.channels)


def all_by_unicast(
    problem: InterestProblem, _params: MethodParams, _seed: int, _stop: Stop
) -> ChannelMap:
    """Every (row, interested subscriber) pair by unicast."""
    rows = np.repeat(np.arange(problem.size, dtype=np.int32), problem.audience_sizes)
    return ChannelMap(0, NO_PAIRS, NO_PAIRS, map_pairs(rows, problem.audience))
