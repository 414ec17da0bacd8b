"""What a simulation is told beside the network and the messages."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal

from fanplan.core.errors import InputError, Problem

Congestion = Literal["rule", "queue", "none"]
CONGESTION: tuple[Congestion, ...] = ("none", "rule", "queue")


@dataclass(frozen=True)
class SimulationParams:
    """Times are in milliseconds, which are the ticks of Tajuddin (2011).

    ``congestion``: ``rule`` is that of section 6.4.1, ``queue`` serves messages one by one in
    1/capacity, ``none`` ignores capacities. ``latency_ms`` is for links that nothing is known of.
    ``match_ms`` is spent at each broker that matches a message, ``forward_ms`` on each copy sent.
    Load is counted in windows of ``unit_ms``.
    """

    congestion: Congestion = "rule"
    latency_ms: float = 100.0
    match_ms: float = 0.0
    forward_ms: float = 0.0
    unit_ms: float = 1000.0

    def __post_init__(self) -> None:
        problems = []
        if self.congestion not in CONGESTION:
            remedy = f"Choose one of {', '.join(CONGESTION)}"
            problems.append(Problem("congestion", f"{self.congestion} is unknown", remedy))
        for item in fields(self)[1:]:
            value = getattr(self, item.name)
            least = "more than 0" if item.name == "unit_ms" else "0 or more"
            if not (math.isfinite(value) and value >= 0) or (item.name == "unit_ms" and value == 0):
                what = f"{value} is no such time"
                problems.append(Problem(item.name, what, f"Give {least} milliseconds"))
        if problems:
            raise InputError(problems)
