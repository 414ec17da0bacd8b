"""Subscribers of a trial: they take note of every copy they get, and on what it came."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bools, Bytes, Floats, Longs
from fanplan.core.kernels import compiled
from fanplan.live.message import CHANNEL_AT, REDELIVERED
from fanplan.live.nats.plan import DEFAULT, DIRECT, Listening, NatsPlan
from fanplan.live.nats.wire import END, Connection

NUMBER_AT, SENT_AT = 24, 40
"""Where the number and the time of sending stand in a message (`fanplan.live.message.FIXED`)."""

LAST, CHANNEL, DIRECTLY, UNKNOWN = range(4)
ROOM = 1 << 16
"""Copies that are looked at in one go."""


class Copy(NamedTuple):
    """Copies in the order of their arrival at a subscriber; ``path`` is a subscription.

    ``again``: it is marked as sent again.
    """

    who: Longs
    number: Longs
    path: Longs
    delay_ms: Floats
    again: Bools

    def only(self, own: Bools) -> Copy:
        """Some of them."""
        who, number, path, delay_ms, again = self
        return Copy(who[own], number[own], path[own], delay_ms[own], again[own])


def joined(parts: list[Copy]) -> Copy:
    """Copies one after the other."""
    who, number, path, delay_ms, again = map(np.concatenate, zip(*parts, strict=True))
    return Copy(who, number, path, delay_ms, again)


@dataclass
class Tally:
    """What all subscribers of a trial got; ``count`` of it so far."""

    count: int = 0
    parts: list[tuple[int, int, Longs, Longs, Floats, Bools]] = field(default_factory=list)

    def taken(self) -> Copy:
        """All copies so far, which are forgotten here."""
        parts, self.parts, self.count = self.parts, [], 0
        empty = np.empty(0, np.int64)
        who = [np.full(len(number), who) for who, _, number, *_ in parts]
        path = [first + sid for _, first, _, sid, *_ in parts]
        return Copy(
            np.concatenate([empty, *who]),
            np.concatenate([empty, *(part[2] for part in parts)]),
            np.concatenate([empty, *path]),
            np.concatenate([np.empty(0), *(part[4] for part in parts)]),
            np.concatenate([np.empty(0, bool), *(part[5] for part in parts)]),
        )


class CountingReceiver(Connection):
    """A connection of one subscriber. Its subscriptions are the paths from ``first`` on."""

    def __init__(
        self, plan: NatsPlan, who: int, heard: list[Listening], tally: Tally, first: int, name: str
    ) -> None:
        super().__init__(plan.address(heard[0].broker, heard[0].account), name)
        self.who, self.tally, self.first = who, tally, first
        for each in heard:
            self.subscribe(each.subject)

    def data_received(self, data: bytes) -> None:
        if self._rest:
            data = self._rest + data
        content, at = np.frombuffer(data, np.uint8), 0
        while True:
            sid, number, sent, channel = np.empty((4, ROOM), np.int64)
            count, at = scan(content, at, sid, number, sent, channel)
            if count:
                late: Floats = (time.time_ns() - sent[:count]).astype(np.float64) * 1e-6
                again = channel[:count] == REDELIVERED
                own = (number[:count].copy(), sid[:count].copy(), late, again)
                self.tally.parts.append((self.who, self.first, *own))
                self.tally.count += int(count)
            if count == ROOM:
                continue
            if data.startswith(b"MSG ", at) or (end := data.find(END, at)) < 0:
                break
            self.control(data[at:end])
            at = end + 2
        self._rest = data[at:]


@compiled
def scan(
    data: Bytes, at: int, sid: Longs, number: Longs, sent: Longs, channel: Longs
) -> tuple[int, int]:
    """Read messages from ``at`` on until one is not whole, or a line is no message: how many, and
    where it stopped."""
    count, size = 0, len(data)
    while count < len(sid) and at + 4 < size:
        # "MSG " subject " " sid " " size "\r\n"
        if data[at] != 77 or data[at + 1] != 83 or data[at + 2] != 71:
            break
        here = at + 4
        while here < size and data[here] != 32:
            here += 1
        here += 1
        own = 0
        while here < size and data[here] != 32:
            own = own * 10 + data[here] - 48
            here += 1
        here += 1
        long = 0
        while here < size and data[here] != 13:
            long = long * 10 + data[here] - 48
            here += 1
        here += 2
        if here + long + 2 > size:
            break
        sid[count] = own
        number[count], sent[count] = word(data, here + NUMBER_AT), word(data, here + SENT_AT)
        channel[count] = np.int32(word(data, here + CHANNEL_AT) & 0xFFFFFFFF)
        count += 1
        at = here + long + 2
    return count, at


@compiled
def word(data: Bytes, at: int) -> int:
    """Eight bytes as a number."""
    value = np.int64(0)
    for i in range(8):
        value |= np.int64(data[at + i]) << np.int64(8 * i)
    return int(value)


def subject_kind(subject: str) -> int:
    """What a subject is listened to for."""
    way = subject.split(".")[2]
    return {DIRECT: DIRECTLY, DEFAULT: UNKNOWN, "c": CHANNEL}.get(way[0], LAST)
