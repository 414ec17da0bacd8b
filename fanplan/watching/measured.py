"""Rates as the monitors of running servers count them, while a watch goes on."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

from fanplan.core.errors import FanplanError
from fanplan.live.nats.plan import load_plan
from fanplan.systems.observed.carried import Counts, carried_by, rates
from fanplan.systems.observed.monitors import monitor_at, without_user

READINGS = 10
"""Of a window; older ones are forgotten."""
LEAST_SECONDS = 2.0
"""Between two readings."""


@dataclass
class Meter:
    """Asks monitors again and again; rates are those of about the last ``seconds``."""

    urls: Sequence[str]
    seconds: float
    readings: deque[tuple[float, Counts]] = field(default_factory=lambda: deque(maxlen=READINGS))
    silent: dict[str, str] = field(default_factory=dict)

    def look(self) -> None:
        """Read all counters. Who does not answer is told of once; the watch goes on."""
        counts: Counts = {}
        for url in self.urls:
            _, shown = without_user(url)
            try:
                counts |= carried_by(monitor_at(url))
                self.silent.pop(shown, None)
            except FanplanError as error:
                if shown not in self.silent:
                    logging.getLogger("fanplan").warning("fanplan: %s; the watch goes on", error)
                self.silent[shown] = str(error)
        self.readings.append((time.monotonic(), counts))

    def told(self, epoch: str) -> dict[str, Any]:
        """For the page: the rates of the plan of an epoch and of links, and who is silent."""
        readings = list(self.readings)
        found = rates(readings)
        return {
            "seconds": readings[-1][0] - readings[0][0] if readings else 0.0,
            "servers": len(self.urls) - len(self.silent),
            "silent": list(self.silent.values()),
            "runs": any(carrier.epoch == epoch for carrier in found),
            "rates": {c.name: rate for c, rate in found.items() if c.epoch in (epoch, "")},
        }

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Look now, and again and again as long as the block lasts."""
        ended = Event()

        def run() -> None:
            while not ended.wait(max(LEAST_SECONDS, self.seconds / READINGS)):
                self.look()

        self.look()
        thread = Thread(target=run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()


def meter_of(monitors: Sequence[str], running: str | None, seconds: float) -> Meter | None:
    """The monitors that were named, else those of the export that runs; None if there are none."""
    if not monitors and running is not None:
        servers = load_plan(Path(running)).servers
        monitors = [f"http://{server.host}:{server.monitor}" for server in servers]
    for url in monitors:
        without_user(url)  # Refused at once if it is not an address.
    return Meter(monitors, seconds) if monitors else None
