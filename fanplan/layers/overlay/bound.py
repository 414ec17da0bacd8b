"""What a layer that binds an overlay leaves to it, and what passes brokers then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fanplan.core.arrays import Longs
from fanplan.network.brokers import OverlayProblem, Routes
from fanplan.simulation.legs import DelayCounts


@dataclass(frozen=True)
class Passages:
    """This many ``arrivals`` at broker ``target`` come from broker ``source``."""

    source: Longs
    target: Longs
    arrivals: NDArray[np.float64]

    def renumbered(self, position: Longs) -> Passages:
        return Passages(position[self.source], position[self.target], self.arrivals)


class LeftTraffic(NamedTuple):
    """Deliveries on the tree alone, how long the plan's take, and what is left to brokers."""

    passing: Passages
    delays: DelayCounts
    problem: OverlayProblem


class OverlayBound(Protocol):
    """What channels and direct unicast leave to brokers, and which channels sites have."""

    def left(self, dataset: Path, problem: OverlayProblem) -> LeftTraffic:
        """What of the traffic of an overlay is left to its brokers."""

    def channels_inside(self) -> Mapping[str, int]:
        """How many channels each site has; none at all if channels are not those of sites."""


def arriving(routes: Routes) -> Passages:
    """A message arrives once at every broker of its route."""
    route = np.repeat(np.arange(len(routes)), np.diff(routes.starts))
    source, target = routes.source[route].astype(np.int64), routes.brokers.astype(np.int64)
    return Passages(source, target, routes.messages[route])
