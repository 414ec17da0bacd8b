"""What publishers and subscribers ask of the system beneath: to carry bytes as the plan says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from fanplan.core.arrays import Floats, Longs
from fanplan.live.points import Topics

Range = tuple[int, int]
"""The number of the last publication that came, and of the last one that should have, in a flow."""
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


@dataclass(frozen=True, eq=False)
class Batch:
    """Publications that are sent together, as arrays.

    That at position i has the payload ``payload[starts[i]:starts[i + 1]]``; who wants it is known
    only if it has no flow. If the source keeps them, ``before`` has the number of the one before
    each in its flow; ``last``: they only tell the last of each flow.
    """

    topics: Topics
    flow: Longs
    number: Longs
    topic: Longs
    x: Floats
    payload: bytes
    starts: Longs
    sent_ns: int
    audiences: Mapping[int, tuple[int, ...]]
    before: Longs | None = None
    last: bool = False

    def __len__(self) -> int:
        return len(self.flow)

    def __iter__(self) -> Iterator[Publication]:
        """One after the other, for systems that send them so."""
        bounds, rows = self.starts.tolist(), self.x.tolist()
        columns = zip(self.flow.tolist(), self.number.tolist(), self.topic.tolist(), strict=True)
        for at, (flow, number, topic) in enumerate(columns):
            x = tuple(rows[at][: self.topics.space(topic).dimensions])
            payload = self.payload[bounds[at] : bounds[at + 1]]
            audience = self.audiences.get(at, ())
            name = self.topics.names[topic]
            yield Publication(flow, number, self.sent_ns, name, x, payload, audience)

    def first(self) -> int:
        """The number of the first."""
        return int(self.number[0])

    def one(self, at: int) -> Publication:
        """One of them."""
        topic = int(self.topic[at])
        x = tuple(self.x[at, : self.topics.space(topic).dimensions].tolist())
        payload = self.payload[self.starts[at] : self.starts[at + 1]]
        flow, number = int(self.flow[at]), int(self.number[at])
        return Publication(flow, number, self.sent_ns, self.topics.names[topic], x, payload)


class Outgoing(Protocol):
    """Where a publisher sends."""

    async def open(self) -> None: ...

    def known(self) -> set[int]:
        """The flows that the plan has a way for from here; others take the default way."""

    def send(self, batch: Batch) -> None:
        """Send each to all whom the plan names for its flow, or by the default way."""

    async def drained(self) -> None:
        """Wait until there is room for more."""

    async def flushed(self) -> None:
        """Wait until the system has all that was sent."""

    async def close(self) -> None: ...


class Incoming(Protocol):
    """Where a subscriber receives. ``sources`` are publishers by number, if the plan tells."""

    sources: tuple[str, ...]

    async def ask(self, source: int, ranges: Sequence[Range]) -> None:
        """Ask a source that keeps what it sent for what was lost of it."""

    async def open(self, take: Take) -> None: ...

    async def close(self) -> None: ...
