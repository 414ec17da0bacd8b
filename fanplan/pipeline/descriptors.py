"""Stage `descriptors`: how many regions publishers and subscribers have at each broker.

They are counted twice: all of them, and without those that another region at the same broker
covers. Advertisements cover advertisements only, and subscriptions subscriptions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fanplan.errors import InputError, Problem
from fanplan.pipeline.derived import Derived
from fanplan.pipeline.extents import advertised_regions, advertisements
from fanplan.problem.descriptors import uncovered
from fanplan.problem.overlay_dataset import require_homes
from fanplan.problem.subscription_cells import padded

Batches = Iterator[pa.RecordBatch]

COUNTS = ("published", "subscribed", "raw_published", "raw_subscribed")
DESCRIPTORS = T.StructType(
    [T.StructField("broker", T.StringType()), *(T.StructField(n, T.LongType()) for n in COUNTS)]
)
GROUP = ["broker", "publishes", "topic_id"]
"""Regions cover each other only within these."""

_COUNTED = "broker string, publishes boolean, regions long, uncovered long"


def descriptors(source: Derived) -> None:
    """Stage `descriptors`: a row for each broker that has any."""
    source.stage("descriptors", None, DESCRIPTORS, lambda _: _descriptors(source))


def _descriptors(source: Derived) -> DataFrame:
    require_homes(source.dataset)
    if not source.has("advertisements"):
        what, remedy = "there is no such table", "Say who publishes what, and at which broker"
        raise InputError(Problem("advertisements", what, remedy))
    rows = _advertised(source).unionByName(_subscribed(source))
    # Equal regions are one before anything is moved: a popular topic is no heavy task.
    different = rows.groupBy(*GROUP, "lo", "hi").agg(F.sum("copies").cast("long").alias("regions"))
    gathered = different.repartition(*GROUP).sortWithinPartitions(*GROUP)
    axes = max(source.manifest.dimensions, 1)
    counted = gathered.mapInArrow(partial(_counted, axes), _COUNTED)
    sums = {
        f"{prefix}{role}": F.sum(F.when(publishes, F.col(count)).otherwise(0))
        for prefix, count in (("", "uncovered"), ("raw_", "regions"))
        for role, publishes in (
            ("published", F.col("publishes")),
            ("subscribed", ~F.col("publishes")),
        )
    }
    totals = counted.groupBy("broker").agg(*(sums[name].alias(name) for name in COUNTS))
    return totals.select("broker", *COUNTS)


def _advertised(source: Derived) -> DataFrame:
    """Regions of advertisements with their brokers; equal advertisements are copies."""
    rows = advertisements(source)
    owners = rows.select("subscription", "broker", "copies")
    boxes = advertised_regions(source, rows).join(owners, on="subscription", how="inner")
    return boxes.select("broker", F.lit(True).alias("publishes"), "topic_id", "lo", "hi", "copies")


def _subscribed(source: Derived) -> DataFrame:
    owners = source.read("subscriptions").select("subscription", "broker")
    boxes = source.read("regions").join(owners, on="subscription", how="inner")
    role, copies = F.lit(False).alias("publishes"), F.lit(1.0).alias("copies")
    return boxes.select("broker", role, "topic_id", "lo", "hi", copies)


def _counted(axes: int, batches: Batches) -> Batches:
    """Counts of each group; rows come group by group, and a group may span batches."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        last = int(_starts(batch)[-1])
        if last:
            yield _counts(axes, [*waiting, batch.slice(0, last)])
            waiting = []
        waiting.append(batch.slice(last))
    if waiting:
        yield _counts(axes, waiting)


def _counts(axes: int, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    rows = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    starts = _starts(rows)
    group = np.repeat(np.arange(len(starts)), np.diff(starts, append=rows.num_rows))
    lo, hi = (
        padded(pa.chunked_array([rows.column(name)]), axes, fill)
        for name, fill in (("lo", 0.0), ("hi", 1.0))
    )
    kept = uncovered(group, lo, hi).astype(np.int64)
    return pa.record_batch(
        {
            "broker": rows.column("broker").take(pa.array(starts)),
            "publishes": rows.column("publishes").take(pa.array(starts)),
            "regions": np.add.reduceat(rows.column("regions").to_numpy(), starts),
            "uncovered": np.add.reduceat(kept, starts),
        }
    )


def _starts(rows: pa.RecordBatch) -> np.ndarray:
    """The first row of each group."""
    new = np.zeros(rows.num_rows, bool)
    new[0] = True
    codes = rows.column("broker").dictionary_encode().indices
    for column in (codes, rows.column("publishes"), rows.column("topic_id")):
        value = column.to_numpy(zero_copy_only=False)
        new[1:] |= value[1:] != value[:-1]
    return np.flatnonzero(new)
