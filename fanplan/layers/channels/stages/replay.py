"""Stage `replay`: every publication through a plan, counting what arrives, what was wanted and what
was missed. It counts anew from the publications; of the plan it reads only the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from fanplan.core.errors import InputError, Problem
from fanplan.core.ledger import Ledger
from fanplan.core.progress import Progress
from fanplan.data.ingest.cells import cell_points, with_topic_ids
from fanplan.data.ingest.derived import placed
from fanplan.data.ingest.joins import join_wants
from fanplan.data.reader import Manifest, read_manifest, verified
from fanplan.data.sizes import kept, read_folder
from fanplan.data.tables import coordinates
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.registry import load_plan
from fanplan.plan.replayed import Replayed
from fanplan.plan.stored import StoredPlan

UNPLANNED = "\0"
"""How the names of places begin that the plan has no flow for: no name of a user's does."""


@dataclass(frozen=True)
class PlanTables:
    """The tables of a plan that say where messages go."""

    channel_flows: DataFrame
    channel_subscribers: DataFrame
    unicast: DataFrame


@dataclass(frozen=True)
class DatasetInterest:
    """What a dataset says about who wants what, and its publications with their places."""

    topics: DataFrame
    subscribers: DataFrame
    flows: DataFrame
    dataset: Path
    manifest: Manifest

    def sent(self, publications: DataFrame) -> DataFrame:
        """(topic_id, cell, coordinates, messages, bytes) of each publication, or of each place."""
        points = with_topic_ids(publications, self.topics)
        columns = ("topic_id", "bytes", *coordinates(self.manifest.dimensions))
        found = placed(points.select(*columns), self.dataset, self.manifest)
        if not self.manifest.by_place:
            return found.withColumn("messages", F.lit(1.0))
        totals = (F.count(F.lit(1)).cast("double").alias("messages"), F.sum("bytes").alias("bytes"))
        return cell_points(found.groupBy("topic_id", "cell").agg(*totals), self.manifest.dimensions)

    def wanted(self, sent: DataFrame) -> DataFrame:
        """(flow, subscriber, messages): what each subscriber wants, matched anew."""
        boxes = self.manifest.boxes if self.manifest.by_place else "regions"
        points = sent.withColumn("weight", F.col("messages"))
        key, dims = ["topic_id", "cell"], self.manifest.dimensions
        wants = join_wants(points, str(verified(self.dataset, boxes)), dims, key)
        named = self.named(wants).join(self.subscribers, on="subscriber_id", how="inner")
        return named.select("flow", "subscriber", "messages")

    def named(self, places: DataFrame) -> DataFrame:
        """Places with the names that their flows have in the plan; others begin with UNPLANNED."""
        other = F.concat(F.lit(UNPLANNED), "topic_id", F.lit(" "), F.array_join("cell", " "))
        found = places.join(self.flows, on=["topic_id", "cell"], how="left")
        return found.withColumn("flow", F.coalesce("flow", other))


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
    publications: DataFrame,
    interest: DatasetInterest,
    plan: PlanTables,
    keep: Callable[[DataFrame], DataFrame],
) -> DataFrame:
    """One row: the measured ledger of a plan. What it uses more than once it asks to ``keep``."""
    sent = keep(interest.sent(publications))
    traffic = sent.groupBy("topic_id", "cell").agg(
        F.sum("messages").alias("messages"), F.sum("bytes").alias("bytes")
    )
    wants = keep(interest.wanted(sent))
    # What the plan has no flow for goes by default: to each who wants it, by unicast.
    default = wants.filter(F.col("flow").startswith(UNPLANNED)).select("flow", "subscriber")
    asked = default.select("flow", F.lit(True).alias("unplanned")).distinct()
    flows = interest.named(traffic).join(asked, on="flow", how="left")
    columns = ("flow", "messages", "bytes", "unplanned")
    served = replace(plan, unicast=plan.unicast.unionByName(default))
    return measured_ledger(flows.select(*columns), wants, served)


