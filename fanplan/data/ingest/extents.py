"""Extents of subscriptions and advertisements on Spark: boxes by owner, in chunks of owners.

A chunk is a folder of Parquet files with all extents of some owners, so that every pair of owners
belongs to one pair of chunks. An owner with more extents than a chunk has is split into several
chunks of its own. Tasks are given the chunks' path and numbers and read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fanplan.boxes.extents import Extents, make_extents
from fanplan.data.ingest.cells import cell_points, cover_cells, unordered_sum
from fanplan.data.ingest.derived import Derived
from fanplan.data.ingest.joins import join_audiences, read_columns
from fanplan.data.ingest.regions import subscription_regions
from fanplan.data.numbering import dense_number, numbered
from fanplan.data.sizes import held, spread
from fanplan.data.subscription_cells import padded
from fanplan.data.write import write_folder
from fanplan.workload.description_schema import CoverMode

CHUNK = 32_768
"""Extents that a chunk has on average: small tasks, and sums that stay in a core's cache."""


Numbers = tuple[int, ...]


@dataclass(frozen=True)
class Chunks:
    """Where extents lie, which chunks there are, and the number of axes of their boxes.

    ``whole`` has the chunks of each owner that is split, and every other chunk by itself.
    """

    path: str
    whole: tuple[Numbers, ...]
    axes: int

    @property
    def numbers(self) -> Numbers:
        return tuple(number for part in self.whole for number in part)

    @property
    def split(self) -> bool:
        """Whether a pair of owners may belong to several pairs of chunks."""
        return any(len(part) > 1 for part in self.whole)

    def load(self, numbers: Numbers) -> Extents:
        """Some chunks as one."""
        load = _load_chunk if len(numbers) == 1 else _load_chunks
        return load(self.path, numbers, self.axes)


@lru_cache(maxsize=4)
def _load_chunk(path: str, numbers: Numbers, axes: int) -> Extents:
    """A chunk, read once by each worker that needs it."""
    return _read_chunks(path, numbers, axes)


@lru_cache(maxsize=2)
def _load_chunks(path: str, numbers: Numbers, axes: int) -> Extents:
    """Many chunks, kept by a worker from one task to the next."""
    return _read_chunks(path, numbers, axes)


def _read_chunks(path: str, numbers: Numbers, axes: int) -> Extents:
    parts = (read_columns(f"{path}/chunk={number}") for number in numbers)
    table = pa.concat_tables(parts).combine_chunks()
    lists = table["boxes"].combine_chunks()
    boxes = lists.flatten()
    counts = pc.list_value_length(lists).fill_null(0).to_numpy()
    lo, hi = (
        padded(pa.chunked_array([boxes.field(name)]), axes, fill)
        for name, fill in (("lo", 0.0), ("hi", 1.0))
    )
    return make_extents(
        table["owner"].to_numpy(),
        np.repeat(np.arange(len(table)), counts),
        boxes.field("topic_id").to_numpy(),
        lo,
        hi,
        table["weight"].to_numpy(),
    )


def write_chunks(owned: DataFrame, boxes: DataFrame, axes: int, path: Path) -> Chunks:
    """Write extents in chunks; ``owned`` has subscription, owner and weight, ``boxes`` regions.

    Equal extents of an owner become one with their weights added up. That changes no metric: sums
    scale with weights, and a union does not see that a box comes twice.
    """
    lists = boxes.groupBy("subscription").agg(
        F.array_sort(F.collect_list(F.struct("topic_id", "lo", "hi"))).alias("boxes")
    )
    joined = owned.join(lists, on="subscription", how="left")
    merged = held(joined.groupBy("owner", "boxes").agg(F.sum("weight").alias("weight")))
    chunk, split = _chunk_of(merged)
    rows = spread(merged.withColumn("chunk", chunk), "chunk")
    write_folder(rows.sortWithinPartitions("chunk", "owner", "boxes"), path, by="chunk")
    merged.unpersist()
    found = {int(folder.name.partition("=")[2]) for folder in path.glob("chunk=*")}
    alone = found.difference(*split)
    return Chunks(str(path), (*((number,) for number in sorted(alone)), *split), axes)


