"""Delivery on channels that are given: what is on none may go directly, and groups are chosen."""

from __future__ import annotations

import numpy as np

from fanplan.plan.channels.types import ChannelMap
from fanplan.planners.delivery.decide import Shadow, decide
from fanplan.planners.delivery.joint import Judged, improves, judge
from fanplan.planners.delivery.layers import with_groups
from fanplan.planners.delivery.options import options_of
from fanplan.planners.delivery.params import DeliveryParams
from fanplan.problem.delivery import DeliveryProblem
from fanplan.problem.interest import Ints


def delivery_on_channels(
    problem: DeliveryProblem, params: DeliveryParams, map: ChannelMap, domain: Ints
) -> tuple[Judged, Judged]:
    """The best delivery found on these channels, and the one where nothing is sent directly."""
    nobody = np.zeros(problem.interest.size, bool)
    first = judge(problem, params, with_groups(problem, params, map, domain, nobody))
    options = options_of(problem, map, domain, params.prices)
    # Today's channels are all there is to choose, beside going past them.
    options.cost[:, 1:] = np.inf
    free = map.assigned.counts(problem.interest.size) == 0
    direct = decide(problem, options, params, Shadow()).direct & free
    found = judge(problem, params, with_groups(problem, params, map, domain, direct))
    return (found if improves(found, first, params) else first), first
