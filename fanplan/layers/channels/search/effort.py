"""What every part of a search is told: how long to try, with which randomness, and whom to ask."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fanplan.core.stop import Stop, never
from fanplan.layers.channels.method_params import KmodesParams

CANDIDATES = 4
"""Rows drawn as starts of a new channel; the best one is kept."""
SETTLED = 1e-4
"""A search step ends when a round adds less than this part: other steps find more in the time."""
NOISE = 1e-12
"""A change must gain more than this part of what is at stake: less may be rounding."""


@dataclass(frozen=True)
class Effort:
    """Handed down through a search unchanged; only ``random`` moves on.

    ``all_unicast`` is what gains are subtracted from for the ears of ``stop``; infinite if they are
    not those of a plan that keeps all limits. Fewer ``candidates`` give more different channels.
    """

    params: KmodesParams
    random: np.random.Generator
    stop: Stop = never
    all_unicast: float = math.inf
    candidates: int = CANDIDATES

    def enough(self, gain: float) -> bool:
        """Whether to end with so much gained."""
        return self.stop(self.all_unicast - gain)

    def with_swaps(self, most: int) -> Effort:
        """The same with at most so many swaps: quicker, for looking around."""
        return replace(self, params=replace(self.params, swaps=min(most, self.params.swaps)))


class Lowest:
    """Tells ``stop`` the lowest cost so far, whichever search asks."""

    def __init__(self, stop: Stop) -> None:
        self.stop, self.cost = stop, math.inf

    def __call__(self, best_cost: float) -> bool:
        self.cost = min(self.cost, best_cost)
        return self.stop(self.cost)
