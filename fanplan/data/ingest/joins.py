"""Joins of points with boxes on Spark: hits per subscription, audiences, wants.

Points are a DataFrame ``topic_id int, x0 … x{d-1} double [, weight double] [, …]`` or
``PointFiles``. Boxes are a finished Parquet folder ``topic_id int, subscription long,
subscriber_id int, lo array<double>, hi array<double>`` on storage that all executors see. Two ways
give the same answer:

- *replicated*: every Python worker reads all boxes and indexes them once; points are matched where
  they are, so no topic can be a bottleneck;
- *tiled*, when the boxes are too many for that: a tile is a part of a topic's space with a bounded
  number of boxes and points, and both sides meet tile by tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, groupby, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as fs
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fanplan.boxes import matching
from fanplan.boxes.matching import BoxIndex
from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.tables import arrow_schema
from fanplan.data.sizes import at_hand, in_small_mode, spread
from fanplan.data.tables import REGIONS, coordinates

Batches = Iterator[pa.RecordBatch]
Chunks = Iterator[pa.Table]
Answer = Callable[[BoxIndex, Chunks], Batches]
Split = tuple[str, int]

_BOXES = arrow_schema(REGIONS)

# Points handled at a time. More of them share an index cell, and sums leave the worker less often.
CHUNK_ROWS = 2_000_000
# Candidate pairs handled at a time: they bound the memory of the answers.
AUDIENCE_PAIRS = 2**24
WANTS_PAIRS = 2**26
# Finest division of a topic's space into tiles; heavier tiles are split by salting their points.
MOST_PARTS = 256


@dataclass(frozen=True)
class JoinLimits:
    """When boxes are too many for every worker, and what a tile may hold; all in rows."""

    replicated_boxes: int = 2_000_000
    tile_boxes: int = 200_000
    tile_points: int = 2_000_000


DEFAULT = JoinLimits()


@dataclass(frozen=True)
class PointFiles:
    """Points in a finished Parquet folder, whose row groups the tasks read themselves.

    That saves the way through the JVM.
    """

    spark: SparkSession
    path: str

    @property
    def frame(self) -> DataFrame:
        return self.spark.read.parquet(self.path)


Points = DataFrame | PointFiles


def join_hits(
    points: Points, boxes_path: str, dims: int, limits: JoinLimits = DEFAULT
) -> DataFrame:
    """Weight of the points in each subscription's boxes: subscription, hits.

    A subscription without hits has no row. Its boxes are disjoint, so each point counts once.
    """
    parts = answered(
        points, boxes_path, dims, [], _hit_batches, "subscription long, hits double", limits
    )
    return parts.groupBy("subscription").agg(F.sum("hits").alias("hits"))


def join_audiences(
    points: Points, boxes_path: str, dims: int, keep: list[str], limits: JoinLimits = DEFAULT
) -> DataFrame:
    """Each point's columns ``keep`` and its sorted distinct ``subscribers``, possibly none."""
    schema = _kept(points, keep).add("subscribers", T.ArrayType(T.IntegerType()))
    answer = partial(_audience_batches, keep)
    return answered(points, boxes_path, dims, keep, answer, schema, limits)


def join_wants(
    points: Points, boxes_path: str, dims: int, key: list[str], limits: JoinLimits = DEFAULT
) -> DataFrame:
    """Weight of the points of each key that a subscriber wants: key, subscriber_id, messages.

    Key columns are integers or arrays of integers. A point counts a subscriber once, however many
    of its boxes hold it.
    """
    lists = (
        _kept(points, key)
        .add("subscriber_id", T.ArrayType(T.IntegerType()))
        .add("messages", T.ArrayType(T.DoubleType()))
    )
    rows = _kept(points, key).add("subscriber_id", T.IntegerType()).add("messages", T.DoubleType())
    frame = points.frame if isinstance(points, PointFiles) else points
    if in_small_mode(frame.sparkSession):
        # All in one partition, where it can be merged at once.
        return answered(points, boxes_path, dims, key, partial(_merged_wants, key), rows, limits)
    parts = answered(points, boxes_path, dims, key, partial(_want_batches, key), lists, limits)
    return spread(parts, *key).mapInArrow(partial(_merge, key), rows)


