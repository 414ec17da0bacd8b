"""Topics and patterns: the rules of NATS and MQTT, and the regular expressions for Spark."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from meanings import pattern_matches

from fanplan.workload.topics import (
    Patterns,
    TopicSyntax,
    is_pattern,
    overlap,
    problem_with_pattern,
    problem_with_topic,
    separator,
    to_regex,
    tokens,
)


@pytest.mark.parametrize(
    ("pattern", "topic"),
    [
        ("a.b", "a.b"),
        ("a.*", "a.b"),
        ("*.b", "a.b"),
        ("a.>", "a.b"),
        ("a.>", "a.b.c"),
        (">", "a"),
        (">", "$SYS.x"),
        ("*.>", "a.b"),
        ("a*", "a*"),
        ("a.+", "a.+"),
    ],
)
def test_nats_matches(pattern: str, topic: str) -> None:
    assert pattern_matches(pattern, topic, "nats")


@pytest.mark.parametrize(
    ("pattern", "topic"),
    [
        ("a.b", "a"),
        ("a.*", "a"),
        ("a.*", "a.b.c"),
        ("a.>", "a"),
        ("a.>", "ab.c"),
        ("*", "a.b"),
        ("*.>", "a"),
        ("a*", "ab"),
        ("A.b", "a.b"),
    ],
)
def test_nats_does_not_match(pattern: str, topic: str) -> None:
    assert not pattern_matches(pattern, topic, "nats")


@pytest.mark.parametrize(
    ("pattern", "topic"),
    [
        ("a/b", "a/b"),
        ("a/+", "a/b"),
        ("a/+", "a/"),
        ("+/+", "/b"),
        ("a/#", "a"),
        ("a/#", "a/b/c"),
        ("a/#", "a/"),
        ("#", "a/b"),
        ("#", "/"),
        ("+/#", "a"),
        ("$SYS/#", "$SYS/load"),
        ("a/+", "a/$b"),
    ],
)
def test_mqtt_matches(pattern: str, topic: str) -> None:
    assert pattern_matches(pattern, topic, "mqtt")


@pytest.mark.parametrize(
    ("pattern", "topic"),
    [
        ("a/+", "a"),
        ("a/+", "a/b/c"),
        ("+", "/b"),
        ("a/#", "ab"),
        ("#", "$SYS/load"),
        ("+/load", "$SYS/load"),
        ("a.*", "a.b"),
    ],
)
def test_mqtt_does_not_match(pattern: str, topic: str) -> None:
    assert not pattern_matches(pattern, topic, "mqtt")


def test_exact_topics_have_no_wildcards() -> None:
    assert pattern_matches("a.*", "a.*", "exact")
    assert not pattern_matches("a.*", "a.b", "exact")
    assert not is_pattern("a.>", "exact")
    assert separator("exact") is None
    assert tokens("a.b/c", "exact") == ["a.b/c"]


def test_tokens_and_patterns() -> None:
    assert (separator("nats"), separator("mqtt")) == (".", "/")
    assert tokens("a.b", "nats") == ["a", "b"]
    assert tokens("/a//b", "mqtt") == ["", "a", "", "b"]
    assert is_pattern("a.>", "nats")
    assert not is_pattern("a>.b", "nats")
    assert is_pattern("+/b", "mqtt")
    assert not is_pattern("a.>", "mqtt")


@pytest.mark.parametrize(
    ("name", "syntax", "words"),
    [
        ("", "exact", "empty"),
        ("", "nats", "empty"),
        ("", "mqtt", "empty"),
        ("a..b", "nats", "empty token"),
        (".a", "nats", "empty token"),
        ("a.", "nats", "empty token"),
        ("a b", "nats", "white space"),
        ("a\0", "mqtt", "null character"),
        ("é" * 40_000, "mqtt", "65535 bytes"),
    ],
)
def test_names_that_are_wrong_anywhere(name: str, syntax: TopicSyntax, words: str) -> None:
    assert words in str(problem_with_topic(name, syntax))
    assert words in str(problem_with_pattern(name, syntax))


@pytest.mark.parametrize(
    ("name", "syntax"),
    [("a.*", "nats"), (">", "nats"), ("a/+", "mqtt"), ("#", "mqtt"), ("a+/b", "mqtt")],
)
def test_nothing_is_published_to_a_pattern(name: str, syntax: TopicSyntax) -> None:
    assert "only for subscriptions" in str(problem_with_topic(name, syntax))


@pytest.mark.parametrize(
    ("pattern", "syntax", "words"),
    [
        ("a.>.b", "nats", "last token"),
        ("#/a", "mqtt", "last token"),
        ("a#", "mqtt", "whole level"),
        ("a/+b", "mqtt", "whole level"),
    ],
)
def test_patterns_that_are_wrong(pattern: str, syntax: TopicSyntax, words: str) -> None:
    assert words in str(problem_with_pattern(pattern, syntax))


@pytest.mark.parametrize(
    ("name", "syntax"),
    [("a b.* /", "exact"), ("a.b", "nats"), ("a*", "nats"), ("/a//b ", "mqtt"), ("$SYS/x", "mqtt")],
)
def test_good_topics(name: str, syntax: TopicSyntax) -> None:
    assert problem_with_topic(name, syntax) is None
    assert problem_with_pattern(name, syntax) is None


CHARACTERS = "ab$+#*>./\\^[](){}?|&~- \n\r\u2028é😀"
SYNTAXES: list[TopicSyntax] = ["exact", "nats", "mqtt"]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str, TopicSyntax]:
    """A pattern, a topic that often resembles it, and their syntax."""
    syntax = draw(st.sampled_from(SYNTAXES))
    token = st.one_of(
        st.sampled_from(["a", "b", "$a", "*", ">", "+", "#", ""]), st.text(CHARACTERS, max_size=3)
    )
    between = separator(syntax) or "."
    pattern = draw(st.lists(token, min_size=1, max_size=4))
    topic = [draw(st.one_of(st.just(part), token)) for part in pattern]
    topic += draw(st.lists(token, max_size=2))
    return between.join(pattern), between.join(topic), syntax


@settings(max_examples=1000)
@given(pairs())
@example(("a", "a\n", "mqtt"))
@example(("#", "$a", "mqtt"))
@example(("/#", "", "mqtt"))
@example(("+/#", "/", "mqtt"))
def test_the_regular_expression_says_the_same(pair: tuple[str, str, TopicSyntax]) -> None:
    pattern, topic, syntax = pair
    if problem_with_pattern(pattern, syntax) or problem_with_topic(topic, syntax):
        return
    found = re.search(to_regex(pattern, syntax), topic) is not None
    assert found == pattern_matches(pattern, topic, syntax)


@given(pairs())
def test_a_valid_topic_matches_itself(pair: tuple[str, str, TopicSyntax]) -> None:
    _, topic, syntax = pair
    if problem_with_topic(topic, syntax) is None:
        assert problem_with_pattern(topic, syntax) is None
        assert pattern_matches(topic, topic, syntax)
        assert not is_pattern(topic, syntax)


TOKENS: dict[TopicSyntax, list[str]] = {
    "exact": ["a", "b.c", "*"],
    "nats": ["a", "b", "*", ">"],
    "mqtt": ["a", "$b", "", "+", "#"],
}


def short_names(syntax: TopicSyntax) -> list[str]:
    """All names of up to three tokens: the syntax' wildcards, and few others."""
    between, parts = separator(syntax) or ".", TOKENS[syntax]
    return [between.join(name) for size in (1, 2, 3) for name in product(parts, repeat=size)]


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_patterns_of_a_topic_are_those_that_match_it(syntax: TopicSyntax) -> None:
    names = short_names(syntax)
    valid = [name for name in names if problem_with_pattern(name, syntax) is None]
    topics = [name for name in names if problem_with_topic(name, syntax) is None]
    patterns = Patterns(syntax)
    for pattern in [*valid, *valid[::2]]:
        patterns.add(pattern)
    for pattern in [*valid[::2], *valid[::3]]:
        patterns.remove(pattern)
    left = [pattern for n, pattern in enumerate(valid) if n % 3]
    for topic in topics:
        meant = sorted(pattern for pattern in left if pattern_matches(pattern, topic, syntax))
        assert sorted(patterns.meaning(topic)) == meant
    for pattern in left:
        patterns.remove(pattern)
    assert not patterns._begun
    assert not patterns._there


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_patterns_overlap_if_a_topic_matches_both(syntax: TopicSyntax) -> None:
    names = [name for name in short_names(syntax) if "$" not in name]
    valid = [name for name in names if problem_with_pattern(name, syntax) is None]
    topics = [name for name in names if not is_pattern(name, syntax)]
    meant = {p: {t for t in topics if pattern_matches(p, t, syntax)} for p in valid}
    wrong = [(a, b) for a in valid for b in valid
             if overlap(a, b, syntax) != bool(meant[a] & meant[b])]  # fmt: skip
    assert wrong == []
