"""What subscriptions and advertisements mean: known topics, and disjoint boxes of their spaces.

Stages `topics` (numbered), `patterns` (the topics of each), `filters` (each compiled once),
`subscribers`, `subscriptions`, `regions` and `advertised`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from fanplan.core.tables import arrow_schema
from fanplan.data.ingest.cells import Batches
from fanplan.data.ingest.points import NOT_DECLARED
from fanplan.data.numbering import numbered
from fanplan.data.read.formats import KIND_ENDS
from fanplan.data.read.rows import mark_where, reason_about
from fanplan.data.schema import spark_schema
from fanplan.data.sizes import small_table, spread
from fanplan.data.tables import FILTERS
from fanplan.workload.description import Description
from fanplan.workload.selector import meaning_of
from fanplan.workload.space import Space
from fanplan.workload.topics import WILDCARDS, TopicSyntax, separator

# ---- topics


def number_topics(named: list[DataFrame], aside: Path) -> DataFrame:
    """Topics (topic, space) of several tables, each once, numbered in the order of their names."""
    distinct = (
        reduce(DataFrame.unionByName, named).groupBy("topic").agg(F.first("space").alias("space"))
    )
    known = numbered(distinct, "topic_id", "topic", aside=aside)
    return known.select("topic", "topic_id", "space")


def topics_of_patterns(patterns: DataFrame, topics: DataFrame, syntax: TopicSyntax) -> DataFrame:
    """(pattern, topic_id, space) for every topic that a pattern matches, without a cross join."""
    exact = patterns.join(topics, on=patterns["pattern"] == topics["topic"], how="inner")
    found = exact.select("pattern", "topic_id", "space")
    if syntax == "exact":
        return found
    return found.unionByName(_wildcard_matches(patterns, topics, syntax))


def _topic_tokens(column: str, syntax: TopicSyntax) -> Column:
    return F.split(column, "\\" + str(separator(syntax)))


def _is_pattern(column: str, syntax: TopicSyntax) -> Column:
    """Whether a name has a token that is a wildcard."""
    if syntax == "exact":
        return F.lit(False)
    special = WILDCARDS[syntax]
    return F.arrays_overlap(
        _topic_tokens(column, syntax), F.array(F.lit(special.one), F.lit(special.rest))
    )


def _wildcard_matches(patterns: DataFrame, topics: DataFrame, syntax: TopicSyntax) -> DataFrame:
    """Join on what a pattern says literally, then compare token by token."""
    one, rest = WILDCARDS[syntax].one, WILDCARDS[syntax].rest
    wild = (
        patterns.withColumn("p", _topic_tokens("pattern", syntax))
        .filter(_is_pattern("pattern", syntax))
        .withColumn("key", _pattern_key(one, rest))
    )
    named = topics.withColumn("t", _topic_tokens("topic", syntax)).withColumn(
        "key", F.explode(_topic_keys())
    )
    return (
        named.join(wild, on="key", how="inner")
        .filter(_tokens_match(one, rest, syntax))
        .select("pattern", "topic_id", "space")
    )


def _pattern_key(one: str, rest: str) -> Column:
    """The literal start of a pattern; failing that its first literal token; else nothing."""
    literal = F.transform("p", lambda token: ~token.isin(one, rest))
    start = F.array_position(literal, False) - 1
    position = F.array_position(literal, True).cast("int")
    return (
        F.when(start > 0, F.concat(F.lit("start:"), F.concat_ws("\0", F.slice("p", 1, start))))
        .when(position > 0, _token_key(position, F.element_at("p", position)))
        .otherwise(F.lit("any"))
    )


def _token_key(position: Column, token: Column) -> Column:
    return F.concat(F.lit("token:"), position.cast("string"), F.lit(":"), token)


def _topic_keys() -> Column:
    """All keys under which a pattern that matches the topic may stand."""
    positions = F.sequence(F.lit(1), F.size("t"))
    starts = F.transform(
        positions, lambda n: F.concat(F.lit("start:"), F.concat_ws("\0", F.slice("t", 1, n)))
    )
    tokens = F.transform(positions, lambda n: _token_key(n, F.element_at("t", n)))
    return F.concat(starts, tokens, F.array(F.lit("any")))


def _tokens_match(one: str, rest: str, syntax: TopicSyntax) -> Column:
    """Whether the tokens `t` of a topic match the tokens `p` of a pattern."""
    open_end = F.element_at("p", -1) == rest
    fixed = F.size("p") - open_end.cast("int")
    least = fixed + (1 if syntax == "nats" else 0)
    long_enough = F.when(open_end, F.size("t") >= least).otherwise(F.size("t") == fixed)
    same = F.forall(
        F.slice(F.arrays_zip("p", "t"), F.lit(1), fixed),
        lambda pair: (pair["p"] == one) | (pair["p"] == pair["t"]),
    )
    matches = long_enough & same
    if syntax == "mqtt":  # A leading wildcard does not reach the server's own `$` topics.
        first = F.element_at("p", 1)
        matches &= ~(first.isin(one, rest) & F.element_at("t", 1).startswith("$"))
    return matches


# ---- filters


def compile_filters(used: DataFrame, description: Description) -> DataFrame:
    """Verdicts on the distinct (filter, space) pairs of a table; each is compiled once."""
    distinct = used.select("filter", "space").distinct()
    dealt = spread(distinct, "filter", "space", evenly=True)
    return dealt.mapInArrow(partial(_compile_batches, description), spark_schema(FILTERS))


def _compile_batches(description: Description, batches: Batches) -> Batches:
    """Verdicts on distinct (filter, space)."""
    schema = arrow_schema(FILTERS)
    for batch in batches:
        rows = [_verdict(pair["filter"], pair["space"], description) for pair in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _verdict(text: str, number: int, description: Description) -> dict[str, object]:
    """What a filter means in a space, as a row."""
    space, most = description.spaces[number], description.limits.max_boxes
    found = meaning_of(text, space, most, description.attributes.keys())
    boxes = None if found.boxes is None else [{"lo": box.lo, "hi": box.hi} for box in found.boxes]
    return {"filter": text, "space": number, **found._asdict(), "boxes": boxes}


def spaces_used(rows: DataFrame, patterns: DataFrame) -> DataFrame:
    """(topic, filter, space) of a table: every space that a row's filter is compiled for."""
    spaces = patterns.select(F.col("pattern").alias("topic"), "space").distinct()
    return rows.select("topic", "filter").distinct().join(spaces, on="topic", how="inner")


