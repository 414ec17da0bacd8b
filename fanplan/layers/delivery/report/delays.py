"""How long the deliveries of a plan take on an idle network, each on its own way."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fanplan.data.links import HOP
from fanplan.layers.delivery.legs import legs_to_people
from fanplan.layers.delivery.simulated import left_to_brokers
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.groups.simulated import group_ways
from fanplan.network.dataset import read_links
from fanplan.network.latency import Timing
from fanplan.plan.stored import StoredPlan
from fanplan.simulation.legs import DelayCounts
from fanplan.simulation.spread import idle_delays


def planned_delays(plan: StoredPlan, dataset: Path) -> DelayCounts:
    """From broker to broker up to where the subscriber is, in ms; in hops if none is known."""
    left, shortcuts = left_to_brokers(plan, dataset), plan.section(GroupsRecord).params.shortcuts
    names = left.delivery.brokers
    timing = Timing(len(names), read_links(dataset, names), HOP)
    network, ways = group_ways(left.problem, left.selected, shortcuts, timing)
    sent = left.sent_on()
    legs = legs_to_people(ways, sent, sent.latencies(timing), 0.0)
    messages = np.repeat(left.delivery.messages, np.diff(ways.starts))
    visits = np.flatnonzero(ways.visits["serves"])
    return legs.after(visits, idle_delays(ways, network.latency_ms)[visits], messages[visits])
