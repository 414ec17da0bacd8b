"""What is sent is what arrives; what is no message is told from one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanplan.core.errors import InputError
from fanplan.live.message import FIXED, Header, Message, decode, encode, epoch_of

INT, WORD, LONG = (
    st.integers(-(2**31), 2**31 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**64 - 1),
)
HEADERS = st.builds(Header, st.binary(min_size=4, max_size=4), INT, WORD, LONG, INT, LONG, LONG)
NUMBERS = st.lists(st.floats(allow_nan=False), max_size=8).map(tuple)
MESSAGES = st.builds(Message, HEADERS, st.text(), NUMBERS, st.binary())


@given(MESSAGES)
def test_a_message_is_read_back(message: Message) -> None:
    assert decode(encode(message)) == message


@given(MESSAGES, st.data())
def test_a_cut_message_is_none_or_has_a_shorter_payload(
    message: Message, data: st.DataObject
) -> None:
    whole = encode(message)
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    head = len(whole) - len(message.payload)
    found = decode(cut)
    assert (found is None) == (len(cut) < head)
    assert found is None or message.payload.startswith(found.payload)


@given(st.binary(max_size=200))
def test_other_bytes_are_no_message(data: bytes) -> None:
    assert decode(data) is None


def test_a_topic_that_is_not_text_is_no_message() -> None:
    good = encode(Message(Header(b"abcd", 0, 0, 0), "t", (), b""))
    assert decode(good[: FIXED.size] + b"\xff") is None


def test_a_topic_has_a_limit() -> None:
    with pytest.raises(InputError, match="more than 65,535"):
        encode(Message(Header(b"abcd", 0, 0, 0), "é" * 40_000, (), b""))


def test_an_epoch_is_the_start_of_a_seal() -> None:
    assert epoch_of("00ff10aa" + "7" * 56) == b"\x00\xff\x10\xaa"
