"""Stage `descriptor_covers`: which brokers have a region that covers one of another broker.

Where both travel on a link, the covered one need not. Regions of brokers that nobody else covers
are left out, and those with the same coverers are counted together.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fanplan.core.arrays import Longs
from fanplan.data.ingest.derived import Derived
from fanplan.layers.marking.problem.covers import PAIRS, REGIONS
from fanplan.layers.marking.problem.descriptors import covering_nodes, uncovered
from fanplan.layers.marking.stages.descriptors import (
    Batches,
    axes_of,
    boxes,
    different_regions,
    gathered_by,
    group_starts,
    whole_groups,
)

TOPIC = ["publishes", "topic_id"]
"""Regions of different brokers cover each other only within these."""

COVERS = T.StructType(
    [
        T.StructField("publishes", T.BooleanType()),
        T.StructField("broker", T.StringType()),
        T.StructField("coverers", T.ArrayType(T.StringType())),
        T.StructField("regions", T.LongType()),
    ]
)
_FOUND = "publishes boolean, broker string, coverers array<string>, regions long"


def descriptor_covers(source: Derived) -> None:
    """Stage `descriptor_covers`: a row for each broker, role and set of brokers that cover.

    A broker of null stands for a topic that has too much to compare.
    """
    limits = {"regions": REGIONS, "pairs": PAIRS}
    source.stage("descriptor_covers", limits, COVERS, lambda _: _covers(source))


def _covers(source: Derived) -> DataFrame:
    rows = gathered_by(different_regions(source).drop("regions"), TOPIC)
    found = rows.mapInArrow(partial(_found, axes_of(source)), _FOUND)
    alike = found.groupBy("publishes", "broker", "coverers")
    return alike.agg(F.sum("regions").alias("regions"))


def _found(axes: int, batches: Batches) -> Batches:
    """The uncovered regions of brokers that others cover."""
    for rows in whole_groups(TOPIC, batches):
        yield _covered(axes, rows)


def _covered(axes: int, rows: pa.RecordBatch) -> pa.RecordBatch:
    starts = group_starts(TOPIC, rows)
    topic = np.repeat(np.arange(len(starts)), np.diff(starts, append=rows.num_rows))
    names = rows.column("broker").unique().sort()
    node = pc.index_in(rows.column("broker"), names).to_numpy().astype(np.int64)
    lo, hi = boxes(rows, axes)
    # Within a broker first: what it covers itself is no descriptor.
    kept = np.flatnonzero(uncovered(topic * len(names) + node, lo, hi))
    largest = int(np.bincount(topic[kept]).max())
    covers = None
    if largest <= REGIONS:
        covers = covering_nodes(topic[kept], node[kept], lo[kept], hi[kept], PAIRS)
    if covers is None:
        role = rows.column("publishes")[:1]
        return _batch(
            role, pa.nulls(1, pa.string()), np.zeros(2, np.int64), names[:0], np.array([largest])
        )
    ends, nodes = covers
    some = np.diff(ends) > 0
    role, owner = rows.column("publishes"), rows.column("broker")
    mine = pa.array(kept[some])
    ends = np.concatenate(([0], ends[1:][some]))
    ones = np.ones(len(mine), np.int64)
    return _batch(role.take(mine), owner.take(mine), ends, names.take(pa.array(nodes)), ones)


def _batch(
    publishes: pa.Array, broker: pa.Array, ends: np.ndarray, coverers: pa.Array, regions: Longs
) -> pa.RecordBatch:
    lists = pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), coverers)
    columns = {"publishes": publishes, "broker": broker, "coverers": lists, "regions": regions}
    return pa.record_batch(columns)
