"""Stage `replay`: every publication through a plan, counting what arrives, what was wanted and what
was missed. It counts anew from the publications; of the plan it reads only the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from fanplan.core.errors import InputError, Problem
from fanplan.core.ledger import Ledger
from fanplan.core.progress import Progress
from fanplan.data.contracts import coordinates
from fanplan.data.ingest.cells import (
    GridRef,
    cell_points,
    measured_traffic,
    with_cells,
    with_topic_ids,
)
from fanplan.data.ingest.interest import flow_name
from fanplan.data.ingest.joins import join_audiences, join_wants
from fanplan.data.reader import Manifest, read_manifest
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.registry import load_plan
from fanplan.plan.replayed import Replayed
from fanplan.plan.stored import StoredPlan


@dataclass(frozen=True)
class PlanTables:
    """The tables of a plan that say where messages go."""

    channel_flows: DataFrame
    channel_subscribers: DataFrame
    unicast: DataFrame


@dataclass(frozen=True)
class DatasetInterest:
    """What a dataset says about who wants what: tables, and paths for the executors."""

    topics: DataFrame
    subscribers: DataFrame
    grid: GridRef
    regions: str
    cover: str
    exact: bool


def wanted(publications: DataFrame, interest: DatasetInterest) -> DataFrame:
    """(topic_id, cell, subscriber_id, messages): what each subscriber wants of each cell.

    Where no region cuts a cell (plain topics, atomic grids) a cell stands for its publications;
    elsewhere each publication is matched by itself.
    """
    topics, grid = interest.topics, interest.grid
    uncut = topics if interest.exact else topics.filter("space = 0")
    points = cell_points(measured_traffic(publications, uncut, grid), grid.dimensions)
    of_cells = (
        join_audiences(points, interest.cover, grid.dimensions, ["topic_id", "cell", "messages"])
        .withColumn("subscriber_id", F.explode("subscribers"))
        .select("topic_id", "cell", "subscriber_id", "messages")
    )
    if interest.exact:
        return of_cells
    cut = with_topic_ids(publications, topics.filter("space > 0"))
    points = with_cells(cut.select("topic_id", *coordinates(grid.dimensions)), grid)
    of_points = join_wants(points, interest.regions, grid.dimensions, ["topic_id", "cell"])
    return of_cells.unionByName(of_points)


def with_flow_names(cells: DataFrame, topics: DataFrame) -> DataFrame:
    """Cells under the names that flows have in a plan."""
    flow = flow_name(F.col("topic"), F.col("cell")).alias("flow")
    return cells.join(topics.select("topic", "topic_id"), on="topic_id", how="inner").select(
        "*", flow
    )


def ways_of_sending(plan: PlanTables, traffic: DataFrame) -> DataFrame:
    """One row per way of sending a flow: how often it is received when sent once."""
    members = plan.channel_subscribers.groupBy("channel").agg(F.count(F.lit(1)).alias("copies"))
    by_channel = plan.channel_flows.join(members, on="channel", how="left").select(
        "flow", F.coalesce("copies", F.lit(0)).alias("copies"), F.lit(False).alias("unicast")
    )
    by_unicast = plan.unicast.groupBy("flow").agg(F.count(F.lit(1)).alias("copies"))
    ways = by_channel.unionByName(by_unicast.withColumn("unicast", F.lit(True)))
    return ways.join(traffic, on="flow", how="inner")


def with_service(wants: DataFrame, plan: PlanTables) -> DataFrame:
    """Messages of each flow and subscriber, and `served`: whether it gets the flow by any way."""
    by_channel = (
        wants.join(plan.channel_flows, on="flow", how="inner")
        .join(plan.channel_subscribers, on=["channel", "subscriber"], how="left_semi")
        .select("flow", "subscriber")
    )
    service = by_channel.unionByName(plan.unicast.select("flow", "subscriber"))
    # One shuffle for all: pairs that are served and pairs that are wanted meet in a group.
    both = wants.unionByName(service.withColumn("served", F.lit(True)), allowMissingColumns=True)
    return both.groupBy("flow", "subscriber").agg(
        sum_or_zero(F.col("messages")).alias("messages"), F.max("served").alias("served")
    )


def replay_ledger(
    publications: DataFrame, interest: DatasetInterest, plan: PlanTables
) -> DataFrame:
    """One row: the measured ledger of a plan."""
    traffic = measured_traffic(publications, interest.topics, interest.grid)
    nothing = F.lit(False).alias("direct")
    flows = with_flow_names(traffic, interest.topics).select("flow", "messages", "bytes", nothing)
    wants = (
        with_flow_names(wanted(publications, interest), interest.topics)
        .join(interest.subscribers, on="subscriber_id", how="inner")
        .select("flow", "subscriber", "messages")
    )
    return measured_ledger(flows, wants, plan)


def measured_ledger(flows: DataFrame, wants: DataFrame, plan: PlanTables) -> DataFrame:
    """One row: the ledger of flows and of wants (flow, subscriber, messages).

    Flows have flow, messages, bytes and whether their unicast is direct: of ``sent_unicast`` that
    is ``direct``. What is wanted of a flow that is null is missed.
    """
    served = F.coalesce("served", F.lit(False))
    arrived = with_service(wants, plan).agg(
        sum_or_zero(F.when(served, F.col("messages"))).alias("received_wanted"),
        sum_or_zero(F.when(~served, F.col("messages"))).alias("missed"),
    )
    # A channel carries a flow's message once, whoever listens; unicast sends a copy to each.
    sends = F.when(F.col("unicast"), F.col("copies")).otherwise(1)
    received = F.col("messages") * F.col("copies")
    sent = ways_of_sending(plan, flows).agg(
        sum_or_zero(F.when(~F.col("unicast"), F.col("messages"))).alias("sent_multicast"),
        sum_or_zero(F.when(F.col("unicast"), received)).alias("sent_unicast"),
        sum_or_zero(F.when(F.col("unicast") & F.col("direct"), received)).alias("direct"),
        sum_or_zero(received).alias("received"),
        sum_or_zero(F.col("bytes") * sends).alias("sent_bytes"),
        sum_or_zero(F.col("bytes") * F.col("copies")).alias("received_bytes"),
    )
    published = flows.agg(sum_or_zero(F.col("messages")).alias("publications"))
    # Three one-row tables as one: what a table does not have is null there.
    parts = published.unionByName(sent, True).unionByName(arrived, True)
    row = parts.agg(*(sum_or_zero(F.col(name)).alias(name) for name in parts.columns))
    unwanted = F.col("received") - F.col("received_wanted")
    return row.withColumn("received_unwanted", unwanted).drop("received")


def sum_or_zero(column: Column) -> Column:
    """A sum that is 0 if there is nothing."""
    return F.coalesce(F.sum(column), F.lit(0.0))


def replay_plan(
    session: Callable[[], SparkSession], folder: Path, dataset: Path, progress: Progress
) -> Replayed:
    """Replay a stored plan on the dataset it was made for."""
    # Spark's own processes may have another working directory than this one.
    folder, dataset = folder.absolute(), dataset.absolute()
    plan, manifest = load_plan(folder), read_manifest(dataset)
    planned = plan.section(ChannelsRecord)
    if plan.record.input.key != manifest.key:
        what = "was planned for other input than this dataset"
        raise InputError(Problem(str(folder), what, "Replay it on the dataset it was made for"))
    require_publications(dataset, manifest)
    spark = session()
    with progress.stage("replay") as told:
        rows = replay_ledger(
            spark.read.parquet(str(dataset / "publications")),
            dataset_interest(spark, dataset, manifest),
            read_tables(spark, plan),
        )
        row = rows.drop("direct").first()
        told.rows(int(row["publications"]))  # type: ignore[index]
    measured = row.asDict()  # type: ignore[union-attr]
    return Replayed(
        publications=int(measured.pop("publications")),
        ledger=Ledger(**measured),
        planned=Ledger(**planned.ledger),
        weights=planned.weights,
        exact=manifest.exact and manifest.rates == "measured",
    )


def require_publications(dataset: Path, manifest: Manifest) -> None:
    if "publications" not in manifest.stages:
        what = "has no publications to replay"
        remedy = "Ingest a workload that has a publications table"
        raise InputError(Problem(str(dataset), what, remedy))


_PLAN_TABLES = ("channel_flows", "channel_subscribers", "unicast")


def read_tables(spark: SparkSession, plan: StoredPlan) -> PlanTables:
    return PlanTables(*(spark.read.parquet(str(plan.path(name))) for name in _PLAN_TABLES))


def dataset_interest(spark: SparkSession, dataset: Path, manifest: Manifest) -> DatasetInterest:
    topics = spark.read.parquet(str(dataset / "topics"))
    return DatasetInterest(
        topics,
        spark.read.parquet(str(dataset / "subscribers")),
        GridRef(
            str(dataset / "grid"), manifest.key, manifest.stages["topics"], manifest.dimensions
        ),
        regions=str(dataset / "regions"),
        cover=str(dataset / "cover"),
        exact=manifest.exact,
    )
