"""The options of observing a NATS network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fanplan.core.errors import Problem
from fanplan.core.options import Options, option


@dataclass(frozen=True)
class ObserveParams(Options):
    """How long, and how, the traffic of a network is looked at."""

    seconds: float = option(
        0.0, "Seconds to watch traffic, by counters or a tap.", at_least=0, shown="no traffic"
    )
    tap: str | None = option(
        None, "Subscribe to everything at this server.", metavar="nats://HOST:PORT"
    )
    export: Path | str | None = option(
        None, "The export that the network runs: names, filters and publishers come from it."
    )

    def relations(self) -> Iterator[Problem]:
        if self.tap is not None and not self.seconds:
            yield Problem("tap", "takes nothing without time", "Add --seconds")
        if self.tap is not None and self.export is not None:
            yield Problem("tap", "is not needed with an export", "Leave it out")
