"""Moving traffic between channels and unicast, after section 4 of Bickson et al. (2010)."""

from __future__ import annotations

from fanplan.layers.channels.published.second_step.reverse import reverse
from fanplan.layers.channels.published.second_step.two_step import (
    MOVES,
    SECOND_STEPS,
    SecondStep,
    find_second_step,
    hybrid,
    two_step,
)

__all__ = [
    "MOVES",
    "SECOND_STEPS",
    "SecondStep",
    "find_second_step",
    "hybrid",
    "reverse",
    "two_step",
]
