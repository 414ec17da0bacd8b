"""The wildcard join on Spark against the matcher that reads one pattern and one topic."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from meanings import pattern_matches
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from fanplan.data.ingest.points import mark_patterns
from fanplan.data.ingest.regions import number_topics, topics_of_patterns
from fanplan.workload.topics import TopicSyntax, problem_with_pattern

CASES: list[tuple[TopicSyntax, str, str, str]] = [("nats", ".", "*", ">"), ("mqtt", "/", "+", "#")]


def all_names(separator: str, tokens: list[str], longest: int) -> list[str]:
    return [
        separator.join(parts)
        for length in range(1, longest + 1)
        for parts in product(tokens, repeat=length)
    ]


@pytest.mark.parametrize(("syntax", "separator", "one", "rest"), CASES)
def test_every_pattern_finds_exactly_the_topics_it_matches(
    spark: SparkSession, tmp_path: Path, syntax: TopicSyntax, separator: str, one: str, rest: str
) -> None:
    names = all_names(separator, ["a", "b", "$c"], 3)
    patterns = [
        name
        for name in all_names(separator, ["a", "$c", one, rest], 3)
        if problem_with_pattern(name, syntax) is None
    ]
    topics = number_topics(
        [spark.createDataFrame([(n, 0) for n in names], "topic string, space int")],
        tmp_path / "aside",
    )
    asked = spark.createDataFrame([(p,) for p in patterns], "pattern string")
    found = topics_of_patterns(asked, topics, syntax).collect()
    ids = {row["topic_id"]: row["topic"] for row in topics.collect()}
    pairs = [(row["pattern"], ids[row["topic_id"]]) for row in found]
    expected = {(p, n) for p, n in product(patterns, names) if pattern_matches(p, n, syntax)}
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == expected


@pytest.mark.parametrize(("syntax", "separator", "one", "rest"), CASES)
def test_what_is_no_pattern_is_set_apart(
    spark: SparkSession, syntax: TopicSyntax, separator: str, one: str, rest: str
) -> None:
    odd = ["a", "", one, rest, f"a{one}", f"{rest}a", one + one, "a b", "\0", "$"]
    names = [*all_names(separator, odd, 3), "a" * 70_000]
    names = [name for name in names if name]  # A topic that is empty is missing.
    rows = spark.createDataFrame([(n,) for n in names], "topic string")
    marked = mark_patterns(rows.withColumn("_reason", F.lit(None).cast("string")), syntax)
    found = {row["topic"] for row in marked.filter("_reason IS NOT NULL").collect()}
    assert found == {name for name in names if problem_with_pattern(name, syntax)}


def test_topics_are_numbered_in_the_order_of_their_names(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = "topic string, space int"
    tables = [
        spark.createDataFrame([("b", 1), ("a", 0)], schema),
        spark.createDataFrame([("c", 2), ("b", 1)], schema),
    ]
    rows = [
        tuple(row)
        for row in number_topics(tables, tmp_path / "aside").orderBy("topic_id").collect()
    ]
    assert rows == [("a", 0, 0), ("b", 1, 1), ("c", 2, 2)]
