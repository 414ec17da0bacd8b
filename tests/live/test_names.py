"""Names go into subjects and come back, whatever is in them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanplan.core.errors import InputError
from fanplan.live.names import name_of, subject, subjects_of_pattern, token, topic_of
from fanplan.workload.topics import TopicSyntax, problem_with_pattern, to_regex

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
    with pytest.raises(InputError, match="no name"):
        name_of(text)


def covers(pattern: str, text: str) -> bool:
    """NATS' rule, token by token."""
    p, t = pattern.split("."), text.split(".")
    if p[-1] == ">":
        p, t = (p[:-1], t[: len(p) - 1]) if len(t) >= len(p) else (p, [])
    return len(p) == len(t) and all(a in ("*", b) for a, b in zip(p, t, strict=True))


WORDS = st.lists(st.sampled_from(["a", "b", "", "a b", "*x"]), min_size=1, max_size=3)
WILD = st.lists(st.sampled_from(["a", "b", "", "one", "rest"]), min_size=1, max_size=3)


@given(WILD, WORDS, st.sampled_from(["nats", "mqtt"]))
def test_a_pattern_covers_the_same_topics(
    wild: list[str], words: list[str], syntax: TopicSyntax
) -> None:
    between, one, rest = (".", "*", ">") if syntax == "nats" else ("/", "+", "#")
    pattern = between.join({"one": one, "rest": rest}.get(word, word) for word in wild)
    topic = between.join(words)
    if problem_with_pattern(pattern, syntax) or problem_with_pattern(topic, syntax):
        return
    means = re.match(to_regex(pattern, syntax), topic) is not None
    found = [covers(s, subject(topic, syntax)) for s in subjects_of_pattern(pattern, syntax)]
    assert any(found) == means
    assert sum(found) <= 1
