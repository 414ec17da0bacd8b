"""A subscriber that follows a plan: each message that it asked for, once, with its topic."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

from fanplan.live.chains import Chains
from fanplan.live.entry import EntryTables, Selectors
from fanplan.live.message import ENDED, NO_CHANNEL, PROBE, REDELIVERED, Message, decode
from fanplan.live.points import Topics, Value
from fanplan.live.transport import Incoming, Range

REMEMBERED = 1 << 16
"""Publications of a source, at least, among which one that comes again is recognised."""
MOST_WAITING = 1 << 20
"""Messages that wait for an application that is slow; what comes then is dropped and counted."""


@dataclass(slots=True)
class Received:
    """What a subscriber has received.

    ``wanted`` were handed on. ``unwanted`` came though no selector holds, ``twice`` are further
    copies of wanted ones. ``gaps`` were missing when a later one of their source and channel came,
    ``out_of_order`` came after a later one of their source. Those ``again`` were lost, and sent
    again by a source that keeps them; ``given_up`` counts how often that did not help. ``stale``
    belong to another plan, ``foreign`` are no messages at all, ``dropped`` found no room.
    ``channels`` has all copies by channel, −1 for unicast.
    """

    wanted: int = 0
    unwanted: int = 0
    twice: int = 0
    gaps: int = 0
    out_of_order: int = 0
    again: int = 0
    given_up: int = 0
    stale: int = 0
    foreign: int = 0
    dropped: int = 0
    channels: Counter[int] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message as the application sees it.

    ``sequence`` counts the publications of its source, from any number on.
    """

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


class Reading:
    """What messages of one plan mean to a subscriber.

    ``sources`` are publishers by number; where a plan does not tell them the number is the name.
    ``whole``: it listens since before the plan came into force.
    """

    def __init__(
        self, tables: EntryTables, name: str, epoch: bytes, incoming: Incoming, whole: bool = False
    ) -> None:
        self.topics, self.wants = tables.topics, Selectors(tables, name).wants
        self.epoch, self.incoming, self.whole = epoch, incoming, whole
        self.sources = incoming.sources

    def source(self, number: int) -> str | int:
        return self.sources[number] if number < len(self.sources) else number


