"""A publisher that follows a plan: it finds the flow of what is sent, the plan says where it goes.

Publications are matched together: `send` gathers what comes until the loop is free or a batch is
full, because matching many at once costs little more than matching one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Self

import numpy as np

from fanplan.live.entry import DEFAULT, NOBODY, Entry
from fanplan.live.points import Attributes
from fanplan.live.transport import Outgoing, Publication

BATCH = 512
"""Publications that are matched together at most."""

Given = tuple[str, int, tuple[float, ...], bytes]
"""Topic, its number, coordinates, payload."""


class Publishing:
    """Sends publications of one source. ``sent`` counts those that somebody wants.

    ``unknown`` counts what took the default way, ``unwanted`` what nobody asked for.
    """

    def __init__(self, entry: Entry, outgoing: Outgoing) -> None:
        self._entry, self._outgoing = entry, outgoing
        self._pending: list[Given] = []
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
        topics = self._entry.topics
        number = topics.find(topic)
        self._pending.append((topic, number, topics.point(number, attributes), payload))
        if len(self._pending) >= BATCH:
            await self.flush()
        elif not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._send_pending)

    async def send_many(self, publications: Sequence[tuple[str, Attributes, bytes]]) -> None:
        """Publish several at once."""
        topics = self._entry.topics
        for topic, attributes, payload in publications:
            number = topics.find(topic)
            self._pending.append((topic, number, topics.point(number, attributes), payload))
        await self.flush()

    async def flush(self) -> None:
        """Wait until all that was published is handed to the system."""
        self._send_pending()
        await self._outgoing.drained()

    def _send_pending(self) -> None:
        self._scheduled = False
        given, self._pending = self._pending, []
        if given:
            self._outgoing.send(self._routed(given))

    def _routed(self, given: list[Given]) -> list[Publication]:
        """Publications with their flows; those that nobody wants are counted and left out."""
        numbers = np.fromiter((number for _, number, _, _ in given), np.int64, len(given))
        x = self._entry.rows([point for _, _, point, _ in given])
        now, first = time.time_ns(), self._number
        self._number += len(given)
        flows = self._entry.flows(numbers, x).tolist()
        found = []
        for at, (flow, (topic, number, point, payload)) in enumerate(
            zip(flows, given, strict=True)
        ):
            if flow == NOBODY:
                self.unwanted += 1
                continue
            audience: tuple[int, ...] = ()
            if flow == DEFAULT or not self._outgoing.knows(flow):
                self.unknown += 1
                flow, audience = DEFAULT, self._entry.audience(number, point)
            found.append(Publication(flow, first + at, now, topic, point, payload, audience))
        self.sent += len(found)
        return found
