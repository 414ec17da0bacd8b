"""What the kernel writes is what the plain encoder writes, and what NATS' own words say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fanplan.core.arrays import starts_of
from fanplan.live.message import Header, Message, encode
from fanplan.live.nats.frames import fixed_part, framed, framed_heads, texts
from fanplan.live.points import Topics
from fanplan.live.transport import Batch
from fanplan.workload.space import NumberAttribute, Space

NUMBER = NumberAttribute("a", -1e9, 1e9)
TOPICS = Topics(
    ("plain", "öne.é", "two"), (Space(), Space((NUMBER,)), Space((NUMBER,) * 2)), (0, 1, 2)
)
HEADS = [[b"PUB fp.0"], [b"PUB fp.1", b"PUB fp.c1"], [], [b"PUB fp.x.a"], [b"PUB fp.x.b"], []]
"""Of three flows, then of three topics."""

ONE = st.tuples(
    st.integers(-1, 2),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2),
    st.tuples(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9)),
    st.binary(max_size=30),
)


@given(st.lists(ONE, max_size=8), st.binary(min_size=4, max_size=4), st.integers(0, 2**32 - 1))
def test_frames_are_those_of_the_encoder(
    given_: list[tuple[int, int, int, tuple[float, float], bytes]], epoch: bytes, source: int
) -> None:
    axes = np.array([0, 1, 2])
    flow, number, topic = (np.array([g[i] for g in given_], np.int64) for i in range(3))
    x = np.array([g[3] for g in given_], np.float64).reshape(-1, 2)
    payloads = [g[4] for g in given_]
    starts = starts_of([len(payload) for payload in payloads])
    batch = Batch(TOPICS, flow, number, topic, x, b"".join(payloads), starts, 77, {})
    rows = np.where(flow < 0, 3 + topic, flow)
    names = texts([name.encode() for name in TOPICS.names])
    found = framed(batch, rows, framed_heads(HEADS), names, axes, fixed_part(epoch, source, 77))
    expected = b""
    for row, each in zip(rows.tolist(), batch, strict=True):
        header = Header(epoch, each.flow, source, each.number, sent_ns=77)
        content = encode(Message(header, each.topic, each.x, each.payload))
        for head in HEADS[row]:
            expected += head + b" %d\r\n%b\r\n" % (len(content), content)
    assert found == expected
