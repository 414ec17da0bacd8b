"""Stage `grid`: edges per topic and axis.

*uniform* (Zhang & Hu 2005): equal cells, as many as the description says. *atomic* (Guimarães &
Rodrigues 2003): the end points of the topic's own boxes, so that no box cuts a cell. *quantile*:
cells of about equal traffic.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from fanplan.data.sizes import at_hand, small_table
from fanplan.data.tables import coordinates
from fanplan.workload.space import Attribute, CategoryAttribute, Space

# Quantile edges are chosen among this many equal bins of the observed range of a topic and axis.
QUANTILE_BINS = 4096

_AXES = "space int, axis int, category boolean, lo double, hi double, edges array<double>"


def even_edges(attribute: Attribute, cells: int) -> list[float]:
    """Edges of equal cells; a category has one cell per value."""
    if isinstance(attribute, CategoryAttribute):
        return [float(i) for i in range(len(attribute.values) + 1)]
    width = (attribute.max - attribute.min) / cells
    inner = [attribute.min + i * width for i in range(1, cells)]
    return [attribute.lo, *inner, attribute.hi]


def _space_axes(spark: SparkSession, spaces: Sequence[Space]) -> DataFrame:
    """One row per space and axis, with its domain and its uniform edges."""
    rows = [
        (
            number,
            axis,
            isinstance(attribute, CategoryAttribute),
            attribute.lo,
            attribute.hi,
            even_edges(attribute, space.cells[axis]),
        )
        for number, space in enumerate(spaces)
        for axis, attribute in enumerate(space.attributes)
    ]
    return small_table(spark, rows, _AXES)


def _topic_axes(topics: DataFrame, spaces: Sequence[Space]) -> DataFrame:
    axes = _space_axes(topics.sparkSession, spaces)
    return topics.filter("space > 0").join(axes, on="space", how="inner")


def _with_domain(cuts: DataFrame, axes: DataFrame) -> DataFrame:
    """Edges from cut points: the domain's ends and all cuts between them, in order."""
    inside = F.filter(
        F.coalesce("cuts", F.array()), lambda c: (c > F.col("lo")) & (c < F.col("hi"))
    )
    edges = F.array_sort(F.array_union(F.array("lo", "hi"), inside))
    return axes.join(cuts, on=["topic_id", "axis"], how="left").select(
        "topic_id", "axis", edges.alias("edges")
    )


def uniform_grid(topics: DataFrame, spaces: Sequence[Space]) -> DataFrame:
    return _topic_axes(topics, spaces).select("topic_id", "axis", "edges")


def atomic_grid(topics: DataFrame, spaces: Sequence[Space], regions: DataFrame) -> DataFrame:
    ends = regions.select("topic_id", F.posexplode(F.arrays_zip("lo", "hi")).alias("axis", "end"))
    cuts = (
        ends.select("topic_id", "axis", F.explode(F.array("end.lo", "end.hi")).alias("cut"))
        .groupBy("topic_id", "axis")
        .agg(F.collect_set("cut").alias("cuts"))
    )
    return _with_domain(cuts, _topic_axes(topics, spaces))


def _per_axis(points: DataFrame, dimensions: int) -> DataFrame:
    """One row per point and axis it has."""
    x = F.posexplode(F.array(*coordinates(dimensions))).alias("axis", "x")
    return points.select("topic_id", x).filter(~F.isnan("x"))


def _histogram(values: DataFrame) -> DataFrame:
    """Exact counts in equal bins of the observed range: the same on any number of cores."""
    ranges = values.groupBy("topic_id", "axis").agg(
        F.min("x").alias("low"), F.max("x").alias("high")
    )
    # Where all values are equal the range is 0: then all are in the first bin.
    share = (F.col("x") - F.col("low")) / F.greatest(F.col("high") - F.col("low"), F.lit(1e-300))
    bin_ = F.least(F.floor(share * QUANTILE_BINS), F.lit(QUANTILE_BINS - 1))
    return (
        values.join(at_hand(ranges), on=["topic_id", "axis"], how="inner")
        .groupBy("topic_id", "axis", "low", "high", bin_.alias("bin"))
        .agg(F.count(F.lit(1)).alias("messages"))
    )


def quantile_grid(topics: DataFrame, spaces: Sequence[Space], points: DataFrame) -> DataFrame:
    """A bin starts a new cell when the traffic before it passes a further 1/n of the total.

    Categories keep one cell per value.
    """
    axes = _topic_axes(topics, spaces).withColumn("cells", F.size("edges") - 1)
    dimensions = max(space.dimensions for space in spaces)
    by_axis = Window.partitionBy("topic_id", "axis")
    before = F.sum("messages").over(
        by_axis.orderBy("bin").rowsBetween(Window.unboundedPreceding, -1)
    )
    part = F.floor(F.coalesce(F.col("before"), F.lit(0)) * F.col("cells") / F.col("total"))
    low_end = F.col("low") + F.col("bin") * (F.col("high") - F.col("low")) / QUANTILE_BINS
    cuts = (
        _histogram(_per_axis(points, dimensions))
        .join(axes.select("topic_id", "axis", "cells"), on=["topic_id", "axis"], how="inner")
        .withColumns({"before": before, "total": F.sum("messages").over(by_axis)})
        .withColumns({"part": part, "cut": low_end})
        .filter("part > 0")
        .groupBy("topic_id", "axis", "part")
        .agg(F.min("cut").alias("cut"))
        .groupBy("topic_id", "axis")
        .agg(F.collect_set("cut").alias("cuts"))
    )
    numbers = _with_domain(cuts, axes.filter("NOT category"))
    return numbers.unionByName(axes.filter("category").select("topic_id", "axis", "edges"))
