"""Stages `routes` and `client_routes`: where traffic enters and where it must arrive.

From publications where there are any, else from advertised rates spread over the cells of the
grid. A point is matched with boxes as in `spatial`; messages with the same source and the same
destinations become one route. Stages `sendings` and `client_sendings` say when they were sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fanplan.core.errors import InputError, Problem
from fanplan.data.ingest.cells import (
    GridRef,
    cell_points,
    spread_box,
    unordered_sum,
    with_topic_ids,
)
from fanplan.data.ingest.derived import Derived
from fanplan.data.ingest.extents import advertised_regions, merged_advertisements
from fanplan.data.ingest.joins import join_audiences
from fanplan.data.numbering import numbered
from fanplan.data.schema import spark_schema
from fanplan.data.sizes import held
from fanplan.data.tables import coordinates
from fanplan.data.write import write_folder
from fanplan.layers.overlay.stages.similarity import broker_numbers, publisher_numbers
from fanplan.layers.overlay.stages.tables import CLIENT_ROUTES, CLIENT_SENDINGS, ROUTES, SENDINGS
from fanplan.network.dataset import require_homes

Batches = Iterator[pa.RecordBatch]

# What a point carries on its way to a route: how many messages it stands for, or its time.
Carried = Literal["weight", "time"]

Senders = Callable[[Derived], DataFrame]
_SPREAD = "topic_id int, cell array<int>, source int, messages double"


@dataclass(frozen=True)
class SentPoints:
    """Points with a column ``source``, the boxes to match them with, and the columns to keep."""

    points: DataFrame
    boxes: DataFrame
    keep: tuple[str, ...]


def stage_broker_routes(source: Derived) -> None:
    """Stage `routes`: source and destinations are brokers; deliveries are to subscribers."""
    source.stage(ROUTES, None, lambda f: summed_routes(_between_brokers(source, "weight", f)))


def stage_client_routes(source: Derived) -> None:
    """Stage `client_routes`: from publishers, numbered by name, to sets of subscribers."""
    source.stage(
        CLIENT_ROUTES, None, lambda f: summed_routes(_between_clients(source, "weight", f))
    )


def stage_broker_sendings(source: Derived) -> None:
    """Stage `sendings`: the times of the publications on each route; all must have one."""
    source.stage(SENDINGS, None, lambda f: _timed(_between_brokers(source, "time", f)))


def stage_client_sendings(source: Derived) -> None:
    """Stage `client_sendings`: the same of routes between clients."""
    source.stage(CLIENT_SENDINGS, None, lambda f: _timed(_between_clients(source, "time", f)))


def _between_brokers(source: Derived, carried: Carried, folder: Path) -> DataFrame:
    require_homes(source.dataset)
    return to_brokers(source, _sent_points(source, publisher_brokers, carried), folder)


def to_brokers(source: Derived, sent: SentPoints, folder: Path) -> DataFrame:
    """What is kept of each point, its destinations, and the number of subscribers reached."""
    # A home is a subscriber at a broker. They are numbered broker by broker.
    placed = source.read("subscriptions").join(broker_numbers(source), on="broker")
    homes = placed.select("subscriber_id", "owner").distinct()
    homes = held(numbered(homes, "home", "owner", "subscriber_id", aside=folder / "homes"))
    starts = _first_homes(homes)
    home = placed.join(homes, on=["subscriber_id", "owner"], how="inner")
    heard = _homes_reached(source, home.select("subscription", "home"), sent, folder)
    homes.unpersist()
    kept = T.StructType([heard.schema[name] for name in sent.keep])
    schema = kept.add(spark_schema(ROUTES)["destinations"]).add("reached", T.IntegerType())
    return heard.mapInArrow(partial(_to_brokers, starts, sent.keep), schema)


def _between_clients(source: Derived, carried: Carried, folder: Path) -> DataFrame:
    """The same with publishers as sources and subscribers as destinations."""
    rows = source.read("subscriptions")
    home = rows.select("subscription", F.col("subscriber_id").alias("home"))
    heard = _homes_reached(source, home, _sent_points(source, publisher_numbers, carried), folder)
    reached = F.col("subscribers")
    ends = ("source", reached.alias("destinations"))
    return heard.select(*ends, carried, F.size(reached).alias("reached"))


def _first_homes(homes: DataFrame) -> list[int]:
    """The first home of each broker, from the numbers of homes: one row per broker."""
    counts = homes.groupBy("owner").agg(F.min("home").alias("first")).orderBy("owner").collect()
    starts: list[int] = []
    for row in counts:
        # Brokers without homes start where the next one does.
        starts += [row["first"]] * (row["owner"] + 1 - len(starts))
    return starts


def summed_routes(rows: DataFrame, *key: str) -> DataFrame:
    """One row per key, source and set of destinations; in decimals: order does not matter."""
    messages = F.col("weight")
    return rows.groupBy(*key, "source", "destinations").agg(
        unordered_sum(messages).alias("messages"),
        unordered_sum(messages * F.col("reached")).alias("deliveries"),
    )


def _timed(rows: DataFrame) -> DataFrame:
    """One row per source and set of destinations, with all times in seconds, ascending."""
    times = F.sort_array(F.collect_list("time")).alias("times")
    return rows.groupBy("source", "destinations").agg(times)


def _to_brokers(starts: list[int], keep: Sequence[str], batches: Batches) -> Batches:
    """Audiences of homes as destinations that are brokers."""
    first = np.array(starts, np.int64)
    for batch in batches:
        lists = batch.column("subscribers")
        homes, sizes = lists.flatten().to_numpy(), lists.value_lengths().to_numpy()
        row = np.repeat(np.arange(len(lists)), sizes)
        broker = np.searchsorted(first, homes, side="right") - 1
        # Homes ascend, and so do their brokers: equal ones are neighbours.
        new = np.append(True, (np.diff(row) != 0) | (np.diff(broker) != 0))[: len(row)]
        counts = np.bincount(row[new], minlength=len(lists))
        offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        reached = pa.ListArray.from_arrays(offsets, pa.array(broker[new], pa.int32()))
        kept = {name: batch.column(name) for name in keep}
        ends = {"destinations": reached, "reached": pa.array(sizes, pa.int32())}
        yield pa.record_batch(kept | ends)


# ---- points


def _homes_reached(source: Derived, homes: DataFrame, sent: SentPoints, folder: Path) -> DataFrame:
    """What is kept of each point, and subscribers: the homes that it reaches."""
    path, columns = folder / "boxes", sent.boxes.columns
    homed = sent.boxes.drop("subscriber_id").join(homes, on="subscription", how="inner")
    write_folder(homed.withColumnRenamed("home", "subscriber_id").select(*columns), path)
    return join_audiences(sent.points, str(path), source.manifest.dimensions, [*sent.keep])


def traffic_is_measured(source: Derived) -> bool:
    """Whether traffic is counted from publications; else it is spread from advertised rates."""
    return source.has("publications") and source.manifest.rates == "measured"


def _sent_points(source: Derived, senders: Senders, carried: Carried) -> SentPoints:
    """What was sent, and the boxes of those who may want it.

    Where no region cuts a cell the cells stand for their publications, and there are fewer of them;
    but a cell has no time.
    """
    by_place = source.manifest.by_place and carried == "weight"
    cells = not traffic_is_measured(source) or by_place
    points = (
        published_points(source, senders, cells, carried)
        if traffic_is_measured(source)
        else advertised_points(source, senders, source.grid)
    )
    boxes = source.manifest.boxes if cells else "regions"
    return SentPoints(points, source.read(boxes), ("source", carried))


def publisher_brokers(source: Derived) -> DataFrame:
    """Publishers and the brokers they are at: of their advertisements, else of the same name.

    A publisher that advertises at several brokers is taken to be at the first by name.
    """
    brokers = broker_numbers(source)
    own = brokers.withColumnRenamed("broker", "publisher")
    if not source.has("advertisements"):
        return own
    rows = source.read("advertisements").filter("broker IS NOT NULL")
    at = rows.groupBy("publisher").agg(F.min("broker").alias("broker"))
    placed = at.join(brokers, on="broker", how="inner").select("publisher", "owner")
    return placed.unionByName(own.join(placed, on="publisher", how="left_anti"))


def published_points(source: Derived, senders: Senders, cells: bool, carried: Carried) -> DataFrame:
    """Publications, or the cells they fall into, as points with source and what is carried.

    ``senders`` has publisher and owner.
    """
    points = with_topic_ids(source.read("publications"), source.read("topics"))
    points = points.withColumn("publisher", F.coalesce("publisher", F.lit("")))
    sent = points.join(senders(source), on="publisher", how="left")
    lost = sent.filter("owner IS NULL").select("publisher").head(1)
    if lost:
        what = "publishes, but advertises at no broker"
        remedy = "Give it an advertisement with a broker"
        raise InputError(Problem(f"publisher {lost[0]['publisher']!r}", what, remedy))
    sent = sent.withColumnRenamed("owner", "source")
    dimensions = source.manifest.dimensions
    if not cells:
        keep = ("topic_id", "source", *coordinates(dimensions))
        return sent.withColumn("weight", F.lit(1.0)).select(*keep, carried)
    filled = source.placed(sent).groupBy("topic_id", "cell", "source")
    counted = filled.agg(F.count(F.lit(1)).cast("double").alias("messages"))
    return cell_points(counted, dimensions)


def advertised_points(source: Derived, senders: Senders, grid: GridRef) -> DataFrame:
    """Cells as points with source and weight, from rates: by volume within an advertisement."""
    if not source.has("advertisements"):
        what = "nothing says where traffic enters"
        remedy = "Add publications, or advertisements with rates"
        raise InputError(Problem(str(source.dataset), what, remedy))
    rows = merged_advertisements(source)
    boxes = advertised_regions(source, rows)
    volume = F.aggregate(
        F.zip_with("lo", "hi", lambda low, high: high - low), F.lit(1.0), lambda a, b: a * b
    )
    # As in the stage `advertised`: a pattern has its full rate on each topic that it means.
    totals = boxes.groupBy("subscription", "topic_id").agg(F.sum(volume).alias("total"))
    sent = (
        boxes.join(totals, on=["subscription", "topic_id"], how="inner")
        .join(rows.select("subscription", "publisher", "rate"), on="subscription", how="inner")
        .join(senders(source), on="publisher", how="inner")
        .withColumn("rate", F.col("rate") * volume / F.col("total"))
        .select("topic_id", F.col("owner").alias("source"), "rate", "lo", "hi")
    )
    spread = sent.mapInArrow(partial(_spread_rates, grid), _SPREAD)
    return cell_points(spread, source.manifest.dimensions)


def _spread_rates(grid: GridRef, batches: Batches) -> Batches:
    """Spread rates over the cells that their boxes meet."""
    edges = grid.load()
    for batch in batches:
        for row in batch.to_pylist():
            box = (row[name] for name in ("topic_id", "rate", "lo", "hi"))
            cells, shares = spread_box(edges, *box)
            yield pa.record_batch(
                {
                    "topic_id": pa.array(np.full(len(cells), row["topic_id"]), pa.int32()),
                    "cell": pa.array(list(cells), pa.list_(pa.int32())),
                    "source": pa.array(np.full(len(cells), row["source"]), pa.int32()),
                    "messages": pa.array(shares, pa.float64()),
                }
            )