def _kept(points: Points, names: list[str]) -> T.StructType:
    frame = points.frame if isinstance(points, PointFiles) else points
    return T.StructType([frame.schema[name] for name in names])


def answered(
    points: Points,
    boxes_path: str,
    dims: int,
    keep: list[str],
    answer: Answer,
    schema: T.StructType | str,
    limits: JoinLimits = DEFAULT,
) -> DataFrame:
    """Put the points to the boxes' index and return its answers."""
    frame = points.frame if isinstance(points, PointFiles) else points
    wanted = {"topic_id", *coordinates(dims), "weight", *keep}
    columns = [name for name in frame.columns if name in wanted]
    if _count_rows(boxes_path) > limits.replicated_boxes:
        return _tiled(frame.select(columns), boxes_path, dims, answer, schema, limits)
    if isinstance(points, PointFiles):
        filesystem, splits = _splits(points.path)
        ask = partial(_ask_files, boxes_path, dims, answer, filesystem, splits, columns)
        return points.spark.range(len(splits)).mapInArrow(ask, schema)
    return frame.select(columns).mapInArrow(partial(_ask, boxes_path, dims, answer), schema)


# In the Python workers: from batches to chunks, to the kernels, and back.


def _ask(boxes_path: str, dims: int, answer: Answer, batches: Batches) -> Batches:
    """Answer for points that Spark sends."""
    yield from answer(shared_index(boxes_path, dims), chunks_of(batches))


def _ask_files(
    boxes_path: str,
    dims: int,
    answer: Answer,
    filesystem: fs.FileSystem,
    splits: list[Split],
    columns: list[str],
    batches: Batches,
) -> Batches:
    """Answer for points in the row groups whose numbers Spark sends."""
    mine = [splits[i] for batch in batches for i in batch.column(0).to_pylist()]
    points = _row_groups(filesystem, mine, columns)
    yield from answer(shared_index(boxes_path, dims), chunks_of(points))


def _files(path: str) -> tuple[fs.FileSystem, list[fs.FileInfo]]:
    """The Parquet files of a folder, which holds other files too."""
    remote = "://" in path
    filesystem, root = fs.FileSystem.from_uri(path) if remote else (fs.LocalFileSystem(), path)
    files = filesystem.get_file_info(fs.FileSelector(root, recursive=True))
    return filesystem, [file for file in files if file.path.endswith(".parquet")]


def _opened(path: str) -> Iterator[tuple[str, pq.ParquetFile]]:
    """The Parquet files of a folder in the order of their names.

    Not as a dataset of pyarrow's, whose import takes as long as all else in a small task.
    """
    filesystem, files = _files(path)
    for name in sorted(file.path for file in files):
        with filesystem.open_input_file(name) as source, pq.ParquetFile(source) as file:
            yield name, file


def _count_rows(path: str) -> int:
    return sum(file.metadata.num_rows for _, file in _opened(path))


def read_columns(path: str, columns: list[str] | None = None) -> pa.Table:
    """The rows of a Parquet folder, read by one thread: Spark runs as many tasks as cores."""
    return pa.concat_tables(file.read(columns, use_threads=False) for _, file in _opened(path))


def _splits(path: str) -> tuple[fs.FileSystem, list[Split]]:
    """All row groups of a Parquet folder, from the files' footers."""
    groups = [(name, i) for name, file in _opened(path) for i in range(file.num_row_groups)]
    return _files(path)[0], groups


