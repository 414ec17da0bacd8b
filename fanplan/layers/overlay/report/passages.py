"""From where to where messages pass the overlay, and what arrives there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fanplan.core.arrays import Longs
from fanplan.network.brokers import Routes


@dataclass(frozen=True)
class Passages:
    """So many ``arrivals`` at broker ``target`` come from broker ``source``."""

    source: Longs
    target: Longs
    arrivals: NDArray[np.float64]

    def renumbered(self, position: Longs) -> Passages:
        return Passages(position[self.source], position[self.target], self.arrivals)


def arriving(routes: Routes) -> Passages:
    """A message arrives once at every broker of its route."""
    route = np.repeat(np.arange(len(routes)), np.diff(routes.starts))
    source, target = routes.source[route].astype(np.int64), routes.brokers.astype(np.int64)
    return Passages(source, target, routes.messages[route])
