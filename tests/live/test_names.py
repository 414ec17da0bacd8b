"""Names go into subjects and come back, whatever is in them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanplan.core.errors import InputError
from fanplan.live.names import name_of, subject, token, topic_of
from fanplan.workload.topics import TopicSyntax

SYNTAXES = st.sampled_from(["exact", "nats", "mqtt"])


@given(st.text())
def test_a_name_is_read_back(name: str) -> None:
    assert name_of(token(name)) == name
    assert re.fullmatch(r"[A-Za-z0-9_%-]+", token(name))


@given(st.text(), SYNTAXES)
def test_a_topic_is_read_back(topic: str, syntax: TopicSyntax) -> None:
    assert topic_of(subject(topic, syntax), syntax) == topic


@pytest.mark.parametrize("text", ["a.b", "%2", "%61", "a%", "", "%ff", "%FF", "é"])
def test_what_was_not_written_so_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not a name"):
        name_of(text)
