"""Exact flows: all publications of a topic that exactly the same subscribers want.

Publications are matched with the selectors themselves, so there are as many flows as different
audiences were seen, whatever the number of attributes. In the place of a cell a flow has the
signature of its audience; publications of a plain topic all have one audience, and no signature.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fanplan.boxes import matching
from fanplan.boxes.matching import BoxIndex
from fanplan.core.arrays import Floats, Longs
from fanplan.core.kernels import compiled
from fanplan.data.ingest.cells import unordered_sum
from fanplan.data.ingest.joins import (
    DEFAULT,
    Batches,
    Chunks,
    JoinLimits,
    answered,
    audience_slices,
    chunk_points,
    read_columns,
    row_codes,
)
from fanplan.data.signatures import WORDS, Hashes, as_words, name_hashes, signatures


@dataclass(frozen=True)
class SelectorData:
    """Where the regions and subscribers of a dataset lie: all that a task needs to find flows.

    A worker keeps the names' hashes for as long as it lives, so the key must tell subscribers
    apart that lie at the same path one after the other.
    """

    regions: str
    subscribers: str
    key: str
    dimensions: int

    def hashes(self) -> Hashes:
        return load_hashes(self.subscribers, self.key)


@lru_cache(maxsize=2)
def load_hashes(path: str, _key: str) -> Hashes:
    """The hashes of all subscribers' names by their numbers."""
    columns = ["subscriber_id", "subscriber"]
    table = read_columns(path, columns).sort_by("subscriber_id")
    return name_hashes(table["subscriber"].to_pylist())


def exact_audiences(
    points: DataFrame, selectors: SelectorData, limits: JoinLimits = DEFAULT
) -> DataFrame:
    """One row per topic and audience: its signature, traffic, subscribers and extent.

    Points have topic_id, coordinates and bytes. The extent is the smallest box of the points.
    """
    axes = range(selectors.dimensions)
    lows, highs = [f"lo{axis}" for axis in axes], [f"hi{axis}" for axis in axes]
    ends = [f"{name} double" for name in (*lows, *highs)]
    columns = "topic_id int, cell array<int>, subscribers array<int>, messages double, bytes double"
    parts = answered(
        points, selectors.regions, selectors.dimensions, ["bytes"],
        partial(_flow_batches, selectors), ", ".join((columns, *ends)), limits,
    )  # fmt: skip
    return parts.groupBy("topic_id", "cell").agg(
        F.sum("messages").alias("messages"),
        unordered_sum("bytes").alias("bytes"),
        _one_audience(),
        F.array(*map(F.min, lows)).alias("lo"),
        F.array(*map(F.max, highs)).alias("hi"),
    )


def _one_audience() -> Column:
    """The audience behind a signature. That there is only one is verified, not assumed."""
    first, last = F.min("subscribers"), F.max("subscribers")
    clash = F.raise_error(F.lit("two audiences have one signature")).cast("array<int>")
    return F.when(first == last, first).otherwise(clash).alias("subscribers")


def _flow_batches(selectors: SelectorData, index: BoxIndex, chunks: Chunks) -> Batches:
    """The audiences seen in each chunk, each once, with their traffic."""
    hashes = selectors.hashes()
    for chunk in audience_slices(index, chunks):
        numbers, x, _ = chunk_points(chunk, selectors.dimensions)
        order, offsets, owners = matching.find_audiences(index, numbers, x)
        signature = signatures(offsets, owners, hashes)
        topic = chunk["topic_id"].to_numpy()[order]
        codes, first = row_codes([topic, *dense_halves(signature)])
        size = chunk["bytes"].to_numpy()[order].astype(np.float64)
        low, high = extents(codes, len(first), x[order])
        lists = pa.ListArray.from_arrays(offsets.astype(np.int32), owners)
        yield pa.record_batch(
            {
                "topic_id": pa.array(topic[first], pa.int32()),
                "cell": _word_lists(signature[first]),
                "subscribers": lists.take(pa.array(first)),
                "messages": np.bincount(codes, minlength=len(first)).astype(np.float64),
                "bytes": np.bincount(codes, size, len(first)),
            }
            | {f"lo{axis}": low[:, axis] for axis in range(x.shape[1])}
            | {f"hi{axis}": high[:, axis] for axis in range(x.shape[1])}
        )


def dense_halves(signature: Hashes) -> list[Longs]:
    """The two halves of signatures as small numbers, equal ones alike."""
    return [dense(signature[:, half]) for half in range(2)]


def dense(values: np.ndarray) -> Longs:
    """Numbers as small ones, equal ones alike: `row_codes` multiplies ranges."""
    result: Longs = pa.array(values).dictionary_encode().indices.to_numpy().astype(np.int64)
    return result


def _word_lists(signature: Hashes) -> pa.ListArray:
    offsets = np.arange(0, WORDS * len(signature) + 1, WORDS, dtype=np.int32)
    return pa.ListArray.from_arrays(offsets, as_words(signature).ravel())


@compiled
def extents(group: Longs, groups: int, x: Floats) -> tuple[Floats, Floats]:
    """The smallest box of the points of each group; NaN on axes that they do not have."""
    low, high = np.full((groups, x.shape[1]), np.nan), np.full((groups, x.shape[1]), np.nan)
    for i in range(len(group)):
        g = group[i]
        for axis in range(x.shape[1]):
            at = x[i, axis]
            # Not `at < low`, which is false as long as the end is NaN.
            if not low[g, axis] <= at:
                low[g, axis] = at
            if not high[g, axis] >= at:
                high[g, axis] = at
    return low, high


def with_signatures(points: DataFrame, selectors: SelectorData) -> DataFrame:
    """Points with the signature of their audience in a column ``cell``; empty for plain topics."""
    schema = T.StructType([*points.schema, T.StructField("cell", T.ArrayType(T.IntegerType()))])
    answer = partial(_signed_batches, selectors, points.columns)
    return answered(points, selectors.regions, selectors.dimensions, points.columns, answer, schema)


def _signed_batches(
    selectors: SelectorData, keep: list[str], index: BoxIndex, chunks: Chunks
) -> Batches:
    for chunk in chunks:
        # A topic without attributes has no coordinate at all.
        plain = pc.is_nan(chunk["x0"])
        none = pa.nulls(pc.sum(plain).as_py() or 0, pa.list_(pa.int32())).fill_null([])
        yield from _with_cell(chunk.filter(plain), keep, none)
        for part in audience_slices(index, iter([chunk.filter(pc.invert(plain))])):
            numbers, x, _ = chunk_points(part, selectors.dimensions)
            order, offsets, owners = matching.find_audiences(index, numbers, x)
            cell = _word_lists(signatures(offsets, owners, selectors.hashes()))
            yield from _with_cell(part.take(pa.array(order)), keep, cell)


def _with_cell(points: pa.Table, keep: list[str], cell: pa.ListArray) -> Batches:
    yield from points.select(keep).append_column("cell", cell).combine_chunks().to_batches()
