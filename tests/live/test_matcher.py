"""A matcher tells at any time whom ingest would tell of the subscriptions that are there."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live_worlds import HEAD, SILENT, TOPICS, Point, Wish, draw_point, draw_wish, write_rows
from pyspark.sql import SparkSession

from fanplan.core.errors import InputError
from fanplan.core.progress import quiet
from fanplan.data.ingest.ingest import ingest_workload
from fanplan.data.reader import read_manifest
from fanplan.live import Matcher
from fanplan.live.entry import Entry, read_entry
from fanplan.workload.topics import TopicSyntax

Sent = list[tuple[str, Point]]


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workload")
    (folder / "workload.toml").write_text(HEAD)
    return folder


def messages(draw: Random, count: int) -> Sent:
    return [draw_point(draw, (*TOPICS, *SILENT)) for _ in range(count)]


def told(matcher: Matcher, sent: Sent) -> list[list[str]]:
    """Who wants each message, found one by one and those with the same attributes together."""
    alone = [matcher.match(topic, values) for topic, values in sent]
    for kind in {tuple(values) for _, values in sent}:
        own = [i for i, (_, values) in enumerate(sent) if tuple(values) == kind]
        columns = {name: [sent[i][1][name] for i in own] for name in kind}
        together = matcher.match_columns([sent[i][0] for i in own], columns)
        assert together == [alone[i] for i in own]
    return alone


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.integers(-6, 30), max_size=5))
def test_answers_are_those_of_a_plain_count(workload: Path, seed: int, steps: list[int]) -> None:
    """So many subscriptions come, or go, and somebody asks."""
    draw, matcher = Random(seed), Matcher(workload)
    there: dict[tuple[str, str, str], Wish] = {}
    for step in steps:
        for _ in range(step):
            wish = draw_wish(draw, f"u{draw.randrange(6)}")
            pattern = draw.choice((wish.pattern, wish.pattern, ">"))
            wish = Wish(wish.who, pattern, wish.ranges, wish.venues)
            if (key := (wish.who, pattern, wish.selector)) not in there:
                matcher.add(*key)
                there[key] = wish
        for key in draw.sample(sorted(there), min(len(there), max(0, -step))):
            matcher.remove(*key)
            del there[key]
        sent = messages(draw, 12)
        assert len(matcher) == len(there)
        assert told(matcher, sent) == [
            sorted({wish.who for wish in there.values() if wish.wants(*message)})
            for message in sent
        ]


FILTERS = (
    *("", " ", "TRUE", "price > 50", "NOT (price > 50)", "price <= 50 OR venue = 'N'"),
    *("price <> 3", "venue LIKE '%' AND size BETWEEN -1 AND 1", "NOT (venue = 'N' AND size < 0)"),
    *("size > 60", "sice > 6", "venue > 'N'", "price >", "price < 10 AND price > 20"),
)
PATTERNS = ("quotes.*", ">", "*.ibm", "trades.ibm", "quotes.sun", "news", "hush", "*.*.*", "old")


def test_subscriptions_mean_and_are_refused_as_by_ingest(
    spark: SparkSession, workload: Path, tmp_path: Path
) -> None:
    draw = Random(7)
    rows = [(f"u{n % 40}", draw.choice(PATTERNS), draw.choice(FILTERS)) for n in range(200)]
    # Ingest does not read the filter of a pattern that means no topic yet.
    rows = [row for row in rows if row[1:] != ("*.*.*", "price >")]
    rows += rows[:10]
    sent = messages(draw, 300)
    (tmp_path / "workload.toml").write_text(HEAD)
    write_rows(tmp_path / "subscriptions.csv", ["subscriber", "topic", "filter"], rows)
    write_rows(
        tmp_path / "publications.csv",
        ["topic", "price", "size", "venue"],
        [
            [topic, *(values.get(n, "") for n in ("price", "size", "venue"))]
            for topic, values in sent
        ],
    )
    dataset = tmp_path / "dataset"
    ingest_workload(lambda _: spark, tmp_path, dataset, {"lost_limit": 1.0}, quiet())

    matcher, kept = Matcher(workload), []
    for row in rows:
        with suppress(InputError):
            matcher.add(*row)
            kept.append(row)
    counted = next(t for t in read_manifest(dataset).tables if t.name == "subscriptions")
    assert len(matcher) == len(kept) == counted.kept < counted.rows
    tables = read_entry(dataset)
    entry = Entry(tables)
    audiences = [
        entry.audience(
            n := tables.topics.find(topic), entry.rows([tables.topics.point(n, values)])[0]
        )
        for topic, values in sent
    ]
    assert told(matcher, sent) == [[tables.subscribers[s] for s in people] for people in audiences]
    for row in kept:
        matcher.remove(*row)
    assert len(matcher) == 0
    assert set(map(len, told(matcher, sent))) == {0}
    assert [*matcher._owner, *matcher._whole, *matcher._patterns._begun] == []


@pytest.mark.parametrize(
    ("syntax", "patterns", "topic", "meant"),
    [
        (
            "nats",
            ("a.*", "a.>", ">", "a", "*.b.c", "*.*.c"),
            "a.b.c",
            ("a.>", ">", "*.b.c", "*.*.c"),
        ),
        ("mqtt", ("a/#", "#", "a", "+", "+/+", "a/+"), "a", ("a/#", "#", "a", "+")),
        ("mqtt", ("#", "+/x", "$SYS/#", "$SYS/+"), "$SYS/x", ("$SYS/#", "$SYS/+")),
        ("exact", ("a.*", "a.b", ">"), "a.b", ("a.b",)),
    ],
)
def test_topics_without_attributes(
    syntax: TopicSyntax, patterns: tuple[str, ...], topic: str, meant: tuple[str, ...]
) -> None:
    """Who asked in several ways is told once, as long as one of them is left."""
    matcher = Matcher(topic_syntax=syntax)
    for pattern in patterns:
        matcher.add(f"who wants {pattern}", pattern)
        matcher.add("all", pattern)
        matcher.add("all", pattern, "TRUE")
    assert matcher.match(topic) == sorted(["all", *(f"who wants {each}" for each in meant)])
    assert matcher.match_columns([topic, topic]) == 2 * [matcher.match(topic)]
    for pattern in meant:
        assert "all" in matcher.match(topic)
        matcher.remove("all", pattern)
        assert "all" in matcher.match(topic)
        matcher.remove("all", pattern, "TRUE")
    assert matcher.match(topic) == sorted(f"who wants {each}" for each in meant)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            ("ana", "quotes.*", "price > 50"),
            "subscription of 'ana' to 'quotes.*', price > 50: is al",
        ),
        (("ana", "quotes.*", "price >"), "filter 'price >': "),
        (("ana", "*.*.*", "price >"), "filter 'price >': "),
        (("ana", "trades.*", "size > 5"), "unknown attribute size: the topic has price"),
        (("ana", "news", "price > 5"), "unknown attribute price: the topic has no attributes"),
        (("ana", "quotes.*", "price > 'N'"), "cannot be compared with the string 'N'"),
        (("ana", "new"), "topic 'new': is not declared in workload.toml. Did you mean 'news'?"),
        (("ana", "quotes..ibm"), "it has an empty token"),
        (("ana", "quotes.>.x"), "the wildcard > may only be the last token"),
        (("", "news"), "subscriber: no value"),
        (("ana", 7), "topic: 7 is not a text"),
    ],
)
def test_what_cannot_be_added_is_named_and_changes_nothing(
    workload: Path, row: tuple[Any, ...], said: str
) -> None:
    matcher = Matcher(workload)
    matcher.add("ana", "quotes.*", "price > 50")
    before = matcher.match("quotes.ibm", {"price": 60, "size": 0, "venue": "N"})
    with pytest.raises(InputError) as error:
        matcher.add(*row)
    assert said in str(error.value)
    assert len(matcher) == 1
    assert before == matcher.match("quotes.ibm", {"price": 60, "size": 0, "venue": "N"}) == ["ana"]
    matcher.remove("ana", "quotes.*", "price > 50")
    with pytest.raises(
        InputError, match=r"is not there\. Give subscriber, topic and filter as they"
    ):
        matcher.remove("ana", "quotes.*", "price > 50")


@pytest.mark.parametrize(
    ("topic", "values", "said"),
    [
        ("quotes.*", {}, "wildcards (* and >) are only for subscriptions"),
        ("quote.ibm", {}, "topic 'quote.ibm': is not declared in workload.toml"),
        ("trades.ibm", {}, "a publication on trades.ibm: has no price"),
        ("trades.ibm", {"price": None}, "price: None is not a number from 0.0 to 100.0"),
        ("trades.ibm", {"price": 10**400}, "is not a number from 0.0 to 100.0"),
        ("trades.ibm", {"price": 101}, "price: 101 is not a number from 0.0 to 100.0"),
        ("news", {"price": 1}, "has 'price', which the topic does not have"),
    ],
)
def test_what_is_no_message_is_named(
    workload: Path, topic: str, values: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError) as error:
        Matcher(workload).match(topic, values)
    assert said in str(error.value)


def test_where_topics_come_from_is_clear(workload: Path) -> None:
    with pytest.raises(InputError, match=r"Set it in workload\.toml"):
        Matcher(workload, topic_syntax="nats")
    with pytest.raises(InputError, match="is not a folder"):
        Matcher(workload / "workload.toml")
    with pytest.raises(InputError, match="topic_syntax"):
        Matcher(topic_syntax="amqp")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="topics with different attributes"):
        Matcher(workload).match_columns(["news", "trades.ibm"], {"price": [1, 2]})
    assert Matcher(workload).match_columns([]) == []
