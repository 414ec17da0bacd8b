"""Channels for problems beyond one machine's memory: kmodes with its rows on Spark.

The driver searches the heaviest classes alone; Lloyd passes and the final assignment run as Spark
jobs over all classes. What is decided for each class is written as Parquet by the tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fanplan.core.arrays import Bytes
from fanplan.core.errors import InputError, Problem
from fanplan.core.progress import Progress, quiet
from fanplan.core.stop import Stop, never
from fanplan.data.reader import read_manifest, read_stage
from fanplan.data.schema import spark_schema
from fanplan.layers.channels.lone import LEAST
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.search.free.search import (
    MOST_ROWS,
    coreset_size,
    require_within,
    search_coreset,
)
from fanplan.layers.channels.search.model.assign import assign_rows
from fanplan.layers.channels.search.model.cover import one_channel
from fanplan.layers.channels.search.model.demand import Demand
from fanplan.layers.channels.search.model.rules import no_rules, recover
from fanplan.layers.channels.stages.decisions import (
    DecidedOnSpark,
    decided_batch,
    exact_sum,
    only_row,
    read_classes,
    read_decided,
    read_ledger,
)
from fanplan.layers.channels.stages.lloyd import (
    Batches,
    LloydSetting,
    demands,
    exponent_of,
    lloyd_on_spark,
    rows_demand,
    save_members,
)
from fanplan.layers.channels.stages.tables import DECIDED

QUIET = quiet()


def plan_on_spark(
    spark: SparkSession,
    dataset: Path,
    params: KmodesParams,
    seed: int,
    work: Path,
    stop: Stop = never,
    progress: Progress = QUIET,
    most: int = MOST_ROWS,
) -> DecidedOnSpark:
    """Plan channels for a dataset whose classes need not fit into memory.

    ``work`` is a new folder that the driver and all executors see; ``most`` limits the classes
    that the driver searches. The driver holds those and users × channels; a task holds a batch of
    classes and 9 bytes for each user and channel.
    """
    require_within(params)
    dataset, work = dataset.absolute(), work.absolute()
    read_manifest(dataset)
    classes = read_classes(spark, dataset)
    with progress.stage("totals") as told:
        totals = read_totals(classes, params.channels)
        told.rows(totals.rows)
    users = read_stage(dataset, "subscribers", ("subscriber_id",)).num_rows
    setting = LloydSetting(users, params.channels, params.weights, exponent_of(totals.messages))
    make_folder(work)
    members = find_members(
        classes, setting, totals, params, seed, work, stop, progress, max(1, most)
    )
    # Rows are assigned anew, so that nothing goes to a channel that is closed here.
    members = members * (members.sum(axis=0, dtype=np.int64) >= LEAST).astype(np.uint8)
    with progress.stage("assign all") as told:
        table = assign_on_spark(classes, setting, members, params.multiple, work)
        told.rows(totals.rows)
    weights = params.weights
    perfect = weights.w1 * totals.wanted + weights.w2 * totals.messages
    return DecidedOnSpark(members, work, read_ledger(table), perfect)


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        what = f"cannot be made ({error.strerror})"
        raise InputError(Problem(str(folder), what, "Name a new folder")) from error


def find_members(
    classes: DataFrame,
    setting: LloydSetting,
    totals: Totals,
    params: KmodesParams,
    seed: int,
    work: Path,
    stop: Stop,
    progress: Progress,
    most: int,
) -> Bytes:
    """Members from the heaviest classes, then from Lloyd passes over all."""
    all_unicast = params.weights.unicast * totals.wanted
    count = coreset_size(totals.rows, params, most)
    with progress.stage("search the heaviest") as told:
        told.rows(count)
        heavy = read_heaviest(classes, count, totals.rows, setting, work / "coreset")
        members = search_coreset(heavy, params, seed, stop, all_unicast)
    if count == totals.rows:
        return members
    return lloyd_on_spark(
        classes, setting, members, params.passes, work, stop, progress, all_unicast
    )


@dataclass(frozen=True)
class Totals:
    """Numbers of classes and flows, messages they send, and receptions that are wanted."""

    rows: int
    flows: int
    messages: float
    wanted: float


def read_totals(classes: DataFrame, channels: int) -> Totals:
    """The totals, if there is something to plan for so many channels."""
    row = only_row(
        classes.agg(
            F.count(F.lit(1)).alias("rows"),
            F.coalesce(F.sum("flows"), F.lit(0)).alias("flows"),
            exact_sum(F.col("messages")).alias("messages"),
            exact_sum(F.col("messages") * F.size("subscribers")).alias("wanted"),
        )
    )
    totals = Totals(**row.asDict())
    if totals.messages == 0:
        what = "nothing is sent that somebody wants, so there is nothing to plan"
        remedy = "Check publications, subscriptions, topics and the quarantine"
        raise InputError(Problem("dataset", what, remedy))
    if channels > totals.flows:
        what = f"{channels} channels are more than the {totals.flows} flows"
        raise InputError(Problem("channels", what, f"Use at most {totals.flows}"))
    return totals


def read_heaviest(
    classes: DataFrame, count: int, rows: int, setting: LloydSetting, folder: Path
) -> Demand:
    """The classes with the most messages times audience, by number; of equals the first.

    They are written by tasks and read here: no copy of them is in the JVM of the driver.
    """
    heaviest_classes(classes, count, rows).write.parquet(str(folder))
    table = read_stage(folder.parent, folder.name, ("audience_class", "subscribers", "messages"))
    return rows_demand(table.sort_by("audience_class").combine_chunks(), setting)


def heaviest_classes(classes: DataFrame, count: int, rows: int) -> DataFrame:
    columns = classes.select("audience_class", "subscribers", "messages")
    if count >= rows:
        return columns
    weight = F.col("messages") * F.size("subscribers")
    ranked = classes.select(weight.alias("weight"), "audience_class")
    last = only_row(ranked.orderBy(F.desc("weight"), "audience_class").offset(count - 1).limit(1))
    equal = (weight == last["weight"]) & (F.col("audience_class") <= last["audience_class"])
    return columns.filter((weight > last["weight"]) | equal)


def assign_on_spark(
    classes: DataFrame, setting: LloydSetting, members: Bytes, multiple: bool, work: Path
) -> DataFrame:
    """Write the table ``decided``: each class with its channels and its unicast subscribers."""
    step = partial(task_decisions, setting, str(save_members(members, work)), multiple)
    columns = classes.select("audience_class", "subscribers", "messages", "bytes")
    columns.mapInArrow(step, spark_schema(DECIDED)).write.parquet(str(work / DECIDED.name))
    return read_decided(classes.sparkSession, work)


def task_decisions(setting: LloydSetting, path: str, multiple: bool, batches: Batches) -> Batches:
    """In a task: what is decided for the rows of each batch."""
    for demand, members, batch in demands(setting, path, batches):
        cover = one_channel(members, assign_rows(demand, members).best)
        if multiple:
            cover = recover(demand, cover, no_rules(demand, setting.channels))
        yield decided_batch(batch, demand, cover)
