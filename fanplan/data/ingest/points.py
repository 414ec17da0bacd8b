"""Publications as points: each topic's space, and the coordinates of each publication in it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fanplan.data.read.formats import attribute_column
from fanplan.data.read.rows import ANNOTATIONS, mark_where, reason_about
from fanplan.data.read.times import as_number
from fanplan.data.sizes import small_table
from fanplan.data.tables import coordinates
from fanplan.workload.description import Description
from fanplan.workload.space import CategoryAttribute, NumberAttribute
from fanplan.workload.times import Moment, Span
from fanplan.workload.topics import MQTT_MAX_BYTES, TopicSyntax, is_pattern, to_regex

PUBLISHED = ("time", "zone", "publisher", "topic", "bytes")
NOT_DECLARED = "topic: not declared in workload.toml"
# Vertical tab by its number: Java takes \v for any line end. No line end gets past, so $ is safe.
NOT_NATS = r"[ \t\r\n\f\x0b]|^\.|\.$|\.\.|(?:^|\.)[*>](?:\.|$)"
NOT_MQTT = r"[+#\x00]"
NOT_NATS_PATTERN = r"[ \t\r\n\f\x0b]|^\.|\.$|\.\.|(?:^|\.)>\."
NOT_MQTT_PATTERN = r"#[\s\S]|[^/]#|[^/]\+|\+[^/]|\x00"


def to_points(publications: DataFrame, description: Description) -> DataFrame:
    """Annotated publications with coordinates x0, x1, … instead of attribute values.

    Beyond a topic's own attributes a coordinate is NaN. Minus zero becomes zero.
    """
    rows = mark_topics(publications, description.topic_syntax)
    rows = with_space(rows, description)
    undeclared = reason_about(NOT_DECLARED, F.col("topic"))
    rows = mark_where(rows, F.col("space").isNull(), undeclared)
    rows = reduce(
        lambda rows, position: with_coordinate(rows, position, description),
        range(len(description.attributes)),
        rows,
    )
    axes = [axis_value(axis, description) for axis in range(description.dimensions)]
    named = [value.alias(n) for value, n in zip(axes, coordinates(len(axes)), strict=True)]
    return rows.select(*PUBLISHED, *named, *ANNOTATIONS)


def observed_times(points: DataFrame) -> Span | None:
    """When the first and the last were published; None if nothing says when."""
    moment = F.struct("time", "zone")
    timed = points.filter(F.col("time").isNotNull())
    found = timed.agg(F.min(moment).alias("first"), F.max(moment).alias("last")).collect()[0]
    if found["first"] is None:
        return None
    return Span(Moment(*found["first"]), Moment(*found["last"]))


# ---- topics


def mark_topics(rows: DataFrame, syntax: TopicSyntax) -> DataFrame:
    """Names that nothing can be published to: what `problem_with_topic` finds, row by row."""
    reason = "has white space, an empty token or a wildcard"
    if syntax == "mqtt":
        reason = f"has a wildcard, a null character or more than {MQTT_MAX_BYTES} bytes"
    return mark_syntax(rows, syntax, {"nats": NOT_NATS, "mqtt": NOT_MQTT}, reason)


def mark_patterns(rows: DataFrame, syntax: TopicSyntax) -> DataFrame:
    """Names that nobody can subscribe to: what `problem_with_pattern` finds, row by row."""
    reason = "has white space, an empty token, or > before the end"
    if syntax == "mqtt":
        reason = (
            "has # before the end, a wildcard that is no whole level, a null character "
            f"or more than {MQTT_MAX_BYTES} bytes"
        )
    wrong = {"nats": NOT_NATS_PATTERN, "mqtt": NOT_MQTT_PATTERN}
    return mark_syntax(rows, syntax, wrong, reason)


def mark_syntax(
    rows: DataFrame, syntax: TopicSyntax, wrong: Mapping[str, str], reason: str
) -> DataFrame:
    """Topics in which the expression of their syntax finds something, or that are too long."""
    if syntax not in wrong:
        return rows
    topic = F.col("topic")
    found = topic.rlike(wrong[syntax])
    if syntax == "mqtt":
        found |= F.octet_length(topic) > MQTT_MAX_BYTES
    return mark_where(rows, found, reason_about(f"topic: {reason}", topic))


def with_space(rows: DataFrame, description: Description) -> DataFrame:
    """Rows with ``space``, the position of their topic's space; null if it is not declared.

    An exact entry goes before patterns, and patterns in the order of the description.
    """
    if not description.topics:
        return rows.withColumn("space", F.lit(0))
    syntax = description.topic_syntax
    exact = {e.pattern: e.space for e in description.topics if not is_pattern(e.pattern, syntax)}
    patterns = [e for e in description.topics if is_pattern(e.pattern, syntax)]
    rows = looked_up(rows, "topic", exact, "_exact")
    matching = (
        F.when(F.col("topic").rlike(to_regex(e.pattern, syntax)), e.space) for e in patterns
    )
    return rows.withColumn("space", F.coalesce("_exact", *matching)).drop("_exact")


def looked_up(rows: DataFrame, column: str, values: Mapping[str, int], name: str) -> DataFrame:
    """Rows with a column ``name``: what the small table ``values`` has for a text, or null."""
    schema = "_text string, _value int"
    table = small_table(rows.sparkSession, list(values.items()), schema)
    joined = rows.join(table, on=F.col(column) == F.col("_text"), how="left")
    return joined.withColumnRenamed("_value", name).drop("_text")


# ---- attributes


def with_coordinate(rows: DataFrame, position: int, description: Description) -> DataFrame:
    """Rows with the coordinate of one attribute, marked where their topic needs it in vain."""
    name, attribute = list(description.attributes.items())[position]
    given = F.col(attribute_column(position))
    needed = F.col("space").isin(spaces_with(name, description))
    rows = mark_where(rows, needed & given.isNull(), f"{name}: no value")
    if isinstance(attribute, CategoryAttribute):
        return with_category(rows, position, attribute, needed)
    return with_number(rows, position, attribute, needed)


def spaces_with(name: str, description: Description) -> list[int]:
    return [i for i, space in enumerate(description.spaces) if space.axis(name) is not None]


def with_category(
    rows: DataFrame, position: int, attribute: CategoryAttribute, needed: Column
) -> DataFrame:
    """The coordinate of a category value is its position in the list."""
    column, found = attribute_column(position), coordinate_column(position)
    places = {value: place for place, value in enumerate(attribute.values)}
    rows = looked_up(rows, column, places, found)
    reason = reason_about(f"{attribute.name}: not one of its values", F.col(column))
    return mark_where(rows, needed & F.col(found).isNull(), reason)


def with_number(
    rows: DataFrame, position: int, attribute: NumberAttribute, needed: Column
) -> DataFrame:
    """The coordinate of a number is itself; it must lie in its domain."""
    column, found = attribute_column(position), coordinate_column(position)
    number = number_in(F.col(column), rows.schema[column].dataType.typeName())
    inside = F.coalesce(F.col(found).between(attribute.min, attribute.max), F.lit(False))
    domain = f"a number from {attribute.min!r} to {attribute.max!r}"
    reason = reason_about(f"{attribute.name}: not {domain}", F.col(column))
    return mark_where(rows.withColumn(found, number), needed & ~inside, reason)


def number_in(given: Column, type_: str) -> Column:
    """A double; adding zero turns minus zero, which hashes and sorts apart, into zero."""
    return as_number(given, "string" if type_ == "string" else "double") + F.lit(0.0)


def coordinate_column(position: int) -> str:
    return f"_coordinate{position}"


def axis_value(axis: int, description: Description) -> Column:
    """The coordinate on an axis: of whichever attribute the row's space has there."""
    value = F.when(F.lit(False), F.lit(0.0))
    for position, name in enumerate(description.attributes):
        spaces = [i for i, space in enumerate(description.spaces) if space.axis(name) == axis]
        if spaces:
            own = F.col(coordinate_column(position)).cast("double")
            value = value.when(F.col("space").isin(spaces), own)
    return value.otherwise(F.lit(float("nan")))
