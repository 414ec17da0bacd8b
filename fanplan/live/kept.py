"""What a durable publisher keeps, so that who lost something of a flow is sent it again.

Each publication tells the number of the one before it in its flow. So a subscriber sees what it
lost of a flow when the next one comes, and asks for it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from operator import methodcaller

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.core.kernels import compiled
from fanplan.live.entry import DEFAULT, Entry
from fanplan.live.transport import Batch, Publication, Range

MOST_KEPT = 256 << 20
"""Bytes that a durable publisher keeps."""
MOST_AT_ONCE = 10_000
"""Publications that are sent again at once; who lost more asks once more."""


class Chain:
    """The number of the last publication of each flow, and of each topic without one."""

    def __init__(self, entry: Entry) -> None:
        self._entry, self._flows = entry, entry.tables.flows
        self._last = np.zeros(self._flows + len(entry.topics.names), np.int64)

    def follow(self, flow: Longs, topic: Longs, number: Longs) -> Longs:
        """The numbers of those before these, 0 where there is none."""
        return linked(self._last, np.where(flow == DEFAULT, self._flows + topic, flow), number)

    def ends(self) -> Batch:
        """What tells the last of each flow that was published."""
        rows = np.flatnonzero(self._last)
        known, number = rows < self._flows, self._last[rows]
        places = self._entry.tables.places[:, 0]
        topic = rows - self._flows
        topic[known] = places[rows[known]]
        x = np.full((len(rows), self._entry.tables.lo.shape[1]), np.nan)
        flow, starts = np.where(known, rows, DEFAULT), np.zeros(len(rows) + 1, np.int64)
        return Batch(
            self._entry.topics, flow, number, topic, x, b"", starts, 0, {}, number, last=True
        )


@compiled
def linked(last: Longs, rows: Longs, number: Longs) -> Longs:
    before = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        before[i] = last[rows[i]]
        last[rows[i]] = number[i]
    return before


class Kept:
    """Batches that were sent, up to a limit.

    ``dropped`` found no room, ``again`` were asked for.
    """

    def __init__(self) -> None:
        self._batches: deque[Batch] = deque()
        self._bytes = self.dropped = self.again = 0

    def add(self, batch: Batch) -> None:
        if len(batch):
            self._batches.append(batch)
            self._bytes += size_of(batch)
        while self._bytes > MOST_KEPT:
            self.dropped += len(self._forget_first())

    def forget(self, before: int) -> None:
        """What has lower numbers has arrived."""
        while self._batches and self._batches[0].number[-1] < before:
            self._forget_first()

    def _forget_first(self) -> Batch:
        first = self._batches.popleft()
        self._bytes -= size_of(first)
        return first

    def lost(self, span: Range) -> tuple[list[tuple[Publication, int]], int]:
        """What came in a flow after the first of two numbers and up to the second, in order, each
        with the number before it; and the number of the last one that is not kept, or 0."""
        low, number = span
        found: list[tuple[Publication, int]] = []
        while number > low:
            one = self._find(number)
            if one is None:
                break
            found.append(one)
            number = one[1]
        return found[::-1][:MOST_AT_ONCE], number if number > low else 0

    def _find(self, number: int) -> tuple[Publication, int] | None:
        at = bisect_right(self._batches, number, key=methodcaller("first")) - 1
        if at < 0:
            return None
        batch = self._batches[at]
        row = int(np.searchsorted(batch.number, number))
        if row == len(batch) or batch.number[row] != number or batch.before is None:
            return None
        return batch.one(row), int(batch.before[row])


def size_of(batch: Batch) -> int:
    """Bytes, about."""
    return batch.x.nbytes + len(batch.payload) + 64 * len(batch)