def _row_groups(filesystem: fs.FileSystem, splits: list[Split], columns: list[str]) -> Batches:
    for path, groups in groupby(splits, key=lambda split: split[0]):
        with pq.ParquetFile(filesystem.open_input_file(path)) as file:
            for _, group in groups:
                # One thread: Spark runs as many tasks as there are cores.
                yield from file.read_row_group(group, columns, use_threads=False).to_batches()


def chunks_of(batches: Batches) -> Chunks:
    """Batches put together to chunks of about CHUNK_ROWS rows."""
    gathered: list[pa.RecordBatch] = []
    for batch in batches:
        gathered.append(batch)
        if sum(map(len, gathered)) >= CHUNK_ROWS:
            yield pa.Table.from_batches(gathered).combine_chunks()
            gathered = []
    if gathered:
        yield pa.Table.from_batches(gathered).combine_chunks()


def shared_index(path: str, dims: int) -> BoxIndex:
    """The index of a folder of boxes, built once per Python worker and state of the folder."""
    _, files = _files(path)
    state = tuple(sorted((file.path, file.size, file.mtime_ns) for file in files))
    return _index_of_folder(path, dims, state)


@lru_cache(maxsize=2)
def _index_of_folder(path: str, dims: int, _state: tuple[tuple[str, int, int], ...]) -> BoxIndex:
    boxes = read_columns(path, _BOXES.names)
    return _index(boxes, boxes["topic_id"].to_numpy().astype(np.int64), dims)


def _index(boxes: pa.Table, topic: Longs, dims: int) -> BoxIndex:
    """Index of boxes with the table's end points and the given topic numbers."""
    lo, hi = boxes["lo"].combine_chunks(), boxes["hi"].combine_chunks()
    lengths = pc.list_value_length(lo).to_numpy(zero_copy_only=False).astype(np.int32)
    return matching.index_boxes(
        topic,
        lengths,
        _as_rows(lo, lengths, dims),
        _as_rows(hi, lengths, dims),
        boxes["subscriber_id"].to_numpy().astype(np.int64),
        boxes["subscription"].to_numpy().astype(np.int64),
    )


def _as_rows(lists: pa.ListArray, lengths: Ints, dims: int) -> Floats:
    """Lists as rows of one width."""
    rows = np.zeros((len(lists), dims))
    rows[np.arange(dims) < lengths[:, None]] = lists.flatten().to_numpy()
    return rows


def chunk_points(chunk: pa.Table, dims: int) -> tuple[Longs, Floats, Floats]:
    """Topic numbers, coordinates and weights of a chunk of points."""
    topic = chunk["tile" if "tile" in chunk.column_names else "topic_id"]
    x = np.empty((len(chunk), dims))
    for axis, name in enumerate(coordinates(dims)):
        x[:, axis] = chunk[name].to_numpy()
    weighted = "weight" in chunk.column_names
    weight = chunk["weight"].to_numpy() if weighted else np.ones(len(chunk))
    return topic.to_numpy().astype(np.int64), x, weight


def _slices(index: BoxIndex, chunk: pa.Table, pairs: int) -> Chunks:
    """A chunk in pieces of at most that many candidate pairs, but at least one point each."""
    topic, x, _ = chunk_points(chunk, index.lo.shape[1])
    piece = np.cumsum(matching.count_candidates(index, topic, x)) // pairs
    bounds = np.append(np.flatnonzero(np.diff(piece, prepend=-1)), len(chunk))
    for start, end in pairwise(bounds):
        yield chunk.slice(start, end - start)


def audience_slices(index: BoxIndex, chunks: Chunks) -> Chunks:
    """Chunks in pieces whose audiences fit in memory."""
    return chain.from_iterable(_slices(index, c, AUDIENCE_PAIRS) for c in chunks)


