"""Publications as points: the space of each topic and the coordinates in it."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest
from meanings import space_of
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from fanplan.data.ingest.points import mark_topics, to_points, with_space
from fanplan.data.read.formats import attribute_column
from fanplan.data.read.rows import reason_text
from fanplan.workload.description import Description, TopicEntry
from fanplan.workload.space import PLAIN, CategoryAttribute, NumberAttribute, Space
from fanplan.workload.topics import TopicSyntax, problem_with_topic

PRICE = NumberAttribute("price", -5.0, 100.0)
VENUE = CategoryAttribute("venue", ("N", "Q", "Z"))
MARKET = Description(
    "market",
    topic_syntax="nats",
    attributes={"price": PRICE, "venue": VENUE},
    topics=(
        TopicEntry("quotes.*", 1),
        TopicEntry("quotes.ibm", 2),
        TopicEntry("quotes.>", 3),
        TopicEntry("alerts", 0),
    ),
    spaces=(PLAIN, Space((VENUE, PRICE), (3, 10)), Space((PRICE,), (10,)), Space((VENUE,), (3,))),
)


def annotated(spark: SparkSession, rows: list[tuple[Any, ...]], price: str = "string") -> DataFrame:
    """Rows of (topic, price, venue) as they come from a file."""
    schema = f"topic string, {attribute_column(0)} {price}, {attribute_column(1)} string"
    return spark.createDataFrame(rows, schema).select(
        F.lit(1.0).alias("time"),
        F.lit("Z").alias("zone"),
        F.lit("p").alias("publisher"),
        "topic",
        F.lit(8).cast("bigint").alias("bytes"),
        attribute_column(0),
        attribute_column(1),
        F.lit("publications.csv").alias("_source"),
        F.monotonically_increasing_id().alias("_line"),
        F.lit("raw").alias("_raw"),
        F.lit(None).cast("string").alias("_reason"),
    )


def points(rows: DataFrame, description: Description) -> list[Row]:
    found = to_points(rows, description).withColumn("_reason", reason_text())
    return found.orderBy("_line").collect()


def test_each_topic_has_its_own_axes(spark: SparkSession) -> None:
    given_rows = [
        ("quotes.sun", "-0.0", "Q"),
        ("quotes.ibm", "100", None),
        ("quotes.a.b", "rubbish", "Z"),
        ("alerts", None, "?"),
    ]
    rows = points(annotated(spark, given_rows), MARKET)
    assert [row["_reason"] for row in rows] == [None] * 4
    found = [(row["x0"], row["x1"]) for row in rows]
    assert str(found) == str([(1.0, 0.0), (100.0, math.nan), (2.0, math.nan), (math.nan, math.nan)])


def test_every_bad_point_has_its_reason(spark: SparkSession) -> None:
    number = "price: not a number from -5.0 to 100.0"
    name = "topic: has white space, an empty token or a wildcard"
    cases = {
        ("quotes.sun", None, "N"): "price: no value",
        ("quotes.sun", "1", None): "venue: no value",
        ("quotes.sun", "1", "X"): "venue: not one of its values: X",
        ("quotes.sun", "dear", "N"): f"{number}: dear",
        ("quotes.sun", "NaN", "N"): f"{number}: NaN",
        ("quotes.sun", "1e999", "N"): f"{number}: 1e999",
        ("quotes.ibm", "100.1", None): f"{number}: 100.1",
        ("quotes.ibm", "-6", None): f"{number}: -6",
        ("trades.ibm", "1", "N"): "topic: not declared in workload.toml: trades.ibm",
        ("quotes.*", "1", "N"): f"{name}: quotes.*",
        ("quotes..a", "1", "N"): f"{name}: quotes..a",
    }
    rows = points(annotated(spark, list(cases)), MARKET)
    assert [row["_reason"] for row in rows] == list(cases.values())


def test_numbers_from_parquet(spark: SparkSession) -> None:
    values = [
        (5.5, None),
        (-0.0, None),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (101.0, "101.0"),
    ]
    given_rows = [("quotes.ibm", value, None) for value, _ in values]
    rows = points(annotated(spark, given_rows, price="double"), MARKET)
    assert [math.copysign(1, row["x0"]) for row in rows[:2]] == [1.0, 1.0]
    for row, (_, expected) in zip(rows, values, strict=True):
        assert (row["_reason"] is None) == (expected is None)
        assert (expected or "") in (row["_reason"] or "")


def test_without_topics_every_topic_is_plain(spark: SparkSession) -> None:
    (row,) = points(annotated(spark, [("anything", "x", "y")]), Description("plain"))
    assert row["_reason"] is None
    assert row.asDict().keys() == {
        *("time", "zone", "publisher", "topic", "bytes"),
        *("_source", "_line", "_raw", "_reason"),
    }


ALPHABET = ("a", "$", ".", "*", ">", "/", "+", "#", " ", "\n", "\u2003", "\x1c", "\0")


@pytest.mark.parametrize("syntax", ["exact", "nats", "mqtt"])
def test_topic_names_are_judged_as_elsewhere(spark: SparkSession, syntax: TopicSyntax) -> None:
    names = ["".join(name) for length in (1, 2, 3) for name in product(ALPHABET, repeat=length)]
    names.append("a" * 70_000)
    table = spark.createDataFrame([(name, None) for name in names], "topic string, _reason string")
    found = {row["topic"]: row["_reason"] for row in mark_topics(table, syntax).collect()}
    wrong = [n for n in names if bool(found[n]) != bool(problem_with_topic(n, syntax))]
    assert wrong == []


def test_spaces_are_found_as_elsewhere(spark: SparkSession) -> None:
    names = ["quotes.a", "quotes.ibm", "quotes.a.b", "alerts", "alerts.x", "quotes", "x"]
    table = spark.createDataFrame([(name,) for name in names], "topic string")
    found = {row["topic"]: row["space"] for row in with_space(table, MARKET).collect()}
    assert found == {name: space_of(MARKET, name) for name in names}
