"""What a delivery hands to the layers that it binds together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.delivery.drift import groups_in_delivery
from fanplan.layers.delivery.read import ChannelReach, left_by_plan
from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.delivery.report.curve import delivery_curve_picture
from fanplan.layers.delivery.report.ways import (
    count_ways,
    delivering,
    overlay_of_rest,
    positions_in_overlay,
)
from fanplan.layers.delivery.simulated import planned_delays
from fanplan.layers.delivery.stages.make import make_senders
from fanplan.layers.groups.problem.groups import BrokerTrees
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.overlay.bound import LeftTraffic
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.network.brokers import OverlayProblem, Routes
from fanplan.page.content import Picture
from fanplan.page.material import CurvePoint
from fanplan.plan.drift import LayerNow
from fanplan.plan.section import SectionRecord
from fanplan.plan.stored import StoredPlan


@dataclass(frozen=True)
class BoundChannels(ChannelReach):
    """Channels that stay in their multicast domains, beside classes that are sent directly."""

    def sites(self) -> Mapping[int, str] | None:
        there = any(self.plan.section(DeliveryRecord).domains)
        return dict(enumerate(self.domains())) if there else None

    def curve(self, name: str, points: Sequence[CurvePoint]) -> Picture:
        return delivery_curve_picture(name, self.plan, points)


@dataclass(frozen=True)
class BoundOverlay:
    """An overlay that has only what channels and direct unicast leave to its brokers."""

    plan: StoredPlan

    def left(self, dataset: Path, problem: OverlayProblem) -> LeftTraffic:
        ways = count_ways(self.plan, dataset)
        position = positions_in_overlay(ways, problem)
        passing = delivering(ways).renumbered(position)
        delays = planned_delays(self.plan, dataset)
        return LeftTraffic(passing, delays, overlay_of_rest(ways, problem, position))

    def channels_inside(self) -> Mapping[str, int]:
        domains = self.plan.section(DeliveryRecord).domains
        if not any(domains):
            return {}
        used = Counter(self.plan.read("channel_domains", ("domain",))["domain"].to_pylist())
        return {site: used[site] for site in domains}


@dataclass(frozen=True)
class BoundGroups:
    """Groups of what channels and direct unicast leave to brokers."""

    plan: StoredPlan

    def make_stages(self, dataset: Dataset, engine: Engine) -> None:
        make_senders(dataset, engine)

    def routes(self, dataset: Path, trees: BrokerTrees) -> Routes:
        return left_by_plan(self.plan, dataset, trees)

    def now(self, dataset: Path) -> LayerNow:
        return groups_in_delivery(self.plan, dataset)


BINDS: tuple[type[SectionRecord], ...] = (ChannelsRecord, OverlayRecord, GroupsRecord)
"""The layers that a delivery binds together."""


def bind(plan: StoredPlan) -> dict[str, Any]:
    """What each bound layer is told, by its name."""
    bounds = (BoundChannels(plan), BoundOverlay(plan), BoundGroups(plan))
    return {kind.layer: bound for kind, bound in zip(BINDS, bounds, strict=True)}
