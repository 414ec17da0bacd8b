"""What a layer that binds an overlay leaves to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from fanplan.layers.overlay.report.passages import Passages
from fanplan.network.brokers import OverlayProblem


class LeftTraffic(NamedTuple):
    """Deliveries on the tree alone, those that are left to brokers, and the problem of these."""

    passing: Passages
    fewer: Passages
    problem: OverlayProblem


class OverlayBound(Protocol):
    """What channels and direct unicast leave to brokers, and which channels sites have."""

    def left(self, dataset: Path, problem: OverlayProblem) -> LeftTraffic:
        """What of the traffic of an overlay is left to its brokers."""

    def channels_inside(self) -> Mapping[str, int]:
        """How many channels each site has; none at all if channels are not those of sites."""
