"""What a received, a sent and a unicast message cost relative to each other."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from fanplan.core.errors import InputError, Problem


@dataclass(frozen=True)
class Weights:
    """The factors w′1, w′2 and w′3 of Bickson et al. (2010), section 3.2.

    ``w1``: a message received through a channel; ``w2``: a message sent to a channel; ``w3``: a
    unicast message, in units of one sent and one received message.
    """

    w1: float = 1.0
    w2: float = 1.0
    w3: float = 1.0

    def __post_init__(self) -> None:
        wrong = [
            Problem(f"weight {name}", f"{value} is not allowed", "Use a positive finite number")
            for name, value in asdict(self).items()
            if not (math.isfinite(value) and value > 0)
        ]
        if wrong:
            raise InputError(wrong)

    @property
    def unicast(self) -> float:
        """Cost of one message sent to one subscriber by unicast."""
        return self.w3 * (self.w1 + self.w2)
