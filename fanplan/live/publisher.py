"""A publisher that follows a plan: it finds the flow of what is sent, the plan says where it goes.

Publications are matched together: `send` gathers what comes until the loop is free or a batch is
full, because matching many at once costs little more than matching one.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from fanplan.core.arrays import Bools, Floats, Longs, starts_of
from fanplan.live.entry import DEFAULT, NOBODY, Entry
from fanplan.live.points import Attributes, Topics
from fanplan.live.transport import Batch, Outgoing

BATCH = 512
"""Publications that are matched together at most."""
COLUMN_BATCH = 1 << 14
"""The same of columns, which need no work in Python."""
MOST_KEPT = 256 << 20
"""Bytes that a durable publisher keeps."""


class Pending:
    """What waits to be matched: numbers of topics, rows of coordinates one after the other."""

    __slots__ = ("payloads", "topic", "x")

    def __init__(self) -> None:
        self.topic, self.x = array("q"), array("d")
        self.payloads: list[bytes] = []


class Publishing:
    """Sends publications of one source. ``sent`` counts those that somebody wants.

    ``unknown`` of these took the default way; ``unwanted`` are what nobody asked for. A durable one
    keeps what it sent until a switch found that it arrived: ``dropped`` found no room for that.
    """

    def __init__(self, entry: Entry, outgoing: Outgoing, durable: bool = False) -> None:
        self._pending = Pending()
        self._scheduled = False
        # Microseconds, so that one that is started again begins where it never was: subscribers
        # take a number that they know for a copy.
        self._number = time.time_ns() // 1000
        self._kept: deque[Kept] | None = deque() if durable else None
        self._kept_bytes = 0
        self.sent = self.unknown = self.unwanted = self.dropped = 0
        self._follow(entry, outgoing)

    def _follow(self, entry: Entry, outgoing: Outgoing) -> None:
        """From now on publications go as this plan says."""
        self._entry, self._outgoing = entry, outgoing
        self._known = known_flows(outgoing, entry.tables.flows)
        self._topics, self._numbers = entry.topics, entry.topics.number
        self._beyond = [
            (np.nan,) * (entry.tables.lo.shape[1] - size)
            for size in entry.tables.dimensions.tolist()
        ]

    async def __aenter__(self) -> Self:
        await self._outgoing.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.flush()
        finally:
            await self._outgoing.close()

    async def send(self, topic: str, attributes: Attributes, payload: bytes = b"") -> None:
        """Publish on a topic; wrong topics and attributes are refused at once."""
        topics, pending = self._topics, self._pending
        number = self._numbers.get(topic)
        if number is None:
            number = topics.find(topic)
        pending.x.extend(topics.point(number, attributes))
        if self._beyond[number]:
            pending.x.extend(self._beyond[number])
        pending.topic.append(number)
        pending.payloads.append(payload)
        if len(pending.payloads) >= BATCH:
            self._send_pending()
            await self._outgoing.drained()
        elif not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._send_pending)

    async def send_columns(
        self,
        topics: Sequence[str],
        attributes: Mapping[str, ArrayLike],
        payloads: Sequence[bytes],
    ) -> None:
        """Publish many at once: a topic, a value of each attribute and a payload for each.

        The topics must have the same attributes.
        """
        self._send_pending()
        entry: Entry | None = None
        for at in range(0, len(topics), COLUMN_BATCH):
            if entry is not self._entry:
                # Also after a switch in between: another plan may number topics in another way.
                entry = self._entry
                numbers, x = entry.topics.columns(topics, attributes, entry.tables.lo.shape[1])
            own = slice(at, at + COLUMN_BATCH)
            self._send(numbers[own], x[own], payloads[own])
            await self._outgoing.drained()

    async def flush(self) -> None:
        """Wait until the system has all that was published."""
        self._send_pending()
        await self._outgoing.flushed()

    def _send_pending(self) -> None:
        self._scheduled = False
        given, self._pending = self._pending, Pending()
        if given.payloads:
            topic = np.frombuffer(given.topic, np.int64)
            width = self._entry.tables.lo.shape[1]
            x = np.frombuffer(given.x, np.float64) if width else np.empty(0)
            self._send(topic, x.reshape(len(topic), width), given.payloads)

    def _send(self, topic: Longs, x: Floats, payloads: Sequence[bytes]) -> None:
        """Number what is sent, and keep it if need be."""
        number = np.arange(self._number, self._number + len(topic))
        self._number += len(topic)
        if self._kept is not None:
            self._keep(Kept(self._topics, number, topic, x, payloads))
        self._hand_over(number, topic, x, payloads)

    def _hand_over(
        self, number: Longs, topic: Longs, x: Floats, payloads: Sequence[bytes], again: bool = False
    ) -> None:
        """Find the flows, leave out what nobody wants, and hand over the rest."""
        flow = self._entry.flows(topic, x)
        wanted = flow != NOBODY
        if not wanted.all():
            flow, number, topic, x = flow[wanted], number[wanted], topic[wanted], x[wanted]
            payloads = list(compress(payloads, wanted.tolist()))
            self.unwanted += 0 if again else len(wanted) - len(flow)
        default = np.flatnonzero(~self._known[flow])
        flow[default] = DEFAULT
        audiences = {int(at): self._entry.audience(int(topic[at]), x[at]) for at in default}
        self.sent += 0 if again else len(flow)
        self.unknown += 0 if again else len(default)
        sizes = np.fromiter(map(len, payloads), np.int64, len(payloads))
        self._outgoing.send(
            Batch(
                self._entry.topics, flow, number, topic, x, b"".join(payloads), starts_of(sizes),
                time.time_ns(), audiences, again,
            )
        )  # fmt: skip

    # ---- from plan to plan

    def cut(self, entry: Entry, outgoing: Outgoing) -> tuple[Any, int]:
        """Publish by another plan from now on: where it was published until now, and the number
        of the first publication that is not."""
        self._send_pending()
        old = self._outgoing
        self._follow(entry, outgoing)
        return old, self._number

    # ---- what is kept

    def _keep(self, batch: Kept) -> None:
        assert self._kept is not None
        self._kept.append(batch)
        self._kept_bytes += batch.size
        while self._kept_bytes > MOST_KEPT:
            first = self._kept.popleft()
            self._kept_bytes -= first.size
            self.dropped += len(first.number)

    def arrived(self, before: int) -> None:
        """Forget what was kept of publications with lower numbers."""
        while self._kept and self._kept[0].number[-1] < before:
            self._kept_bytes -= self._kept.popleft().size

    async def send_again(self) -> int:
        """Send all that is kept once more, marked as that; how many."""
        count = 0
        for batch in [*(self._kept or ())]:
            names, number = batch.topics.names, self._topics.number
            topic = np.array([number.get(names[t], -1) for t in batch.topic.tolist()], np.int64)
            known = topic >= 0
            self.dropped += int((~known).sum())
            payloads = list(compress(batch.payloads, known.tolist()))
            width = self._entry.tables.lo.shape[1]
            x = np.full((len(topic), width), np.nan)
            x[:, : batch.x.shape[1]] = batch.x[:, :width]
            self._hand_over(batch.number[known], topic[known], x[known], payloads, again=True)
            count += len(payloads)
            await self._outgoing.drained()
        return count


@dataclass(frozen=True, eq=False)
class Kept:
    """Publications as they were given, with their numbers."""

    topics: Topics
    number: Longs
    topic: Longs
    x: Floats
    payloads: Sequence[bytes]

    @property
    def size(self) -> int:
        """Bytes, about."""
        return self.x.nbytes + 64 * len(self.number) + sum(map(len, self.payloads))


def known_flows(outgoing: Outgoing, flows: int) -> Bools:
    """By flow, whether the plan has a way for it; the last, for ``DEFAULT``, is not."""
    known = np.zeros(flows + 1, np.bool_)
    known[list(outgoing.known())] = True
    return known
