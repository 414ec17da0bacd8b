"""Stage `senders`: how much of each audience class every publisher sends."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fanplan.pipeline.derived import Derived
from fanplan.pipeline.routes import advertised, measured, published, total
from fanplan.pipeline.similarity import publisher_numbers

SENDERS = T.StructType(
    [
        T.StructField("publisher", T.IntegerType()),
        T.StructField("audience_class", T.IntegerType()),
        T.StructField("messages", T.DoubleType()),
    ]
)


def senders(source: Derived) -> None:
    """Publishers are numbered by name; messages are of the window, or rates if advertised."""
    source.stage("senders", None, SENDERS, lambda _: _senders(source))


def _senders(source: Derived) -> DataFrame:
    sent = (
        published(source, publisher_numbers, cells=True, carried="weight")
        if measured(source)
        else advertised(source, publisher_numbers, source.grid)
    )
    flows = source.read("flows").filter("audience_class >= 0")
    classes = flows.select("topic_id", "cell", "audience_class")
    own = sent.select("topic_id", "cell", F.col("source").alias("publisher"), "messages")
    found = own.join(classes, on=["topic_id", "cell"], how="inner")
    summed = found.groupBy("publisher", "audience_class").agg(total(F.col("messages")).alias("m"))
    return summed.select("publisher", "audience_class", F.col("m").alias("messages"))