def _hit_batches(index: BoxIndex, chunks: Chunks) -> Batches:
    """Hits per subscription, summed over all chunks of the task."""
    hits = np.zeros(len(index.owner))
    for chunk in chunks:
        matching.count_hits(index, *chunk_points(chunk, index.lo.shape[1]), hits)
    sums = np.bincount(index.subscription, hits, len(index.subscriptions))
    found = np.flatnonzero(sums)
    yield pa.record_batch({"subscription": index.subscriptions[found], "hits": sums[found]})


def _audience_batches(keep: list[str], index: BoxIndex, chunks: Chunks) -> Batches:
    for chunk in audience_slices(index, chunks):
        topic, x, _ = chunk_points(chunk, index.lo.shape[1])
        order, offsets, owners = matching.find_audiences(index, topic, x)
        lists = pa.ListArray.from_arrays(offsets.astype(np.int32), owners)
        table = chunk.select(keep).take(order).append_column("subscribers", lists)
        yield from table.combine_chunks().to_batches()


def _want_batches(key: list[str], index: BoxIndex, chunks: Chunks) -> Batches:
    """One row per chunk and key, with lists of subscribers and messages."""
    for chunk in chain.from_iterable(_slices(index, c, WANTS_PAIRS) for c in chunks):
        codes, first = _codes([chunk[name].combine_chunks() for name in key])
        points = chunk_points(chunk, index.lo.shape[1])
        keys, owners, sums = matching.wants(index, *points, codes, len(first))
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        offsets = np.append(starts, len(keys)).astype(np.int32)
        table = chunk.select(key).take(first[keys[starts]])
        table = table.append_column(
            "subscriber_id", pa.ListArray.from_arrays(offsets, owners.astype(np.int32))
        ).append_column("messages", pa.ListArray.from_arrays(offsets, sums))
        yield from table.combine_chunks().to_batches()


def _merged_wants(key: list[str], index: BoxIndex, chunks: Chunks) -> Batches:
    yield from _merge(key, _want_batches(key, index, chunks))


def _merge(key: list[str], batches: Batches) -> Batches:
    """Sum the lists of equal keys of a partition; one row per key and subscriber."""
    gathered = list(batches)
    if not gathered:
        return
    table = pa.Table.from_batches(gathered).combine_chunks()
    codes, first = _codes([table[name].combine_chunks() for name in key])
    owners, sums = table["subscriber_id"].combine_chunks(), table["messages"].combine_chunks()
    keys, owner, total = matching.sum_lists(
        codes,
        len(first),
        owners.offsets.to_numpy().astype(np.int64),
        owners.values.to_numpy().astype(np.int64),
        sums.values.to_numpy(),
    )
    rows = table.select(key).take(first[keys])
    rows = rows.append_column("subscriber_id", pa.array(owner, pa.int32()))
    yield from rows.append_column("messages", pa.array(total)).combine_chunks().to_batches()


def _codes(columns: list[pa.Array]) -> tuple[Longs, Longs]:
    """Number rows by their values, equal rows alike: (number of each row, first row of each)."""
    return row_codes([*chain.from_iterable(map(_plain_columns, columns))])


