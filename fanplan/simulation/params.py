"""What a simulation is told beside the network and the messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fanplan.core.options import Options, option

Congestion = Literal["rule", "every", "queue", "none"]
CONGESTION: tuple[Congestion, ...] = ("none", "rule", "queue", "every")
"""In the order of the numbers that the loop has for them."""


@dataclass(frozen=True)
class SimulationParams(Options):
    """Times are in milliseconds, which are the ticks of Tajuddin (2011).

    The rule of congestion is that of section 6.4.1, which holds up the next message; ``every`` is
    that of appendix 8.1.2, which holds up every message of the time unit. A queue serves messages
    one by one in 1/capacity.
    """

    congestion: Congestion = option(
        "rule", "rule (the thesis'), every (its appendix's), queue, or none."
    )
    latency_ms: float = option(
        100.0, "Latency of every link, if the workload gives none.", unit="ms", at_least=0
    )
    match_ms: float = option(0.0, "Time to match a message at a broker.", unit="ms", at_least=0)
    forward_ms: float = option(0.0, "Time to send one copy.", unit="ms", at_least=0)
    unit_ms: float = option(1000.0, "Time unit in which load is counted.", unit="ms", above=0)
    client_ms: float = option(
        0.0, "Latency from a broker to its clients, in a plan of all layers.", unit="ms", at_least=0
    )
