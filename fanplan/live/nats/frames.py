"""Batches as NATS has them on the wire, written by a kernel.

A frame is ``PUB <subject> <size>``, then the message as `fanplan.live.message` has it. What is the
same for all messages of a flow, namely the subjects, is made once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bytes, Floats, Longs, starts_of
from fanplan.core.kernels import compiled
from fanplan.live.message import FIXED, MAGIC, NO_CHANNEL
from fanplan.live.transport import Batch

FIXED_BYTES = FIXED.size
# Where the fields of the fixed part stand.
AXES_AT, FLOW_AT, SIZE_AT, NUMBER_AT, SEQUENCE_AT = 3, 8, 20, 24, 32


class Texts(NamedTuple):
    """Byte strings one after the other: number i is ``data[starts[i]:starts[i + 1]]``."""

    data: Bytes
    starts: Longs


def texts(strings: Sequence[bytes]) -> Texts:
    return Texts(np.frombuffer(b"".join(strings), np.uint8), starts_of([len(s) for s in strings]))


class Content(NamedTuple):
    """The arrays of a batch that a kernel takes."""

    flow: Longs
    number: Longs
    before: Longs
    topic: Longs
    x: Floats
    payload: Bytes
    starts: Longs


class Heads(NamedTuple):
    """What a connection sends first of each flow: ``heads`` ``first[i]`` to ``first[i + 1]``.

    A flow may go to several subjects, or to none. Those of topics without a flow come last.
    """

    first: Longs
    heads: Texts


def framed_heads(lists: Sequence[Sequence[bytes]]) -> Heads:
    return Heads(starts_of([len(own) for own in lists]), texts([h for own in lists for h in own]))


def fixed_part(epoch: bytes, source: int, sent_ns: int, channel: int = NO_CHANNEL) -> Bytes:
    """The fixed part of a message, but for what differs from one to the next."""
    packed = FIXED.pack(MAGIC, 0, epoch, 0, channel, source, 0, 0, 0, sent_ns)
    return np.frombuffer(packed, np.uint8)


def framed(
    batch: Batch, rows: Longs, heads: Heads, topics: Texts, axes: Longs, fixed: Bytes
) -> bytes:
    """All frames of a batch for one connection; ``rows`` has the row of each in ``heads``."""
    payload = np.frombuffer(batch.payload, np.uint8)
    before = np.zeros_like(batch.number) if batch.before is None else batch.before
    content = Content(batch.flow, batch.number, before, batch.topic, batch.x, payload, batch.starts)
    out = np.empty(frames_size(rows, content, heads, topics, axes), np.uint8)
    return out[: write_frames(out, rows, content, heads, topics, axes, fixed)].tobytes()


@compiled
def frames_size(rows: Longs, content: Content, heads: Heads, topics: Texts, axes: Longs) -> int:
    """Bytes that are enough for all frames."""
    total, ends = 0, heads.heads.starts
    for i in range(len(rows)):
        t = content.topic[i]
        size = FIXED_BYTES + topics.starts[t + 1] - topics.starts[t] + 8 * axes[t]
        size += content.starts[i + 1] - content.starts[i]
        for k in range(heads.first[rows[i]], heads.first[rows[i] + 1]):
            # A blank, up to 20 digits and two line ends.
            total += ends[k + 1] - ends[k] + size + 25
    return total


@compiled
def write_frames(
    out: Bytes,
    rows: Longs,
    content: Content,
    heads: Heads,
    topics: Texts,
    axes: Longs,
    fixed: Bytes,
) -> int:
    """Write all frames; where they end."""
    at, ends = 0, heads.heads.starts
    for i in range(len(rows)):
        t = content.topic[i]
        name = topics.data[topics.starts[t] : topics.starts[t + 1]]
        payload = content.payload[content.starts[i] : content.starts[i + 1]]
        size = FIXED_BYTES + len(name) + 8 * axes[t] + len(payload)
        for k in range(heads.first[rows[i]], heads.first[rows[i] + 1]):
            at = put_bytes(out, at, heads.heads.data[ends[k] : ends[k + 1]])
            out[at] = 32
            at = put_digits(out, at + 1, size)
            out[at], out[at + 1] = 13, 10
            start = at + 2
            at = put_bytes(out, start, fixed)
            out[start + AXES_AT] = axes[t]
            put_number(out, start + FLOW_AT, content.flow[i], 4)
            put_number(out, start + SIZE_AT, len(name), 2)
            put_number(out, start + NUMBER_AT, content.number[i], 8)
            put_number(out, start + SEQUENCE_AT, content.before[i], 8)
            at = put_bytes(out, at, name)
            at = put_bytes(out, at, content.x[i, : axes[t]].view(np.uint8))
            at = put_bytes(out, at, payload)
            out[at], out[at + 1] = 13, 10
            at += 2
    return at


@compiled
def put_bytes(out: Bytes, at: int, some: Bytes) -> int:
    """Copy bytes; where they end."""
    out[at : at + len(some)] = some
    return at + len(some)


@compiled
def put_number(out: Bytes, at: int, value: int, size: int) -> None:
    """A number, its lowest byte first."""
    for k in range(size):
        out[at + k] = (value >> (8 * k)) & 0xFF


@compiled
def put_digits(out: Bytes, at: int, value: int) -> int:
    """A number above 0 as a person writes it; where it ends."""
    digits, rest = 0, value
    while rest:
        digits += 1
        rest //= 10
    for k in range(digits):
        out[at + digits - 1 - k] = 48 + value % 10
        value //= 10
    return at + digits