def row_codes(columns: list[Longs]) -> tuple[Longs, Longs]:
    """The same for columns of integers whose ranges are not too wide to be counted."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        low, high = column.min(initial=0), column.max(initial=0)
        codes = codes * int(high - low + 1) + column - low
        # Dense again after each column: the product of all ranges would not fit into 64 bits.
        codes = pa.array(codes).dictionary_encode().indices.to_numpy().astype(np.int64)
    first = np.empty(int(codes.max(initial=-1)) + 1, np.int64)
    # Backwards, so that of equal rows the first is written last.
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return codes, first


def _plain_columns(column: pa.Array) -> Iterator[Longs]:
    """A column of integers; or for lists their lengths and their elements, −1 beyond the end."""
    if not pa.types.is_list(column.type):
        yield column.to_numpy().astype(np.int64)
        return
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False).astype(np.int64)
    yield lengths
    elements = column.flatten().to_numpy()
    starts = np.cumsum(lengths) - lengths
    for i in range(int(lengths.max(initial=0))):
        inside = i < lengths
        values = np.full(len(lengths), -1, np.int64)
        values[inside] = elements[starts[inside] + i]
        yield values


# Tiles.


def _tiled(
    points: DataFrame,
    boxes_path: str,
    dims: int,
    answer: Answer,
    schema: T.StructType | str,
    limits: JoinLimits,
) -> DataFrame:
    """Bring the boxes and points of a tile to one partition, boxes first, and answer there."""
    boxes = points.sparkSession.read.parquet(boxes_path)
    cuts = at_hand(_cuts(boxes, dims, limits))
    placed = _placed_points(points, cuts, dims)
    salts = at_hand(_salts(placed, limits))
    salted = placed.join(salts, on=["topic_id", "part"], how="inner").withColumn(
        # Not a hash of the row: a hot tile may be many publications at one and the same point.
        "salt",
        F.pmod(F.monotonically_increasing_id(), "salts").cast("int"),
    )
    rows = salted.select(
        *_TILE, *(name for name in points.columns if name != "topic_id"), _no_box().alias("box")
    ).unionByName(
        _placed_boxes(boxes, cuts, salts).withColumns(_no_lists(points)), allowMissingColumns=True
    )
    # One stream instead of `cogroup`, which goes group by group: 0.6 million rows/s against 1 to
    # 2.5 in trials (decision 3).
    met = rows.repartition(*_TILE).sortWithinPartitions(F.col("box.subscription").isNull())
    return met.mapInArrow(partial(_ask_tiles, dims, answer), schema)


_TILE = ["topic_id", "part", "salt"]


# Lists of points at boxes, and of boxes at points, are empty, not null: with nulls Spark 4 goes
# through all rows of a batch again for each one, to tell how many bytes the batch has.


def _no_lists(points: DataFrame) -> dict[str, Column]:
    lists = (field for field in points.schema if isinstance(field.dataType, T.ArrayType))
    return {field.name: F.array().cast(field.dataType) for field in lists}


def _no_box() -> Column:
    empty = F.array().cast("array<double>")
    return F.struct(
        F.lit(None).cast("long").alias("subscription"),
        F.lit(None).cast("int").alias("subscriber_id"),
        empty.alias("lo"),
        empty.alias("hi"),
    )


def _cuts(boxes: DataFrame, dims: int, limits: JoinLimits) -> DataFrame:
    """Where each topic's space is cut into tiles: topic_id, axis, edges.

    The axis is the one where boxes are narrowest beside their spread, so that few of them reach
    into several tiles; the edges are quantiles of the boxes' low ends.
    """
    marks = [i / MOST_PARTS for i in range(1, MOST_PARTS)]
    ends = [(F.get("lo", F.lit(axis)), F.get("hi", F.lit(axis))) for axis in range(dims)]
    widths = [F.try_divide(F.avg(hi - lo), F.max(hi) - F.min(lo)) for lo, hi in ends]
    # Approximate, and not alike on every cluster: tiles decide who works, not what is found.
    lows = [F.percentile_approx(lo, marks, 10 * MOST_PARTS) for lo, _ in ends]
    parts = F.least(F.lit(MOST_PARTS), F.ceil(F.count(F.lit(1)) / limits.tile_boxes)).cast("int")
    topics = boxes.groupBy("topic_id").agg(
        parts.alias("parts"),
        F.array(*widths).cast("array<double>").alias("widths"),
        F.array(*lows).cast("array<array<double>>").alias("lows"),
    )
    narrowest = F.array_position("widths", F.array_min("widths")).cast("int") - 1
    axis = F.coalesce(narrowest, F.lit(0))
    chosen = F.transform(
        F.sequence(F.lit(1), F.col("parts") - 1),
        lambda i: F.get(
            F.get("lows", F.col("axis")), (i * MOST_PARTS / F.col("parts")).cast("int") - 1
        ),
    )
    edges = F.when(
        F.col("parts") > 1, F.filter(F.array_distinct(chosen), lambda edge: edge.isNotNull())
    )
    empty = F.array().cast("array<double>")
    return topics.withColumn("axis", axis).select(
        "topic_id", "axis", F.coalesce(edges, empty).alias("edges")
    )


def _placed_points(points: DataFrame, cuts: DataFrame, dims: int) -> DataFrame:
    """Points with the part of their topic's space they lie in. Topics without boxes have one."""
    x = F.get(F.array(*coordinates(dims)).cast("array<double>"), F.col("axis"))
    part = F.size(F.filter("edges", lambda edge: edge <= x))
    return points.join(cuts, on="topic_id", how="left").withColumn(
        "part", F.when(F.col("edges").isNull(), 0).otherwise(part)
    )


