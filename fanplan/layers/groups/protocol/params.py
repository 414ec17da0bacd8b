"""How a system of brokers behaves, and what happens to it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fanplan.core.errors import InputError, Problem

Hold = Literal["all", "affected", "none"]

HOLD: tuple[Hold, ...] = ("all", "affected", "none")


@dataclass(frozen=True)
class GroupsChurn:
    """``events`` happen one after the other, every ``every_ms`` on average.

    An event is a broker that subscribes to a route or no longer does, with the chance ``updates``,
    or else a publication, on a route by its messages. As many subscriptions are added as dropped,
    on average.

    A coordinator rebuilds groups after ``rebuild_every`` accepted updates, once started; 0: only
    when told to. Meanwhile the root holds back ``all`` publications, those of cells that are
    ``affected`` because their group changes, or ``none``: old groups serve until new ones are
    there. ``match_ms`` is spent on each match. ``coordinator`` is the name of the broker that
    coordinates; without one, the root of each tree does.

    A message takes from ``latency_ms[0]`` to ``latency_ms[1]``, drawn evenly, on a link or a
    shortcut. ``loss`` is the chance that it, or the receipt for it, gets lost; then it is sent
    again.
    """

    events: int = 1000
    seed: int = 0
    updates: float = 0.2
    rebuild_every: int = 20
    hold: Hold = "affected"
    shortcuts: bool = True
    every_ms: float = 1.0
    latency_ms: tuple[float, float] = (1.0, 10.0)
    match_ms: float = 1.0
    loss: float = 0.0
    coordinator: str | None = None

    def __post_init__(self) -> None:
        problems = [*self._events(), *self._rebuilds(), *self._links()]
        if problems:
            raise InputError(problems)

    def _events(self) -> Iterator[Problem]:
        for name in ("events", "seed"):
            if getattr(self, name) < 0:
                yield Problem(name, f"{getattr(self, name)} is negative", "Give 0 or more")
        if not 0 <= self.updates <= 1:
            yield Problem("updates", f"{self.updates} is not a share", "Give a share from 0 to 1")
        for name in ("every_ms", "match_ms"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                yield Problem(name, f"{value} is out of range", "Give 0 ms or more")

    def _rebuilds(self) -> Iterator[Problem]:
        if self.rebuild_every < 0:
            what = f"{self.rebuild_every} is negative"
            yield Problem("rebuild_every", what, "Give a number of updates, or 0")
        if self.hold not in HOLD:
            yield Problem("hold", f"{self.hold} is unknown", f"Choose one of {', '.join(HOLD)}")

    def _links(self) -> Iterator[Problem]:
        least, most = self.latency_ms
        if not 0 <= least <= most < math.inf:
            what = f"{least} to {most} ms is not a range of times"
            yield Problem("latency", what, "Give two times from 0, the lesser one first")
        if not 0 <= self.loss < 1:
            yield Problem("loss", f"{self.loss} is out of range", "Give 0 to below 1")
        if self.loss and not most:
            what = "messages get lost, but none takes time"
            yield Problem("loss", what, "Give a latency above 0")
