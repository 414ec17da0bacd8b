"""The options of exports and trials."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fanplan.core.errors import Problem
from fanplan.core.options import Options, option


@dataclass(frozen=True)
class ExportParams(Options):
    """Where a plan's channels and clients are found on the network."""

    addresses: str = option(
        "239.192.0.0/14", "Range of multicast addresses for channels.", metavar="NETWORK"
    )
    port: int = option(
        7700,
        "Port of channels and unicast; on NATS the first of three for each broker.",
        at_least=1,
        at_most=60_000,
    )
    like: Path | str | None = option(
        None,
        "On NATS: keep the hosts and ports of this export, so that one can switch from it.",
        metavar="EXPORT",
    )


@dataclass(frozen=True)
class TrialParams(Options):
    """How much of a workload is sent through a plan, how fast, and what goes wrong on the way."""

    publications: int | None = option(
        None, "Send only this many publications, from the first on.", at_least=1, shown="all"
    )
    speed: float | None = option(
        None,
        "Keep the recorded times, at this many times the speed; otherwise as fast as all keep up.",
        above=0,
        shown="unpaced",
    )
    kill: str | None = option(
        None, "Stop the server of this broker halfway, then start it again.", metavar="BROKER"
    )
    port: int | None = option(
        None,
        "First port for the servers, which take three each.",
        at_least=1,
        at_most=60_000,
        shown="any that are free",
    )
    durable: bool = option(
        False, "Store incoming messages in an acknowledged stream, and resend what was lost."
    )

    def relations(self) -> Iterator[Problem]:
        if self.durable and self.kill is None:
            yield Problem("durable", "matters only if a server ends", "Add --kill, or leave it out")
