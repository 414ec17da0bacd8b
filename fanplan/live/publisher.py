"""A publisher that follows a plan: it finds the flow of what is sent, the plan says where it goes.

Publications are matched together: `send` gathers what comes until the loop is free or a batch is
full, because matching many at once costs little more than matching one.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from fanplan.core.arrays import Bools, Floats, Longs, starts_of
from fanplan.live.entry import DEFAULT, NOBODY, Entry
from fanplan.live.points import Attributes
from fanplan.live.transport import Batch, Outgoing

BATCH = 512
"""Publications that are matched together at most."""
COLUMN_BATCH = 1 << 14
"""The same of columns, which need no work in Python."""


class Pending:
    """What waits to be matched: numbers of topics, rows of coordinates one after the other."""

    __slots__ = ("payloads", "topic", "x")

    def __init__(self) -> None:
        self.topic, self.x = array("q"), array("d")
        self.payloads: list[bytes] = []


class Publishing:
    """Sends publications of one source. ``sent`` counts those that somebody wants.

    ``unknown`` of these took the default way; ``unwanted`` are what nobody asked for.
    """

    def __init__(self, entry: Entry, outgoing: Outgoing) -> None:
        self._entry, self._outgoing = entry, outgoing
        self._known = known_flows(outgoing, entry.tables.flows)
        self._pending = Pending()
        self._topics, self._numbers = entry.topics, entry.topics.number
        self._beyond = [
            (np.nan,) * (entry.tables.lo.shape[1] - size)
            for size in entry.tables.dimensions.tolist()
        ]
        self._scheduled = False
        self._number = 0
        self.sent = self.unknown = self.unwanted = 0

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
        numbers, x = self._entry.topics.columns(topics, attributes, self._entry.tables.lo.shape[1])
        for at in range(0, len(numbers), COLUMN_BATCH):
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
        """Find the flows, leave out what nobody wants, and hand over the rest."""
        flow = self._entry.flows(topic, x)
        number = np.arange(self._number, self._number + len(flow))
        self._number += len(flow)
        wanted = flow != NOBODY
        if not wanted.all():
            flow, number, topic, x = flow[wanted], number[wanted], topic[wanted], x[wanted]
            payloads = list(compress(payloads, wanted.tolist()))
            self.unwanted += len(wanted) - len(flow)
        default = np.flatnonzero(~self._known[flow])
        flow[default] = DEFAULT
        audiences = {int(at): self._entry.audience(int(topic[at]), x[at]) for at in default}
        self.sent += len(flow)
        self.unknown += len(default)
        sizes = np.fromiter(map(len, payloads), np.int64, len(payloads))
        self._outgoing.send(
            Batch(
                self._entry.topics, flow, number, topic, x, b"".join(payloads), starts_of(sizes),
                time.time_ns(), audiences,
            )
        )  # fmt: skip


def known_flows(outgoing: Outgoing, flows: int) -> Bools:
    """By flow, whether the plan has a way for it; the last, for ``DEFAULT``, is not."""
    known = np.zeros(flows + 1, np.bool_)
    known[list(outgoing.known())] = True
    return known
