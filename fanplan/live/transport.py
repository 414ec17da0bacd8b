"""What publishers and subscribers ask of the system beneath: to carry bytes as the plan says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

Take = Callable[[bytes], None]
"""What is done with the bytes of a message that arrived."""


class Publication(NamedTuple):
    """A message on its way out. ``audience`` are who wants it, known only without a flow."""

    flow: int
    number: int
    sent_ns: int
    topic: str
    x: tuple[float, ...]
    payload: bytes
    audience: tuple[int, ...] = ()


class Outgoing(Protocol):
    """Where a publisher sends."""

    async def open(self) -> None: ...

    def knows(self, flow: int) -> bool:
        """Whether the plan has a way for the flow from here; else it takes the default way."""

    def send(self, publications: Sequence[Publication]) -> None:
        """Send each to all whom the plan names for its flow, or by the default way."""

    async def drained(self) -> None:
        """Wait until there is room for more."""

    async def close(self) -> None: ...


class Incoming(Protocol):
    """Where a subscriber receives."""

    async def open(self, take: Take) -> None: ...

    async def close(self) -> None: ...