def _chunk_of(extents: DataFrame) -> tuple[Column, list[Numbers]]:
    """The chunk of an extent, and the chunks of each owner that is split."""
    sizes = extents.groupBy("owner").agg(F.count(F.lit(1)).alias("size"))
    large = F.when(F.col("size") > CHUNK, F.struct("owner", "size"))
    ((total, owners),) = sizes.agg(F.sum("size"), F.array_sort(F.collect_list(large))).collect()
    rest = (total or 0) - sum(owner["size"] for owner in owners)
    first = max(-(-rest // CHUNK), 1)
    chunk, split = F.pmod("owner", F.lit(first)), []
    for owner in owners:
        parts = -(-owner["size"] // CHUNK)
        own = first + F.pmod(F.xxhash64("boxes"), F.lit(parts)).cast("int")
        chunk = F.when(F.col("owner") == owner["owner"], own).otherwise(chunk)
        split.append(tuple(range(first, first + parts)))
        first += parts
    return chunk, split


@dataclass(frozen=True)
class Measure:
    """What a volume is: of space, or with ``traffic`` the messages that were sent there.

    With ``rates`` an advertisement counts as often as it is published on (Tajuddin 2011, 4.3).
    """

    traffic: bool = False
    rates: bool = False


def subscription_chunks(source: Derived, owner: DataFrame, measure: Measure, path: Path) -> Chunks:
    """Extents of all subscriptions; ``owner`` has subscription and owner."""
    owned = owner.withColumn("weight", F.lit(1.0))
    if not measure.traffic:
        return write_chunks(owned, source.read("regions"), _width(source), path)
    source.manifest.require_places("similarity by traffic")
    cells = source.read(source.manifest.boxes)
    boxes = by_traffic(source, cells, path.with_name(path.name + ".boxes"))
    return write_chunks(owned, boxes, 1, path)


def merged_advertisements(source: Derived) -> DataFrame:
    """Advertisements, equal ones as one: subscription (a number), publisher, …, rate, copies."""
    key = ("publisher", "topic", "filter", "broker")
    # Reading comes first: it starts Spark, without which there are no columns.
    rows = source.read("advertisements").groupBy(*key)
    rate = unordered_sum(F.coalesce("rate", F.lit(1.0)))
    sums = rows.agg(rate.alias("rate"), F.count(F.lit(1)).cast("double").alias("copies"))
    return sums.withColumn("subscription", dense_number(*key).cast("long"))


def advertised_regions(source: Derived, rows: DataFrame) -> DataFrame:
    """The boxes of advertisements, in the columns of the stage `regions`."""
    numbers = rows.select("topic", "filter", "subscription").withColumn("subscriber_id", F.lit(0))
    return subscription_regions(numbers, source.read("patterns"), source.read("filters"))


def advertisement_chunks(source: Derived, owned: DataFrame, measure: Measure, path: Path) -> Chunks:
    """Extents of advertisements; ``owned`` has all their columns, owner and weight."""
    boxes = advertised_regions(source, owned)
    own = owned.select("subscription", "owner", "weight")
    if not measure.traffic:
        return write_chunks(own, boxes, _width(source), path)
    mode: CoverMode = "full" if source.manifest.cover == "full" else "overlap"
    cells = cover_cells(boxes, source.grid, mode)
    held = by_traffic(source, cells, path.with_name(path.name + ".boxes"))
    return write_chunks(own, held, 1, path)


def _width(source: Derived) -> int:
    return max(source.manifest.dimensions, 1)


def by_traffic(source: Derived, boxes: DataFrame, path: Path) -> DataFrame:
    """Boxes of cell numbers as sets of the cells with traffic that they hold.

    A cell becomes a topic of its own with one box as long as it has messages. So volumes of
    extents, of what they share and of what they fill together are all counted in messages.
    """
    flows = source.read("flows").filter("messages > 0")
    found = flows.select("topic_id", "cell", "messages")
    place = path.with_name(path.name + ".flows")
    cells = numbered(found, "flow_id", "topic_id", "cell", aside=place)
    # The join tells boxes apart by subscriber, in 32 bits; here every subscription is one.
    owned, place = boxes.select("subscription").distinct(), path.with_name(path.name + ".names")
    names = numbered(owned, "subscriber_id", "subscription", aside=place)
    renamed = boxes.drop("subscriber_id").join(names, on="subscription", how="inner")
    write_folder(renamed.select(*boxes.columns), path)
    dimensions = source.manifest.dimensions
    points = cell_points(cells, dimensions)
    held = join_audiences(points, str(path), dimensions, ["flow_id", "messages"])
    rows = held.select("flow_id", "messages", F.explode("subscribers").alias("subscriber_id"))
    return rows.join(names, on="subscriber_id", how="inner").select(
        F.col("flow_id").alias("topic_id"),
        "subscription",
        F.array(F.lit(0.0)).alias("lo"),
        F.array("messages").alias("hi"),
    )