def check_filters(
    rows: DataFrame, patterns: DataFrame, verdicts: DataFrame, syntax: TopicSyntax
) -> DataFrame:
    """Annotated rows with a reason where the topic is unknown or the filter has no boxes.

    A filter that uses an attribute which some of a pattern's spaces lack is fine as long as it
    applies to one. A pattern that means no topic yet waits for one.
    """
    applies = F.coalesce("applies", F.lit(True))
    findings = (
        spaces_used(rows, patterns)
        .join(verdicts, on=["filter", "space"], how="inner")
        .groupBy("topic", "filter")
        .agg(
            F.min(F.when(applies, F.col("error"))).alias("_error"),
            F.bool_or(applies & F.col("boxes").isNotNull()).alias("_fits"),
            F.min("error").alias("_misfit"),
        )
    )
    judged = rows.join(findings, on=["topic", "filter"], how="left")
    unknown = F.col("_fits").isNull() & ~_is_pattern("topic", syntax)
    judged = mark_where(judged, unknown, reason_about(NOT_DECLARED, F.col("topic")))
    judged = mark_where(judged, F.col("_error").isNotNull(), _bad_filter("_error"))
    judged = mark_where(judged, ~F.col("_fits"), _bad_filter("_misfit"))
    return judged.select(*rows.columns)


def _bad_filter(error: str) -> Column:
    """Where in the filter it is wrong does not make it another kind of reason."""
    told = F.regexp_replace(error, r"( \(at character \d+\))$", f"{KIND_ENDS}$1")
    return F.concat(F.lit("filter: "), told)


# ---- regions


def number_subscribers(subscriptions: DataFrame, aside: Path) -> DataFrame:
    """Subscribers in the order of their names."""
    names = subscriptions.select("subscriber").distinct()
    return numbered(names, "subscriber_id", "subscriber", aside=aside)


def number_subscriptions(subscriptions: DataFrame, subscribers: DataFrame) -> DataFrame:
    """Subscriptions with a number made of the subscriber's and of their rank among its own."""
    own = Window.partitionBy("subscriber_id").orderBy("topic", "filter")
    number = F.shiftleft(F.col("subscriber_id").cast("long"), 32) + F.row_number().over(own) - 1
    return subscriptions.join(subscribers, on="subscriber", how="inner").select(
        number.alias("subscription"), "subscriber", "subscriber_id", "topic", "filter", "broker"
    )


def _compiled_boxes(rows: DataFrame, patterns: DataFrame, verdicts: DataFrame) -> DataFrame:
    """Rows with the topics they mean and the boxes of their filter there."""
    meant = patterns.withColumnRenamed("pattern", "topic")
    boxes = verdicts.filter(F.col("boxes").isNotNull()).select("filter", "space", "boxes")
    return rows.join(meant, on="topic", how="inner").join(
        boxes, on=["filter", "space"], how="inner"
    )


def subscription_regions(
    subscriptions: DataFrame, patterns: DataFrame, verdicts: DataFrame
) -> DataFrame:
    """One row per subscription, topic and box."""
    boxed = _compiled_boxes(subscriptions, patterns, verdicts)
    return boxed.select(
        "topic_id", "subscription", "subscriber_id", F.explode("boxes").alias("box")
    ).select("topic_id", "subscription", "subscriber_id", "box.lo", "box.hi")


def advertised_boxes(
    advertisements: DataFrame, patterns: DataFrame, verdicts: DataFrame
) -> DataFrame:
    """One row per advertisement and box, with the share of the rate that its volume has."""
    total = F.aggregate("boxes", F.lit(0.0), lambda sum_, box: sum_ + _box_volume(box))
    boxed = _compiled_boxes(advertisements, patterns, verdicts).withColumn("total", total)
    rows = boxed.select("topic_id", "publisher", "rate", "total", F.explode("boxes").alias("box"))
    share = F.col("rate") * _box_volume(F.col("box")) / F.col("total")
    return rows.select("topic_id", "publisher", share.alias("rate"), "box.lo", "box.hi")


def _box_volume(box: Column) -> Column:
    sides = F.zip_with(box["lo"], box["hi"], lambda low, high: high - low)
    return F.aggregate(sides, F.lit(1.0), lambda volume, side: volume * side)


def assumed_boxes(topics: DataFrame, spaces: Sequence[Space]) -> DataFrame:
    """One message a second on every topic, all over its space: where nothing is known of rates."""
    wholes = [(n, list(space.whole().lo), list(space.whole().hi)) for n, space in enumerate(spaces)]
    schema = "space int, lo array<double>, hi array<double>"
    boxes = small_table(topics.sparkSession, wholes, schema)
    return topics.join(boxes, on="space", how="inner").select(
        "topic_id", F.lit("").alias("publisher"), F.lit(1.0).alias("rate"), "lo", "hi"
    )
