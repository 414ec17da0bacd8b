"""Stages `similarity`, `client_overlap` and `client_interest`: how alike brokers and clients are.

Tajuddin (2011), chapter 4, from pairs of extents that meet. A task takes two chunks of owners, so
each pair of extents is looked at once, no pair leaves a task, and a topic that everybody wants is
spread over all tasks, and so is an owner with very many. Only sums by pairs of owners are shuffled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from fanplan.boxes.extents import Extents, OwnerPairs
from fanplan.data.ingest.derived import Derived
from fanplan.data.ingest.extents import (
    Chunks,
    Measure,
    Numbers,
    advertisement_chunks,
    merged_advertisements,
    subscription_chunks,
)
from fanplan.data.sizes import small_table
from fanplan.layers.overlay import problem as metrics
from fanplan.layers.overlay.params import InterestKind
from fanplan.layers.overlay.stages.tables import (
    CLIENT_INTEREST,
    CLIENT_OVERLAP,
    METRICS,
    SIMILARITY,
)
from fanplan.network.dataset import publisher_names, read_brokers

Batches = Iterator[pa.RecordBatch]
Tasks = Sequence[tuple[Numbers, Numbers]]
Kernel = Callable[[Extents, Extents], Iterator[OwnerPairs]]

VALUE = "i int, j int, value double"
BY_SPACE = Measure()


TOGETHER = 32
"""Chunks of extents that are looked up in one: about a million, some hundred megabytes."""

PARTS = 4
"""Tasks that these become against an owner that is split: each pair takes much longer there."""


def broker_pairs(
    source: Derived,
    measure: Measure = BY_SPACE,
    with_cover: bool = True,
    interest: InterestKind = "overlap",
) -> None:
    """Stage `similarity`: overlap, cover and interest of pairs of brokers that have any.

    Covering takes much longer than the others where brokers have many subscriptions; without it
    the column is zero.
    """

    def build(folder: Path) -> DataFrame:
        subscriptions = _of_brokers(source, measure, folder / "subscriptions")
        parts = {"overlap": overlaps_of_owners(source.session(), subscriptions)}
        if with_cover:
            parts["cover"] = covers_of_owners(source.session(), subscriptions, subscriptions)
        if source.has("advertisements"):
            offers = _offers_of_brokers(source, measure, folder / "advertisements")
            interests = interests_of_owners if interest == "overlap" else covered_interests
            parts["interest"] = interests(source.session(), offers, subscriptions)
        apart = {name: rows.filter("i != j") for name, rows in parts.items()}
        return _side_by_side(apart)

    params: list[bool | str] = [measure.traffic, measure.rates, with_cover]
    params += [] if interest == "overlap" else [interest]
    source.stage(SIMILARITY, params, build)


def client_pairs(source: Derived, measure: Measure = BY_SPACE) -> None:
    """Stages `client_overlap`, of two subscribers, and `client_interest`, of a publisher in one."""

    def common(folder: Path) -> DataFrame:
        chunks = _of_subscribers(source, measure, folder / "subscriptions")
        pairs = overlaps_of_owners(source.session(), chunks).filter("i != j")
        return pairs.withColumnRenamed("value", "overlap")

    source.stage(CLIENT_OVERLAP, measure.traffic, common)
    if not source.has("advertisements"):
        return

    def shares(folder: Path) -> DataFrame:
        chunks = _of_subscribers(source, measure, folder / "subscriptions")
        offers = _offers_of_publishers(source, measure, folder / "advertisements")
        return interests_of_owners(source.session(), offers, chunks).withColumnRenamed(
            "value", "interest"
        )

    source.stage(CLIENT_INTEREST, measure.traffic, shares)


# ---- owners


def _names(spark: SparkSession, names: pa.Array, column: str) -> DataFrame:
    """Names with their positions, small enough for every task."""
    rows = [(name, position) for position, name in enumerate(names.to_pylist())]
    return small_table(spark, rows, f"{column} string, owner int")


def broker_numbers(source: Derived) -> DataFrame:
    """Columns broker and owner, its position among the brokers of the dataset."""
    return _names(source.session(), read_brokers(source.dataset).names, "broker")


def publisher_numbers(source: Derived) -> DataFrame:
    """Columns publisher and owner."""
    return _names(source.session(), publisher_names(source.dataset), "publisher")


def _of_brokers(source: Derived, measure: Measure, path: Path) -> Chunks:
    rows = source.read("subscriptions").join(broker_numbers(source), on="broker", how="inner")
    return subscription_chunks(source, rows.select("subscription", "owner"), measure, path)


def _of_subscribers(source: Derived, measure: Measure, path: Path) -> Chunks:
    rows = source.read("subscriptions")
    owner = rows.select("subscription", F.col("subscriber_id").alias("owner"))
    return subscription_chunks(source, owner, measure, path)


def _offers_of_brokers(source: Derived, measure: Measure, path: Path) -> Chunks:
    rows = merged_advertisements(source).join(broker_numbers(source), on="broker", how="inner")
    weight = F.col("rate" if measure.rates else "copies")
    return advertisement_chunks(source, rows.withColumn("weight", weight), measure, path)


def _offers_of_publishers(source: Derived, measure: Measure, path: Path) -> Chunks:
    """An advertisement counts by its share of its publisher's rate."""
    rows = merged_advertisements(source).join(
        publisher_numbers(source), on="publisher", how="inner"
    )
    total = F.sum("rate").over(Window.partitionBy("owner"))
    weight = F.when(total > 0, F.col("rate") / total).otherwise(0.0)
    return advertisement_chunks(source, rows.withColumn("weight", weight), measure, path)


