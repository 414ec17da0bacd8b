"""What happens while the protocols run, counted."""

from __future__ import annotations

from collections import Counter

import numpy as np

from fanplan.layers.groups.protocol.messages import KINDS, OVERHEAD, Message


class Tally:
    """Counts; arrays have an entry per broker, summed over the trees.

    ``received``, ``matched``, ``arrived``, ``unwanted`` and ``delay`` are as in the ledger of
    groups, delays in ms from entry. ``entries`` are those of forwarding tables now,
    ``entries_most`` the most at one time. ``held_ms`` has how long publications were held at their
    root, ``accepted_ms`` how long updates took to be in force, ``rebuild_ms`` how long rebuilds.
    """

    def __init__(self, brokers: int) -> None:
        self.received, self.matched, self.arrived, self.unwanted, self.entries = np.zeros(
            (5, brokers), np.int64
        )
        self.delay = np.zeros(brokers)
        self.delay_most = 0.0
        self.entered = self.grouped = 0
        self.control: Counter[str] = Counter()
        self.begin()

    def begin(self) -> None:
        """All so far was to set up: count control messages and what rebuilds do from now on."""
        self.set_up, self.control = self.control, Counter()
        self.entries_most = self.entries.copy()
        self.held_ms: list[float] = []
        self.accepted_ms: list[float] = []
        self.rebuild_ms: list[float] = []
        self.built = self.kept = self.evicted = 0

    @property
    def overhead(self) -> int:
        """Control messages that the paper counts."""
        return sum(self.control[kind] for kind in OVERHEAD)

    def sent(self, message: Message) -> None:
        kind = KINDS.get(type(message))
        if kind is not None:
            self.control[kind] += 1

    def delivered(self, broker: int, delay_ms: float) -> None:
        self.arrived[broker] += 1
        self.delay[broker] += delay_ms
        self.delay_most = max(self.delay_most, delay_ms)

    def kept_entries(self, broker: int, more: int) -> None:
        self.entries[broker] += more
        self.entries_most[broker] = max(self.entries_most[broker], self.entries[broker])
