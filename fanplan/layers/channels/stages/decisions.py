"""What was decided on Spark for each class: its table, its ledger, and what is made of it.

In memory the table becomes a channel map or a plan; at any size Spark turns it into the tables of
a plan folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fanplan.core.arrays import Bytes, Ints, Longs
from fanplan.core.ledger import Ledger
from fanplan.core.tables import arrow_schema
from fanplan.data.described import load_words
from fanplan.data.ingest.cells import unordered_sum
from fanplan.data.interest import load_classes
from fanplan.data.reader import read_manifest, read_stage, verified
from fanplan.data.schema import spark_schema
from fanplan.data.sizes import read_folder
from fanplan.data.tables import CLASSES
from fanplan.layers.channels.map import ChannelMap, ChannelsSection, MapPairs, map_pairs
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.methods import find_method, planned
from fanplan.layers.channels.record import subscriber_names
from fanplan.layers.channels.search.model.cover import Cover, unserved_pairs
from fanplan.layers.channels.search.model.demand import Demand
from fanplan.layers.channels.stages.tables import DECIDED
from fanplan.plan.tables import CHANNEL_SUBSCRIBERS


@dataclass(frozen=True)
class DecidedOnSpark:
    """What was decided: members, users × channels, and a table of the classes in ``folder``."""

    members: Bytes
    folder: Path
    ledger: Ledger
    perfect: float


def decided_batch(batch: pa.RecordBatch, demand: Demand, cover: Cover) -> pa.RecordBatch:
    rows, users = unserved_pairs(demand, cover)
    unicast = np.searchsorted(rows, np.arange(demand.size + 1))
    copies = np.append(0, np.cumsum(cover.members.sum(axis=0, dtype=np.int64)[cover.channels]))
    columns = [
        batch["audience_class"],
        batch["messages"],
        batch["bytes"],
        pa.array(demand.audience_sizes),
        pa.array(np.diff(copies[cover.starts])),
        list_array(cover.starts, cover.channels),
        list_array(unicast, users),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(DECIDED))


def list_array(starts: Longs, values: Ints) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), pa.array(values))


def read_classes(spark: SparkSession, dataset: Path) -> DataFrame:
    return read_folder(spark, verified(dataset, CLASSES.name), spark_schema(CLASSES))


def read_decided(spark: SparkSession, folder: Path) -> DataFrame:
    return read_folder(spark, folder / DECIDED.name, spark_schema(DECIDED))


def read_ledger(decided: DataFrame) -> Ledger:
    """The ledger of the decisions but for ``missed``, which ``missed_on_spark`` counts."""
    messages, size = F.col("messages"), F.col("bytes")
    channels, unicast = F.size("channels"), F.size("unicast")
    received = F.col("received") + unicast
    entries = {
        "sent_multicast": messages * channels,
        "sent_unicast": messages * unicast,
        "received_wanted": messages * F.col("wanted"),
        "received_unwanted": messages * (received - F.col("wanted")),
        "sent_bytes": size * (channels + unicast),
        "received_bytes": size * received,
    }
    row = only_row(decided.agg(*(exact_sum(e).alias(name) for name, e in entries.items())))
    return Ledger(**row.asDict())


def exact_sum(amount: Column) -> Column:
    """A sum that does not depend on the order of the tasks; of nothing it is 0."""
    return F.coalesce(unordered_sum(amount), F.lit(0.0))


def only_row(table: DataFrame) -> Row:
    row = table.first()
    assert row is not None, "an aggregate without groups has one row"
    return row


def decided_map(decided: DecidedOnSpark) -> ChannelMap:
    """The decisions as a map in memory: 8 bytes for each pair, and as much while it is made."""
    columns = ("audience_class", "channels", "unicast")
    table = read_stage(decided.folder, DECIDED.name, columns).sort_by("audience_class")
    classes = table["audience_class"].to_numpy()
    assigned, unicast = (related(classes, table[name].combine_chunks()) for name in columns[1:])
    return ChannelMap(decided.members.shape[1], assigned, member_pairs(decided), unicast)


def related(classes: Ints, lists: pa.ListArray) -> MapPairs:
    return map_pairs(
        np.repeat(classes, lists.value_lengths().to_numpy()), lists.flatten().to_numpy()
    )


def member_pairs(decided: DecidedOnSpark) -> MapPairs:
    """(channel, subscriber), ascending."""
    return map_pairs(*np.nonzero(decided.members.T))


def as_plan(
    decided: DecidedOnSpark, dataset: Path, params: KmodesParams, seed: int
) -> ChannelsSection:
    """The plan in memory, ready to be saved and checked; both need the classes in memory."""
    problem, method = load_classes(dataset), find_method("kmodes")
    return planned(problem, method, params, seed, decided_map(decided))


def write_tables(spark: SparkSession, decided: DecidedOnSpark, dataset: Path, out: Path) -> None:
    """The tables of a plan folder, each a folder of Parquet files named as there, by Spark.

    Joins by class and by subscriber; nothing of it passes through the driver but the members.
    """
    dataset, out = dataset.absolute(), out.absolute()
    out.mkdir(parents=True)
    flows, subscribers = (
        read_folder(spark, verified(dataset, stage)) for stage in ("flows", "subscribers")
    )
    wanted = flows.filter("audience_class >= 0")
    classes = read_decided(spark, decided.folder)
    tables = {
        "flows": plan_flows(with_words(wanted, dataset), read_manifest(dataset).seconds),
        "channel_flows": exploded(classes, "channels", "channel")
        .join(wanted, on="audience_class", how="inner")
        .select("channel", "flow"),
        "unicast": exploded(classes, "unicast", "subscriber_id")
        .join(subscribers, on="subscriber_id", how="inner")
        .join(wanted, on="audience_class", how="inner")
        .select("flow", "subscriber"),
    }
    for name, table in tables.items():
        table.write.parquet(str(out / f"{name}.parquet"))
    write_members(decided, dataset, out)


def missed_on_spark(spark: SparkSession, decided: DecidedOnSpark, dataset: Path) -> float:
    """Messages that an interested subscriber would not get, counted anew from the tables.

    Shares no code with the planner. Spark joins a row for each pair wanted and each pair received.
    """
    classes = read_classes(spark, dataset.absolute())
    table = read_decided(spark, decided.folder)
    members = decided.folder / "members"
    members.mkdir(exist_ok=True)
    joined = member_pairs(decided)
    columns = {"channel": joined.left, "subscriber_id": joined.right}
    pq.write_table(pa.table(columns), members / "part-0.parquet")
    by_channel = exploded(table, "channels", "channel").join(
        read_folder(spark, members), on="channel", how="inner"
    )
    served = by_channel.drop("channel").unionByName(exploded(table, "unicast", "subscriber_id"))
    wanted = classes.withColumn("subscriber_id", F.explode("subscribers"))
    missed = wanted.join(served, on=["audience_class", "subscriber_id"], how="left_anti")
    return float(only_row(missed.agg(exact_sum(F.col("messages")).alias("missed")))["missed"])


def exploded(classes: DataFrame, lists: str, item: str) -> DataFrame:
    """A row for each item in the lists of a column."""
    return classes.select("audience_class", F.explode(lists).alias(item))


def plan_flows(wanted: DataFrame, seconds: float) -> DataFrame:
    """The flows as a plan has them: rates for totals, no cell for a plain topic."""
    return wanted.select(
        "flow",
        "topic",
        F.when(F.size("cell") > 0, F.col("cell")).alias("cell"),
        (F.col("messages") / seconds).alias("rate"),
        (F.col("bytes") / seconds).alias("bytes_rate"),
        "audience_class",
        "description",
    )


def with_words(flows: DataFrame, dataset: Path) -> DataFrame:
    """Flows with their descriptions; a task reads what these are made from."""
    schema = T.StructType([*flows.schema, T.StructField("description", T.StringType())])
    return flows.mapInArrow(partial(_described, dataset), schema)


def _described(dataset: Path, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    words = load_words(dataset)
    for batch in batches:
        yield batch.append_column("description", words.describe(batch))


def write_members(decided: DecidedOnSpark, dataset: Path, out: Path) -> None:
    """Who joins which channel, under the subscribers' names."""
    members, names = member_pairs(decided), subscriber_names(dataset)
    columns = [pa.array(members.left), names.take(pa.array(members.right))]
    folder = out / f"{CHANNEL_SUBSCRIBERS.name}.parquet"
    folder.mkdir()
    table = pa.table(columns, schema=arrow_schema(CHANNEL_SUBSCRIBERS))
    pq.write_table(table, folder / "part-0.parquet")
