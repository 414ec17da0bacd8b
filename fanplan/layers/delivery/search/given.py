"""Delivery on channels that are given: what is on none may go directly, and groups are chosen."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Ints
from fanplan.core.stop import Stop
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.delivery.params import DeliveryParams
from fanplan.layers.delivery.problem.delivery import DeliveryProblem
from fanplan.layers.delivery.search.in_turn import with_groups
from fanplan.layers.delivery.search.joint import Judged, better, judge, shared, without_channels
from fanplan.layers.delivery.search.refine import Search, Shadow


def delivery_on_channels(
    problem: DeliveryProblem, params: DeliveryParams, map: ChannelMap, domain: Ints, stop: Stop
) -> tuple[Judged, Judged]:
    """The best delivery found on these channels, and the one where nothing is sent directly."""
    nobody = np.zeros(problem.interest.size, bool)
    first = judge(problem, params, with_groups(problem, params, map, domain, nobody))
    # A class that is on no channel decides as if there were none.
    free = map.assigned.counts(problem.interest.size) == 0
    alone = Search(problem, params, without_channels(problem, params))
    direct = alone.at(Shadow(shared=shared(first.delivery)), stop).direct & free
    found = judge(problem, params, with_groups(problem, params, map, domain, direct))
    return better(first, found, params), first