def _salts(placed: DataFrame, limits: JoinLimits) -> DataFrame:
    """Into how many tiles the points of a part are dealt: topic_id, part, salts."""
    salts = F.ceil(F.count(F.lit(1)) / limits.tile_points).cast("int")
    return placed.groupBy("topic_id", "part").agg(salts.alias("salts"))


def _placed_boxes(boxes: DataFrame, cuts: DataFrame, salts: DataFrame) -> DataFrame:
    """Boxes in every tile that they reach and that has points."""
    lo, hi = (F.get(end, F.col("axis")) for end in ("lo", "hi"))
    first = F.size(F.filter("edges", lambda edge: edge <= lo))
    last = F.size(F.filter("edges", lambda edge: edge < hi))
    return (
        boxes.join(cuts, on="topic_id", how="inner")
        .withColumn("part", F.explode(F.sequence(first, last)))
        .join(salts, on=["topic_id", "part"], how="inner")
        .withColumn("salt", F.explode(F.sequence(F.lit(0), F.col("salts") - 1)))
        .select(*_TILE, F.struct("subscription", "subscriber_id", "lo", "hi").alias("box"))
    )


def _ask_tiles(dims: int, answer: Answer, batches: Batches) -> Batches:
    """Answer for the tiles of one partition, whose boxes come before its points.

    A tile is to the index what a topic is elsewhere.
    """
    boxes, points = _boxes_first(batches)
    tiles = np.unique(_tile_numbers(boxes))
    ends = pa.Table.from_struct_array(boxes["box"].combine_chunks())
    index = _index(ends, np.searchsorted(tiles, _tile_numbers(boxes)), dims)
    yield from answer(index, (_with_tiles(chunk, tiles) for chunk in chunks_of(points)))


def _boxes_first(batches: Batches) -> tuple[pa.Table, Batches]:
    """The leading rows that are boxes, and the rest of the stream."""
    boxes: list[pa.RecordBatch] = []
    for batch in batches:
        is_box = pc.struct_field(batch.column("box"), "subscription").is_valid()
        boxes.append(batch.filter(is_box))
        if not pc.all(is_box).as_py():
            return pa.Table.from_batches(boxes), chain([batch.filter(pc.invert(is_box))], batches)
    return pa.Table.from_batches(boxes), iter(())


def _tile_numbers(rows: pa.Table) -> Longs:
    """Topic, part and salt in one number. Salts are few: each stands for many points."""
    topic, part, salt = (rows[name].to_numpy().astype(np.int64) for name in _TILE)
    result: Longs = (topic * MOST_PARTS + part) * 2**20 + salt
    return result


def _with_tiles(points: pa.Table, tiles: Longs) -> pa.Table:
    """Points with the position of their tile among those with boxes; −1 if it is not there."""
    numbers = _tile_numbers(points)
    at = np.searchsorted(tiles, numbers)
    known = np.append(tiles, -1)[at] == numbers
    return points.append_column("tile", pa.array(np.where(known, at, -1)))
