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
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from fanplan.core.arrays import Bools, Floats, Longs, starts_of
from fanplan.live.entry import DEFAULT, NOBODY, Entry
from fanplan.live.kept import Chain, Kept
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

    ``unknown`` of these took the default way; ``unwanted`` are what nobody asked for. A durable one
    keeps what it sent (``kept``) until a switch found that it arrived.
    """

    def __init__(self, entry: Entry, outgoing: Outgoing, durable: bool = False) -> None:
        self._pending = Pending()
        self._scheduled = False
        # Microseconds, so that one that is started again begins where it never was: subscribers
        # take a number that they know for a copy.
        self._number = time.time_ns() // 1000
        self.kept = Kept() if durable else None
        self.sent = self.unknown = self.unwanted = 0
        self._follow(entry, outgoing)

    def _follow(self, entry: Entry, outgoing: Outgoing) -> None:
        """From now on publications go as this plan says."""
        self._entry, self._outgoing = entry, outgoing
        self._chain = None if self.kept is None else Chain(entry)
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
        self, topics: Sequence[str], attributes: Mapping[str, ArrayLike], payloads: Sequence[bytes]
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
        """Number what is sent, find the flows, leave out what nobody wants, hand over the rest."""
        number = np.arange(self._number, self._number + len(topic))
        self._number += len(topic)
        flow = self._entry.flows(topic, x)
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
        before = None if self._chain is None else self._chain.follow(flow, topic, number)
        batch = Batch(
            self._entry.topics, flow, number, topic, x, b"".join(payloads), starts_of(sizes),
            time.time_ns(), audiences, before,
        )  # fmt: skip
        if self.kept is not None:
            self.kept.add(batch)
        self._outgoing.send(batch)

    # ---- from plan to plan

    def cut(self, entry: Entry, outgoing: Outgoing) -> tuple[Any, Batch | None, int]:
        """Publish by another plan from now on.

        Where it was published until now, what tells the last of each flow there if it is kept, and
        the number of the first publication that goes by the new plan.
        """
        self._send_pending()
        old, ends = self._outgoing, None if self._chain is None else self._chain.ends()
        self._follow(entry, outgoing)
        return old, ends, self._number


def known_flows(outgoing: Outgoing, flows: int) -> Bools:
    """By flow, whether the plan has a way for it; the last, for ``DEFAULT``, is not."""
    known = np.zeros(flows + 1, np.bool_)
    known[list(outgoing.known())] = True
    return known