# ---- metrics


def overlaps_of_owners(spark: SparkSession, chunks: Chunks) -> DataFrame:
    """Overlap (Eq. 4.2) of owners: i, j, value, for both orders of a pair."""
    parts = [(number, whole) for whole in chunks.whole for number in whole]
    # Parts of one owner are not compared: an owner is not like itself.
    tasks = [
        ((p,), (q,))
        for n, (q, whole) in enumerate(parts)
        for p, other in parts[: n + 1]
        if whole is not other or len(whole) == 1
    ]
    return _run(spark, _overlap_pairs, chunks, chunks, tasks)


def interests_of_owners(spark: SparkSession, advertised: Chunks, subscribed: Chunks) -> DataFrame:
    """Interest (Eq. 4.7) of owners: i, j, value."""
    tasks = [((p,), (q,)) for q in subscribed.numbers for p in advertised.numbers]
    return _run(spark, _interest_pairs, advertised, subscribed, tasks)


def covered_interests(spark: SparkSession, advertised: Chunks, subscribed: Chunks) -> DataFrame:
    """Interest by covering (section 5.3.2) of owners: i, j, value."""
    found = covers_of_owners(spark, subscribed, advertised)
    return found.select(F.col("j").alias("i"), F.col("i").alias("j"), "value")


def covers_of_owners(spark: SparkSession, covering: Chunks, covered: Chunks) -> DataFrame:
    """Covering (Eq. 4.5) of owners: i, j, value.

    A task has one chunk of covered extents and very many that may cover them: it meets the same
    sets of covered extents again and again, and merges the volume of each once. All extents of an
    owner that is split are in one task, which takes longer and so begins sooner; they are not
    compared with each other, as an owner is not like itself.
    """
    tasks = []
    for whole in sorted(covered.whole, key=len, reverse=True):
        own = whole if covering is covered and len(whole) > 1 else ()
        numbers = [number for number in covering.numbers if number not in own]
        many = TOGETHER if len(whole) == 1 else TOGETHER // PARTS
        tasks += [(tuple(numbers[n : n + many]), whole) for n in range(0, len(numbers), many)]
    return _run(spark, _cover_pairs, covering, covered, tasks)


def _run(
    spark: SparkSession, kernel: Kernel, left: Chunks, right: Chunks, tasks: Tasks
) -> DataFrame:
    """One Spark task for each entry of ``tasks``."""
    if not tasks:
        return spark.createDataFrame([], VALUE)
    work = partial(_work, kernel, left, right, tasks)
    found = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(work, VALUE)
    return _summed(found) if left.split or right.split else found


def _summed(parts: DataFrame) -> DataFrame:
    """One value for a pair of owners that several tasks had; in order, so that it is one sum."""
    values = parts.groupBy("i", "j").agg(F.array_sort(F.collect_list("value")).alias("values"))
    total = F.aggregate("values", F.lit(0.0), lambda one, other: one + other)
    return values.select("i", "j", total.alias("value"))


def _work(kernel: Kernel, left: Chunks, right: Chunks, tasks: Tasks, batches: Batches) -> Batches:
    for batch in batches:
        for task in batch.column(0).to_pylist():
            some, others = tasks[task]
            for i, j, value in kernel(left.load(some), right.load(others)):
                yield pa.record_batch(
                    {"i": i.astype(np.int32), "j": j.astype(np.int32), "value": value}
                )


def _overlap_pairs(left: Extents, right: Extents) -> Iterator[OwnerPairs]:
    i, j, value = metrics.owner_overlap(left, right)
    # Within a chunk a pair is found twice, and rounding may differ.
    once = i < j if left is right else np.full(len(i), True)
    yield i[once], j[once], value[once]
    yield j[once], i[once], value[once]


def _interest_pairs(left: Extents, right: Extents) -> Iterator[OwnerPairs]:
    yield metrics.owner_interest(left, right)


def _cover_pairs(left: Extents, right: Extents) -> Iterator[OwnerPairs]:
    yield metrics.owner_cover(left, right)


def _side_by_side(parts: dict[str, DataFrame]) -> DataFrame:
    """One row per pair with a column per metric; zero where a part has no such pair."""
    wide = (
        part.select("i", "j", *(_value_or_zero(name == other).alias(other) for other in METRICS))
        for name, part in parts.items()
    )
    rows = reduce(DataFrame.unionByName, wide)
    # A pair has one value for each metric, so that the order of the sum does not matter.
    return rows.groupBy("i", "j").agg(*(F.sum(name).alias(name) for name in METRICS))


def _value_or_zero(own: bool) -> Column:
    return F.col("value") if own else F.lit(0.0)