class Handover:
    """From one plan to the next: a source's messages of the next wait until it ended the old one.

    ``needed`` has the end markers that come of each source, ``came`` those that did, by turn;
    ``marked`` are the sources of which all did, ``ended`` those of which nothing is missing.
    ``probes`` are the numbers of probes that came on ways of the next.
    """

    def __init__(self, old: bytes, needed: dict[str | int, int]) -> None:
        self.old, self.needed = old, needed
        self.ended = {source for source, markers in needed.items() if not markers}
        self.marked = {*self.ended}
        self.held: dict[str | int, list[Message]] = {}
        self.probes: list[int] = []
        self.came: Counter[tuple[str | int, int]] = Counter()

    def holds(self, source: str | int, message: Message) -> bool:
        """Whether a message has to wait; then it does."""
        if source not in self.needed or source in self.ended:
            return False
        self.held.setdefault(source, []).append(message)
        return True

    def marker(self, source: str | int, turn: int) -> None:
        """Take note of an end marker.

        Markers are sent in turns, as some may be lost: all of one turn have to come.
        """
        self.came[source, turn] += 1
        if self.came[source, turn] >= self.needed.get(source, 0):
            self.marked.add(source)

    def end(self, source: str | int) -> list[Message]:
        """Nothing of a source is missing; what need not wait any longer."""
        self.ended.add(source)
        return self.held.pop(source, [])


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
        self.name, self.counts = name, Received()
        self._readings = {epoch: Reading(tables, name, epoch, incoming)}
        self._handover: Handover | None = None
        self._deliver = deliver
        self._chains = Chains(self._ask, self._sort)
        self._seen: dict[str | int, Seen] = {}
        self._next: dict[tuple[int, int], int] = {}
        self._waiting: deque[Delivered] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        for reading in self._readings.values():
            await reading.incoming.open(self.take)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Receive no more; who iterates gets what has come, and then the end."""
        self._closed = True
        self._chains.close()
        self._awake()
        for reading in [*self._readings.values()]:
            await reading.incoming.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivered:
        while not self._waiting:
            if self._closed:
                raise StopAsyncIteration
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        return self._waiting.popleft()

    def take(self, data: bytes) -> None:
        """Count what arrived, and hand it on if it is wanted and new."""
        counts, message = self.counts, decode(data)
        if message is None:
            counts.foreign += 1
            return
        header = message.header
        reading = self._readings.get(header.epoch)
        if reading is None:
            counts.stale += 1
            return
        if header.flow <= ENDED:
            self._told(reading, message)
        elif header.channel <= REDELIVERED:
            self._chains.take(message, reading.whole)
            counts.given_up = self._chains.given_up
            self._end(reading, header.source)
        else:
            self._follow(header.source, header.channel, header.sequence)
            self._sort(message)

    def _sort(self, message: Message) -> None:
        """Hand on what is wanted, if its source has ended the plan before."""
        header, handover = message.header, self._handover
        reading = self._readings[header.epoch]
        self.counts.channels[max(header.channel, NO_CHANNEL)] += 1
        source = reading.source(header.source)
        if not reading.wants(message.topic, message.x):
            self.counts.unwanted += 1
        elif not (
            handover is not None
            and header.epoch != handover.old
            and handover.holds(source, message)
        ):
            self._accept(reading, source, message)

    def _told(self, reading: Reading, message: Message) -> None:
        """A probe, or an end marker."""
        header, handover = message.header, self._handover
        if handover is None or (header.flow == PROBE) == (header.epoch == handover.old):
            return
        if header.flow == PROBE:
            handover.probes.append(header.number)
            return
        handover.marker(reading.source(header.source), header.number)
        self._end(reading, header.source)

    def _end(self, reading: Reading, number: int) -> None:
        """If a source has ended the old plan and nothing is missing, its next messages go on."""
        handover, source = self._handover, reading.source(number)
        if (
            handover is None
            or reading.epoch != handover.old
            or source not in handover.marked - handover.ended
            or self._chains.missing(reading.epoch, number)
        ):
            return
        for free in handover.end(source):
            self._accept(self._readings[free.header.epoch], source, free)

    async def _ask(self, epoch: bytes, source: int, ranges: Sequence[Range]) -> None:
        """A source for what was lost of it."""
        if (reading := self._readings.get(epoch)) is not None:
            await reading.incoming.ask(source, ranges)

    def _accept(self, reading: Reading, source: str | int, message: Message) -> None:
        """Hand on a wanted message if it is new."""
        counts, number = self.counts, message.header.number
        again = message.header.channel == REDELIVERED
        seen = self._seen.get(source)
        if seen is None:
            seen = self._seen[source] = Seen()
        if seen.again(number):
            counts.twice += not again
            return
        counts.again += again
        counts.out_of_order += number < seen.last
        seen.last = max(seen.last, number)
        counts.wanted += 1
        if self._deliver is not None:
            self._deliver(message)
        else:
            self._wait(Delivered(message, reading.topics))

    # ---- from plan to plan

    @property
    def handover(self) -> Handover | None:
        """What is between two plans, if it is."""
        return self._handover

    async def join(self, reading: Reading | None, needed: dict[str | int, int]) -> None:
        """Listen to the next plan too, if that has this subscriber."""
        (old,) = self._readings
        self._handover = Handover(old, needed)
        if reading is not None:
            self._readings[reading.epoch] = reading
            await reading.incoming.open(self.take)

    async def leave(self) -> None:
        """The next plan is the only one: whoever did not end the old one will not.

        A subscriber that it does not have gets what has come, and then the end.
        """
        if (handover := self._handover) is not None:
            self._chains.forget(handover.old)
            old, self._handover = self._readings[handover.old], None
            for source, messages in handover.held.items():
                for each in messages:
                    self._accept(self._readings[each.header.epoch], source, each)
            await self._only(old)
            self._closed = self._closed or not self._readings
            self._awake()

    async def abandon(self) -> None:
        """Stay with the plan that is."""
        if (handover := self._handover) is not None:
            self._handover = None
            await self._only(*(r for e, r in self._readings.items() if e != handover.old))

    async def _only(self, *others: Reading) -> None:
        for reading in others:
            self._chains.forget(reading.epoch)
            del self._readings[reading.epoch]
            await reading.incoming.close()

    def _follow(self, source: int, channel: int, sequence: int) -> None:
        """Gaps in the sequence of a source on a channel, from the first that came."""
        key = (source, channel)
        expected = self._next.get(key, sequence)
        if sequence >= expected:
            self.counts.gaps += sequence - expected
            self._next[key] = sequence + 1

    def _wait(self, delivered: Delivered) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self.counts.dropped += 1
            return
        self._waiting.append(delivered)
        self._awake()

    def _awake(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
