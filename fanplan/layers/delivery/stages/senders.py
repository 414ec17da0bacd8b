"""Stages `senders` and `sender_times`: how much of each audience class who sends, and when."""

from __future__ import annotations

from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as F

from fanplan.data.ingest.cells import unordered_sum
from fanplan.data.ingest.derived import Derived
from fanplan.layers.delivery.stages.tables import SENDER_TIMES, SENDERS
from fanplan.layers.overlay.stages.routes import (
    advertised_points,
    published_points,
    traffic_is_measured,
)
from fanplan.layers.overlay.stages.similarity import publisher_numbers


def senders(source: Derived) -> None:
    """Publishers are numbered by name; messages are of the window, or rates if advertised."""
    source.stage(SENDERS, None, lambda _: _senders(source))


def _senders(source: Derived) -> DataFrame:
    sent = (
        published_points(source, publisher_numbers, cells=True, carried="weight")
        if traffic_is_measured(source)
        else advertised_points(source, publisher_numbers, source.grid)
    )
    summed = _of_classes(source, sent).agg(unordered_sum(F.col("messages")).alias("m"))
    return summed.select("publisher", "audience_class", F.col("m").alias("messages"))


def sender_times(source: Derived) -> None:
    """Times in seconds of what each publisher sent of each class, ascending; all must have one."""
    source.stage(SENDER_TIMES, None, lambda _: _sender_times(source))


def _sender_times(source: Derived) -> DataFrame:
    points = published_points(source, publisher_numbers, cells=False, carried="time")
    times = F.sort_array(F.collect_list("time")).alias("times")
    return _of_classes(source, source.placed(points)).agg(times)


def _of_classes(source: Derived, sent: DataFrame) -> GroupedData:
    """What was sent in cells, by publisher and audience class."""
    flows = source.read("flows").filter("audience_class >= 0")
    classes = flows.select("topic_id", "cell", "audience_class")
    own = sent.withColumnRenamed("source", "publisher")
    found = own.join(classes, on=["topic_id", "cell"], how="inner")
    return found.groupBy("publisher", "audience_class")
