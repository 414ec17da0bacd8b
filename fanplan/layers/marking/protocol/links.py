"""Links that lose packets: what was not acknowledged is sent again, what changed since is not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fanplan.layers.marking.protocol.messages import HELLO, Key

PATIENCE = 3.0
"""A packet is sent again after so many latencies, and a millisecond for links without one."""


@dataclass
class Packet:
    """Changed entries on their way; None withdraws one. ``birth`` is when its sender started."""

    sender: int
    receiver: int
    birth: float
    number: int
    entries: dict[Key, Any]


@dataclass
class Link:
    """One direction of a link, as its sending end keeps it.

    ``told`` are the entries that the other end has or will have. ``open`` are those it has not
    acknowledged, with the number of the last packet that had them.
    """

    sender: int
    receiver: int
    latency_ms: float
    birth: float = 0.0
    number: int = 0
    told: dict[Key, Any] = field(default_factory=dict)
    open: dict[Key, int] = field(default_factory=dict)

    @property
    def timeout_ms(self) -> float:
        return PATIENCE * self.latency_ms + 1.0

    def tell(self, entries: dict[Key, Any]) -> Packet:
        """Change what is told."""
        for key, value in entries.items():
            if value is None:
                self.told.pop(key, None)
            else:
                self.told[key] = value
        return self.packet(entries)

    def packet(self, entries: dict[Key, Any]) -> Packet:
        self.number += 1
        self.open.update(dict.fromkeys(entries, self.number))
        return Packet(self.sender, self.receiver, self.birth, self.number, entries)

    def again(self, number: int) -> Packet:
        """What a packet had and no later one has, in a new packet."""
        return self.packet({k: self.told.get(k) for k, last in self.open.items() if last == number})

    def everything(self) -> Packet:
        """For an end that forgot all."""
        return self.packet(dict(self.told))

    def acknowledged(self, birth: float, number: int) -> None:
        if birth == self.birth:
            self.open = {key: last for key, last in self.open.items() if last != number}

    def restart(self, now: float) -> Packet:
        """Forget all that was told, and say so by a new birth."""
        self.birth, self.told, self.open = now, {}, {}
        return self.tell({(HELLO, ""): now})
