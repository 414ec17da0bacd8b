"""A message on the wire: a header, the topic, its coordinates, the payload.

All numbers are little-endian. After the fixed part come the topic in UTF-8, one float64 for each
attribute of its space, in order, and the payload up to the end.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from fanplan.core.errors import InputError, Problem

MAGIC = b"FP\x01"
FIXED = struct.Struct("<3sB4siiIHxxQQQ")
"""Magic with version, attributes, epoch, flow, channel, source, bytes of the topic, number,
sequence, sent."""
EPOCH_BYTES = 4
MOST_TOPIC_BYTES = (1 << 16) - 1
NO_CHANNEL = -1
REDELIVERED = -2
"""In place of a channel: sent again after a failure, so that it may come twice."""
KEPT, LAST, GONE = -3, -4, -5
"""In place of a channel: its source keeps it and can be asked for it; no publication, but the
number of the last one of its flow; no publication, as its source does not keep it any more. Of
these, and of what was asked for, the sequence is the number of the one before in its flow."""
ENDED, PROBE = -4, -5
"""In place of a flow: the last message of a source in an epoch; a trial whether an epoch's ways
lead everywhere. The number is then a turn, or that of a probe."""
CHANNEL_AT = 12
"""Where the channel stands in a message."""


@dataclass(frozen=True, slots=True)
class Header:
    """What the library itself needs of a message.

    ``epoch`` tells plans apart. ``number`` counts what a source publishes, so that a publication
    which comes on two ways is known as one; ``sequence`` counts what it sends on one channel, or by
    unicast to one subscriber, so that gaps are seen. ``sent_ns`` is the wall clock.
    """

    epoch: bytes
    flow: int
    source: int
    number: int
    channel: int = NO_CHANNEL
    sequence: int = 0
    sent_ns: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """A publication as it arrives. ``x`` are its coordinates in the space of its topic."""

    header: Header
    topic: str
    x: tuple[float, ...]
    payload: bytes


def epoch_of(seal: str) -> bytes:
    """The short name of a plan: the start of its seal, a hash of all that is in it."""
    return bytes.fromhex(seal[: 2 * EPOCH_BYTES])


def encode(message: Message) -> bytes:
    """The bytes of a message."""
    header, topic = message.header, message.topic.encode()
    if len(topic) > MOST_TOPIC_BYTES:
        what = f"has {len(topic):,} bytes, more than {MOST_TOPIC_BYTES:,}"
        raise InputError(Problem(f"topic {message.topic[:40]!r}…", what, "Use a shorter one"))
    fixed = FIXED.pack(
        MAGIC, len(message.x), header.epoch, header.flow, header.channel, header.source,
        len(topic), header.number, header.sequence, header.sent_ns,
    )  # fmt: skip
    return b"".join((fixed, topic, struct.pack(f"<{len(message.x)}d", *message.x), message.payload))


def decode(data: bytes) -> Message | None:
    """The message of some bytes; None if they are none, as anybody may send to an address."""
    if len(data) < FIXED.size or not data.startswith(MAGIC):
        return None
    _, axes, epoch, flow, channel, source, size, number, sequence, sent = FIXED.unpack_from(data)
    start = FIXED.size + size
    if len(data) < start + 8 * axes:
        return None
    try:
        topic = data[FIXED.size : start].decode()
    except UnicodeDecodeError:
        return None
    header = Header(epoch, flow, source, number, channel, sequence, sent)
    x = struct.unpack_from(f"<{axes}d", data, start)
    return Message(header, topic, x, bytes(data[start + 8 * axes :]))
