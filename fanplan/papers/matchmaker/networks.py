"""Networks of Ge et al. (2002), section 4.1."""

from __future__ import annotations

from typing import Any

import numpy as np

from fanplan.layers.marking.problem.marking import Network
from fanplan.network.brokers import Links
from fanplan.workload.generators.networks import TransitStubParams, draw_transit_stub

CORE = 0
"""The first transit node: all are drawn alike, so that it is as good as any."""


def drawn_network(setting: dict[str, Any], seed: int) -> Network:
    """100 nodes of a transit-stub network, with the clients that the setting names."""
    params = TransitStubParams(
        publishers=setting["publishers"],
        subscribers=setting["subscribers"],
        floor=setting["floor"],
    )
    world = draw_transit_stub(params, seed)
    ones = np.ones(len(world.a))
    links = Links(world.a, world.b, world.latency_ms, ones * np.inf, ones)
    return Network(world.nodes, world.published, world.subscribed, links)
