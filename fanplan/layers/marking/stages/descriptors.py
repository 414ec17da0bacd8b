"""Stages of descriptors: how many regions publishers and subscribers have, and which cover others.

At each broker they are counted twice: all of them, and without those that another region at the
same broker covers. Advertisements cover advertisements only, and subscriptions subscriptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fanplan.core.arrays import Floats, Longs
from fanplan.data.ingest.derived import Derived
from fanplan.data.ingest.extents import advertised_regions, merged_advertisements
from fanplan.data.schema import spark_schema
from fanplan.data.sizes import spread
from fanplan.data.subscription_cells import padded
from fanplan.data.tasks import Batches
from fanplan.layers.marking.problem.covers import PAIRS, REGIONS, covering_nodes, uncovered
from fanplan.layers.marking.problem.dataset import require_clients
from fanplan.layers.marking.stages.tables import CLIENT_DESCRIPTORS, COUNTS, COVERS, DESCRIPTORS

GROUP = ["broker", "publishes", "topic_id"]
"""Regions cover each other only within these."""

TOPIC = ["publishes", "topic_id"]
"""Regions of different brokers cover each other only within these."""

_COUNTED = "broker string, publishes boolean, regions long, uncovered long"


# ---- descriptors


def descriptors_stage(source: Derived) -> None:
    """Stage `descriptors`: a row for each broker that has any."""
    source.stage(DESCRIPTORS, None, lambda _: _descriptors(source))


def _descriptors(source: Derived) -> DataFrame:
    gathered = gathered_by(different_regions(source), GROUP)
    counted = gathered.mapInArrow(partial(_counted_regions, axes_or_one(source)), _COUNTED)
    sums = {
        f"{prefix}{role}": F.sum(F.when(publishes, F.col(count)).otherwise(0))
        for prefix, count in (("", "uncovered"), ("raw_", "regions"))
        for role, publishes in (
            ("published", F.col("publishes")),
            ("subscribed", ~F.col("publishes")),
        )
    }
    totals = counted.groupBy("broker").agg(*(sums[name].alias(name) for name in COUNTS))
    return totals.select(*DESCRIPTORS.names)


def _counted_regions(axes: int, batches: Batches) -> Batches:
    """Regions of each group, and how many of them others cover."""
    for rows in whole_groups(GROUP, batches):
        starts = starts_of_groups(GROUP, rows)
        group = np.repeat(np.arange(len(starts)), np.diff(starts, append=rows.num_rows))
        kept = uncovered(group, *region_boxes(rows, axes)).astype(np.int64)
        yield pa.record_batch(
            {
                "broker": rows.column("broker").take(pa.array(starts)),
                "publishes": rows.column("publishes").take(pa.array(starts)),
                "regions": np.add.reduceat(rows.column("regions").to_numpy(), starts),
                "uncovered": np.add.reduceat(kept, starts),
            }
        )


def client_descriptors(source: Derived) -> None:
    """Stage `client_descriptors`: how many regions each publisher and each subscriber has."""
    source.stage(CLIENT_DESCRIPTORS, None, lambda _: _client_descriptors(source))


def _client_descriptors(source: Derived) -> DataFrame:
    published = _advertised(source, "publisher").withColumn("role", F.lit("publisher"))
    subscribed = _subscribed(source, "subscriber").withColumn("role", F.lit("subscriber"))
    sides = (
        published.withColumnRenamed("publisher", "client"),
        subscribed.withColumnRenamed("subscriber", "client"),
    )
    counts = [
        side.groupBy("client", "role").agg(F.sum("copies").cast("long").alias("regions"))
        for side in sides
    ]
    return counts[0].unionByName(counts[1])


# ---- descriptor_covers


def descriptor_covers(source: Derived) -> None:
    """Stage `descriptor_covers`: a row for each broker, role and set of brokers that cover.

    A broker of null stands for a topic that has too much to compare.
    """
    limits = {"regions": REGIONS, "pairs": PAIRS}
    source.stage(COVERS, limits, lambda _: _covered_sets(source))


def _covered_sets(source: Derived) -> DataFrame:
    rows = gathered_by(different_regions(source).drop("regions"), TOPIC)
    find = partial(_covered_regions, axes_or_one(source))
    found = rows.mapInArrow(find, spark_schema(COVERS))
    alike = found.groupBy("publishes", "broker", "coverers")
    return alike.agg(F.sum("regions").alias("regions"))


def _covered_regions(axes: int, batches: Batches) -> Batches:
    """The uncovered regions of brokers that others cover."""
    for rows in whole_groups(TOPIC, batches):
        yield _covered_rows(axes, rows)


def _covered_rows(axes: int, rows: pa.RecordBatch) -> pa.RecordBatch:
    starts = starts_of_groups(TOPIC, rows)
    topic = np.repeat(np.arange(len(starts)), np.diff(starts, append=rows.num_rows))
    names = rows.column("broker").unique().sort()
    node = pc.index_in(rows.column("broker"), names).to_numpy().astype(np.int64)
    lo, hi = region_boxes(rows, axes)
    # Within a broker first: what it covers itself is no descriptor.
    kept = np.flatnonzero(uncovered(topic * len(names) + node, lo, hi))
    largest = int(np.bincount(topic[kept]).max())
    covers = None
    if largest <= REGIONS:
        covers = covering_nodes(topic[kept], node[kept], lo[kept], hi[kept], PAIRS)
    if covers is None:
        role = rows.column("publishes")[:1]
        return _covered_batch(
            role, pa.nulls(1, pa.string()), np.zeros(2, np.int64), names[:0], np.array([largest])
        )
    ends, nodes = covers
    some = np.diff(ends) > 0
    role, owner = rows.column("publishes"), rows.column("broker")
    mine = pa.array(kept[some])
    ends = np.concatenate(([0], ends[1:][some]))
    ones = np.ones(len(mine), np.int64)
    return _covered_batch(
        role.take(mine), owner.take(mine), ends, names.take(pa.array(nodes)), ones
    )


def _covered_batch(
    publishes: pa.Array, broker: pa.Array, ends: np.ndarray, coverers: pa.Array, regions: Longs
) -> pa.RecordBatch:
    lists = pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), coverers)
    columns = {"publishes": publishes, "broker": broker, "coverers": lists, "regions": regions}
    return pa.record_batch(columns)


# ---- regions, group by group


def different_regions(source: Derived) -> DataFrame:
    """The regions at each broker, equal ones as one, with their number in the column regions."""
    require_clients(source.dataset)
    rows = _advertised(source).unionByName(_subscribed(source))
    # Equal regions are one before anything is moved: a popular topic is no heavy task.
    return rows.groupBy(*GROUP, "lo", "hi").agg(F.sum("copies").cast("long").alias("regions"))


def _advertised(source: Derived, owner: str = "broker") -> DataFrame:
    """Regions of advertisements with their brokers; equal advertisements are copies."""
    rows = merged_advertisements(source)
    owners = rows.select("subscription", owner, "copies")
    boxes = advertised_regions(source, rows).join(owners, on="subscription", how="inner")
    return boxes.select(owner, F.lit(True).alias("publishes"), "topic_id", "lo", "hi", "copies")


def _subscribed(source: Derived, owner: str = "broker") -> DataFrame:
    owners = source.read("subscriptions").select("subscription", owner)
    boxes = source.read("regions").join(owners, on="subscription", how="inner")
    role, copies = F.lit(False).alias("publishes"), F.lit(1.0).alias("copies")
    return boxes.select(owner, role, "topic_id", "lo", "hi", copies)


def gathered_by(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Rows that are equal in some columns, one after the other in one partition."""
    return spread(rows, *columns).sortWithinPartitions(*columns)


def whole_groups(columns: Sequence[str], batches: Batches) -> Batches:
    """The same rows, no group divided; they come group by group, and a group may span batches."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        last = int(starts_of_groups(columns, batch)[-1])
        if last:
            yield as_one([*waiting, batch.slice(0, last)])
            waiting = []
        waiting.append(batch.slice(last))
    if waiting:
        yield as_one(waiting)


def as_one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def starts_of_groups(columns: Sequence[str], rows: pa.RecordBatch) -> Longs:
    """The first row of each group."""
    new = np.zeros(rows.num_rows, bool)
    new[0] = True
    for name in columns:
        value = rows.column(name).dictionary_encode().indices.to_numpy()
        new[1:] |= value[1:] != value[:-1]
    return np.flatnonzero(new)


def region_boxes(rows: pa.RecordBatch, axes: int) -> tuple[Floats, Floats]:
    """Low and high ends; those of topics with fewer axes are filled up alike."""
    lo, hi = (pa.chunked_array([rows.column(name)]) for name in ("lo", "hi"))
    return padded(lo, axes, 0.0), padded(hi, axes, 1.0)


def axes_or_one(source: Derived) -> int:
    return max(source.manifest.dimensions, 1)
