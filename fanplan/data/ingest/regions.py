"""Stages `subscriptions`, `regions` and `advertised`: filters become disjoint boxes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from fanplan.data.ingest.traffic import Batches
from fanplan.data.numbering import numbered
from fanplan.data.read.rows import mark
from fanplan.workload.description import Description
from fanplan.workload.selector import SelectorError, attributes_of, compile_selector
from fanplan.workload.space import Box, Space

_BOXES = "array<struct<lo: array<double>, hi: array<double>>>"
_VERDICT = f"filter string, space int, applies boolean, boxes {_BOXES}, error string"
_BOX = pa.struct([("lo", pa.list_(pa.float64())), ("hi", pa.list_(pa.float64()))])
_VERDICT_ARROW = pa.schema(
    [
        ("filter", pa.string()),
        ("space", pa.int32()),
        ("applies", pa.bool_()),
        ("boxes", pa.list_(_BOX)),
        ("error", pa.string()),
    ]
)


def _verdict(text: str, number: int, description: Description) -> dict[str, object]:
    """The boxes of one filter in one space, or why there are none.

    A filter *applies* to a space that has all its attributes. A pattern may reach other spaces
    too; there it has the boxes, if any, where it holds without the missing attributes.
    """
    space, most = description.spaces[number], description.limits.max_boxes
    row: dict[str, object] = {"filter": text, "space": number, "boxes": None, "error": None}
    try:
        missing = attributes_of(text) - space.axes.keys()
        row["applies"] = not missing
        if missing <= description.attributes.keys():
            row["boxes"] = _listed(compile_selector(text, space, most, missing))
        if missing:
            compile_selector(text, space, most)
    except SelectorError as error:
        row["error"] = str(error)
    return row


def _listed(boxes: Iterable[Box]) -> list[dict[str, object]]:
    return [{"lo": box.lo, "hi": box.hi} for box in boxes]


def _compiled(description: Description) -> Callable[[Batches], Batches]:
    """A batch function over distinct (filter, space)."""

    def compile_batches(batches: Batches) -> Batches:
        for batch in batches:
            pairs = batch.to_pylist()
            rows = [_verdict(pair["filter"], pair["space"], description) for pair in pairs]
            yield pa.RecordBatch.from_pylist(rows, schema=_VERDICT_ARROW)

    return compile_batches


def compile_filters(used: DataFrame, description: Description) -> DataFrame:
    """Verdicts on the distinct (filter, space) pairs of a table; each is compiled once."""
    distinct = used.select("filter", "space").distinct()
    cores = distinct.sparkSession.conf.get("spark.sql.shuffle.partitions")
    spread = distinct.repartition(int(str(cores)), "filter", "space")
    return spread.mapInArrow(_compiled(description), _VERDICT)


def spaces_used(rows: DataFrame, patterns: DataFrame) -> DataFrame:
    """(topic, filter, space) of a table: every space that a row's filter is compiled for."""
    spaces = patterns.select(F.col("pattern").alias("topic"), "space").distinct()
    return rows.select("topic", "filter").distinct().join(spaces, on="topic", how="inner")


def check_filters(rows: DataFrame, patterns: DataFrame, verdicts: DataFrame) -> DataFrame:
    """Annotated rows with a reason where the topic is unknown or the filter has no boxes.

    A filter that uses an attribute which some of a pattern's spaces lack is fine as long as it
    applies to one.
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
    judged = mark(judged, F.col("_fits").isNull(), _unknown_topic())
    judged = mark(judged, F.col("_error").isNotNull(), _bad_filter("_error"))
    judged = mark(judged, ~F.col("_fits"), _bad_filter("_misfit"))
    return judged.select(*rows.columns)


def _unknown_topic() -> Column:
    return F.concat(
        F.lit("topic '"),
        F.col("topic"),
        F.lit("' is unknown: no topic of that name is declared, advertised or published"),
    )


def _bad_filter(error: str) -> Column:
    return F.concat(F.lit("filter: "), F.col(error))


def number_subscribers(subscriptions: DataFrame) -> DataFrame:
    """Subscribers in the order of their names."""
    names = subscriptions.select("subscriber").distinct()
    return names.select("subscriber", numbered("subscriber").alias("subscriber_id"))


def number_subscriptions(subscriptions: DataFrame, subscribers: DataFrame) -> DataFrame:
    """Subscriptions with a number made of the subscriber's and of their rank among its own."""
    own = Window.partitionBy("subscriber_id").orderBy("topic", "filter")
    number = F.shiftleft(F.col("subscriber_id").cast("long"), 32) + F.row_number().over(own) - 1
    return subscriptions.join(subscribers, on="subscriber", how="inner").select(
        number.alias("subscription"), "subscriber", "subscriber_id", "topic", "filter", "broker"
    )


def _boxes_of(rows: DataFrame, patterns: DataFrame, verdicts: DataFrame) -> DataFrame:
    """Rows with the topics they mean and the boxes of their filter there."""
    meant = patterns.withColumnRenamed("pattern", "topic")
    boxes = verdicts.filter(F.col("boxes").isNotNull()).select("filter", "space", "boxes")
    return rows.join(meant, on="topic", how="inner").join(
        boxes, on=["filter", "space"], how="inner"
    )


def regions(subscriptions: DataFrame, patterns: DataFrame, verdicts: DataFrame) -> DataFrame:
    """One row per subscription, topic and box."""
    boxed = _boxes_of(subscriptions, patterns, verdicts)
    return boxed.select(
        "topic_id", "subscription", "subscriber_id", F.explode("boxes").alias("box")
    ).select("topic_id", "subscription", "subscriber_id", "box.lo", "box.hi")


def advertised(advertisements: DataFrame, patterns: DataFrame, verdicts: DataFrame) -> DataFrame:
    """One row per advertisement and box, with the share of the rate that its volume has."""
    total = F.aggregate("boxes", F.lit(0.0), lambda sum_, box: sum_ + _volume(box))
    boxed = _boxes_of(advertisements, patterns, verdicts).withColumn("total", total)
    rows = boxed.select("topic_id", "publisher", "rate", "total", F.explode("boxes").alias("box"))
    share = F.col("rate") * _volume(F.col("box")) / F.col("total")
    return rows.select("topic_id", "publisher", share.alias("rate"), "box.lo", "box.hi")


def _volume(box: Column) -> Column:
    sides = F.zip_with(box["lo"], box["hi"], lambda low, high: high - low)
    return F.aggregate(sides, F.lit(1.0), lambda volume, side: volume * side)


def assumed(topics: DataFrame, spaces: Sequence[Space]) -> DataFrame:
    """One message a second on every topic, all over its space: where nothing is known of rates."""
    wholes = [(n, list(space.whole().lo), list(space.whole().hi)) for n, space in enumerate(spaces)]
    schema = "space int, lo array<double>, hi array<double>"
    boxes = topics.sparkSession.createDataFrame(wholes, schema)
    return topics.join(F.broadcast(boxes), on="space", how="inner").select(
        "topic_id", F.lit("").alias("publisher"), F.lit(1.0).alias("rate"), "lo", "hi"
    )