def measured_ledger(flows: DataFrame, wants: DataFrame, plan: PlanTables) -> DataFrame:
    """One row: the ledger of flows and of wants (flow, subscriber, messages).

    Flows have flow, messages, bytes and whether the plan lacks them. What is wanted of a flow that
    is null is missed.
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
        sum_or_zero(received).alias("received"),
        sum_or_zero(F.col("bytes") * sends).alias("sent_bytes"),
        sum_or_zero(F.col("bytes") * F.col("copies")).alias("received_bytes"),
    )
    published = flows.agg(
        sum_or_zero(F.col("messages")).alias("publications"),
        sum_or_zero(F.when(F.col("unplanned"), F.col("messages"))).alias("unplanned"),
    )
    # Three one-row tables as one: what a table does not have is null there.
    parts = published.unionByName(sent, True).unionByName(arrived, True)
    row = parts.agg(*(sum_or_zero(F.col(name)).alias(name) for name in parts.columns))
    unwanted = F.col("received") - F.col("received_wanted")
    return row.withColumn("received_unwanted", unwanted).drop("received")


def sum_or_zero(column: Column) -> Column:
    """A sum that is 0 if there is nothing."""
    return F.coalesce(F.sum(column), F.lit(0.0))


def replay_plan(
    session: Callable[[int], SparkSession], folder: Path, dataset: Path, progress: Progress
) -> Replayed:
    """Replay a stored plan on the dataset it was made for, or exact flows on another one."""
    # Spark's own processes may have another working directory than this one.
    folder, dataset = folder.absolute(), dataset.absolute()
    plan, manifest = load_plan(folder), read_manifest(dataset)
    planned = plan.section(ChannelsRecord)
    same = plan.record.input.key == manifest.key
    if not same and not plan.record.input.grid == manifest.grid == "exact":
        what = "was planned for other input than this dataset"
        raise InputError(Problem(str(folder), what, "Replay it on the dataset it was made for"))
    require_publications(dataset, manifest)
    spark = session(sum(manifest.stages.values()))
    with progress.stage("replay") as told, kept() as keep:
        rows = replay_ledger(
            read_folder(spark, verified(dataset, "publications")),
            dataset_interest(spark, dataset, manifest, plan),
            read_tables(spark, plan),
            keep,
        )
        row = rows.first()
        told.rows(int(row["publications"]))  # type: ignore[index]
    measured = row.asDict()  # type: ignore[union-attr]
    return Replayed(
        publications=int(measured.pop("publications")),
        unplanned=measured.pop("unplanned"),
        ledger=Ledger(**measured),
        planned=Ledger(**planned.ledger),
        weights=planned.weights,
        comparable=manifest.counted,
        same=same,
    )


def require_publications(dataset: Path, manifest: Manifest) -> None:
    if "publications" not in manifest.stages:
        what = "has no publications to replay"
        remedy = "Ingest a workload that has a publications table"
        raise InputError(Problem(str(dataset), what, remedy))


_PLAN_TABLES = ("channel_flows", "channel_subscribers", "unicast")


def read_tables(spark: SparkSession, plan: StoredPlan) -> PlanTables:
    return PlanTables(*(read_folder(spark, plan.path(name)) for name in _PLAN_TABLES))


def dataset_interest(
    spark: SparkSession, dataset: Path, manifest: Manifest, plan: StoredPlan
) -> DatasetInterest:
    topics, subscribers = (
        read_folder(spark, verified(dataset, stage)) for stage in ("topics", "subscribers")
    )
    topics = topics.select("topic", "topic_id", "space")
    flows = read_folder(spark, plan.path("flows")).select("flow", "topic", "cell")
    cell = F.coalesce("cell", F.array().cast("array<int>"))
    known = flows.withColumn("cell", cell).join(topics, on="topic", how="inner")
    places = known.select("flow", "topic_id", "cell")
    return DatasetInterest(topics, subscribers, places, dataset, manifest)
