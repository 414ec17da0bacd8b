"""A subscriber that follows a plan: each message that it asked for, once, with its topic."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from fanplan.live.entry import EntryTables, Selectors
from fanplan.live.message import Message, decode
from fanplan.live.points import Topics, Value
from fanplan.live.transport import Incoming

REMEMBERED = 1 << 16
"""Publications of a source, at least, among which one that comes again is recognised."""
MOST_WAITING = 1 << 20
"""Messages that wait for an application that is slow; what comes then is dropped and counted."""


@dataclass(slots=True)
class Counts:
    """What a subscriber has received.

    ``wanted`` were handed on. ``unwanted`` came though no selector holds, ``twice`` are further
    copies of wanted ones. ``gaps`` were missing when a later one of their source and channel came,
    ``out_of_order`` came after a later one of their source. ``stale`` belong to another plan,
    ``foreign`` are no messages at all, ``dropped`` found no room. ``channels`` has all copies by
    channel, −1 for unicast.
    """

    wanted: int = 0
    unwanted: int = 0
    twice: int = 0
    gaps: int = 0
    out_of_order: int = 0
    stale: int = 0
    foreign: int = 0
    dropped: int = 0
    channels: Counter[int] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message as the application sees it. ``sequence`` counts the publications of its source."""

    message: Message
    topics: Topics

    @property
    def topic(self) -> str:
        return self.message.topic

    @property
    def attributes(self) -> dict[str, Value]:
        return self.topics.attributes(self.message.topic, self.message.x)

    @property
    def payload(self) -> bytes:
        return self.message.payload

    @property
    def source(self) -> int:
        return self.message.header.source

    @property
    def sequence(self) -> int:
        return self.message.header.number


class Seen:
    """The numbers of one source that came lately, in two generations: neither grows without end."""

    __slots__ = ("_new", "_old", "last")

    def __init__(self) -> None:
        self._new: set[int] = set()
        self._old: set[int] = set()
        self.last = -1

    def again(self, number: int) -> bool:
        """Whether a number came before; from now on it did."""
        if number in self._new or number in self._old:
            return True
        if len(self._new) >= REMEMBERED:
            self._old, self._new = self._new, set()
        self._new.add(number)
        return False


class Subscribed:
    """Receives what one subscriber asked for: ``async for message in subscriber``.

    With ``deliver`` messages go there at once instead.
    """

    def __init__(
        self,
        tables: EntryTables,
        name: str,
        epoch: bytes,
        incoming: Incoming,
        deliver: Callable[[Message], None] | None = None,
    ) -> None:
        self.name, self.counts = name, Counts()
        self._topics, self._selectors = tables.topics, Selectors(tables, name)
        self._epoch, self._incoming = epoch, incoming
        self._deliver = deliver or self._wait
        self._seen: dict[int, Seen] = {}
        self._next: dict[tuple[int, int], int] = {}
        self._waiting: deque[Message] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        await self._incoming.open(self.take)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Receive no more; who iterates gets what has come, and then the end."""
        self._closed = True
        self._awake()
        await self._incoming.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivered:
        while not self._waiting:
            if self._closed:
                raise StopAsyncIteration
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        return Delivered(self._waiting.popleft(), self._topics)

    def take(self, data: bytes) -> None:
        """Count what arrived, and hand it on if it is wanted and new."""
        counts, message = self.counts, decode(data)
        if message is None:
            counts.foreign += 1
            return
        header = message.header
        if header.epoch != self._epoch:
            counts.stale += 1
            return
        counts.channels[header.channel] += 1
        self._follow(header.source, header.channel, header.sequence)
        if not self._selectors.wants(message.topic, message.x):
            counts.unwanted += 1
            return
        seen = self._seen.get(header.source)
        if seen is None:
            seen = self._seen[header.source] = Seen()
        if seen.again(header.number):
            counts.twice += 1
            return
        if header.number < seen.last:
            counts.out_of_order += 1
        else:
            seen.last = header.number
        counts.wanted += 1
        self._deliver(message)

    def _follow(self, source: int, channel: int, sequence: int) -> None:
        """Gaps in the sequence of a source on a channel, from the first that came."""
        key = (source, channel)
        expected = self._next.get(key, sequence)
        if sequence >= expected:
            self.counts.gaps += sequence - expected
            self._next[key] = sequence + 1

    def _wait(self, message: Message) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self.counts.dropped += 1
            return
        self._waiting.append(message)
        self._awake()

    def _awake(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
