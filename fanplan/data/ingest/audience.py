"""Stages `classes` and `flows`: flows with equal audiences become one audience class.

Lossless: a plan for classes is a plan for their flows. Audiences are compared by a 128-bit hash of
the sorted subscriber numbers; that equal hashes mean equal audiences is verified, not assumed.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fanplan.core.errors import StageError
from fanplan.data.numbering import numbered

SALTS = range(4)


def signed(audiences: DataFrame, salt: int) -> DataFrame:
    """Audiences with their signature: two 64-bit hashes chained from different seeds."""
    return audiences.withColumns(
        {
            "high": F.xxhash64(F.lit(2 * salt), "subscribers"),
            "low": F.xxhash64(F.lit(2 * salt + 1), "subscribers"),
        }
    )


def collisions(audiences: DataFrame, salt: int) -> int:
    """How many signatures stand for more than one audience."""
    grouped = signed(audiences, salt).groupBy("high", "low")
    differ = F.min("subscribers") != F.max("subscribers")
    return grouped.agg(differ.alias("differ")).filter("differ").count()


def find_salt(audiences: DataFrame) -> int:
    """The first salt under which no two audiences share a signature."""
    for salt in SALTS:
        if collisions(audiences, salt) == 0:
            return salt
    raise StageError(f"audience signatures collide under all of {len(SALTS)} salts")


def classes(audiences: DataFrame) -> DataFrame:
    """One row per audience that somebody is in, heaviest first, with the totals of its flows."""
    wanted = audiences.filter(F.size("subscribers") > 0)
    totals = (
        signed(wanted, find_salt(wanted))
        .groupBy("high", "low")
        .agg(
            F.min("subscribers").alias("subscribers"),
            _exact_sum("messages").alias("messages"),
            _exact_sum("bytes").alias("bytes"),
            F.count(F.lit(1)).alias("flows"),
        )
    )
    number = numbered(F.desc("messages"), "high", "low").alias("audience_class")
    return totals.select(number, "subscribers", "messages", "bytes", "flows")


def flows(audiences: DataFrame, classes: DataFrame, topics: DataFrame) -> DataFrame:
    """Every flow with its name, traffic and class, in the order of topics and cells."""
    salt = find_salt(classes)
    numbered = signed(classes, salt).select("high", "low", "audience_class")
    return (
        signed(audiences, salt)
        .join(numbered, on=["high", "low"], how="left")
        .join(topics.select("topic", "topic_id"), on="topic_id", how="inner")
        .select(
            flow_name(F.col("topic"), F.col("cell")).alias("flow"),
            "topic",
            "topic_id",
            "cell",
            "messages",
            "bytes",
            # The empty audience has no class, whatever its signature.
            F.when(F.size("subscribers") > 0, F.col("audience_class"))
            .otherwise(-1)
            .alias("audience_class"),
        )
        .orderBy("topic_id", "cell")
    )


def flow_name(topic: Column, cell: Column) -> Column:
    """`topic`, or `topic[i,j,…]` for a cell."""
    numbers = F.concat(F.lit("["), F.array_join(cell.cast("array<string>"), ","), F.lit("]"))
    return F.concat(topic, F.when(F.size(cell) > 0, numbers).otherwise(F.lit("")))


def _exact_sum(column: str) -> Column:
    """A sum that does not depend on the order of the tasks, as one of floats would."""
    return F.sum(F.col(column).cast("decimal(28,12)")).cast("double")
