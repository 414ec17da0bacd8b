"""Replay of a whole plan: every publication by channels, last hops, direct unicast and brokers.

Publications are counted by flow and entry; only sums by audience class reach the driver, where
trees are walked. Who wants what is matched anew, by the subscriptions of the dataset.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fanplan.core.errors import InputError, Problem
from fanplan.core.ledger import Ledger
from fanplan.core.tables import arrow_schema
from fanplan.data.ingest.cells import cell_points, with_topic_ids
from fanplan.data.ingest.derived import Derived
from fanplan.data.ingest.joins import join_audiences, join_wants
from fanplan.data.reader import verified
from fanplan.data.sizes import held, in_small_mode, read_folder, small_table
from fanplan.data.tables import coordinates
from fanplan.layers.channels.stages.replay import (
    measured_ledger,
    read_tables,
    require_publications,
    sum_or_zero,
)
from fanplan.layers.delivery.carried import DeliveryWays, Parcels, carried, ways_of_plan
from fanplan.layers.delivery.ledger import DeliveryLedger
from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.delivery.replayed import Entered, ReplayedDelivery, planned_ledger
from fanplan.layers.groups.ledger import groups_ledger
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.overlay.stages.tables import ROUTES
from fanplan.network.brokers import Routes
from fanplan.network.dataset import ordered_routes, routes_of
from fanplan.plan.stored import StoredPlan

PLACE = ["topic_id", "cell"]
NOWHERE = -1
"""The entry of what is published by somebody whom the plan does not know."""


def replay_delivery(source: Derived, plan: StoredPlan) -> ReplayedDelivery:
    """Send every publication of a dataset through a plan with a section on delivery."""
    require_publications(source.dataset, source.manifest)
    require_same_flows(source, plan)
    with source.progress.stage("replay") as told, source.scratch() as folder:
        ways = ways_of_plan(plan, source.dataset) if plan.has(GroupsRecord) else None
        found = Replaying(source, plan, ways, folder).run()
        told.rows(found.entered.publications)
    return found


def require_same_flows(source: Derived, plan: StoredPlan) -> None:
    """On other input than was planned for, a cell must still be the same part of its space.

    Exact flows are known by the names of those who want them, so they are the same anywhere.
    """
    manifest, made = source.manifest, plan.record.input
    alike = manifest.grid == made.grid and made.grid in ("exact", "uniform")
    if manifest.key == made.key or not manifest.dimensions or alike:
        return
    what = f"was planned for other input, with other cells (grids {made.grid}, {manifest.grid})"
    remedy = "Replay it on the dataset it was made for, or use exact flows or uniform grids"
    raise InputError(Problem(str(plan.folder), what, remedy))


@dataclass(frozen=True)
class Replaying:
    """One replay. ``ways`` is None if the plan has no brokers: then all enter at one place.

    ``folder`` is for publications with their flows, which are read more than once.
    """

    source: Derived
    plan: StoredPlan
    ways: DeliveryWays | None
    folder: Path

    def run(self) -> ReplayedDelivery:
        manifest, record = self.source.manifest, self.plan.record
        sums = self.sums()
        unknown = sums["messages"].filter(sums["audience_class"].is_null())
        unplanned = self.unplanned() if len(unknown) else NO_ROUTES.empty_table()
        same = record.input.key == manifest.key
        return ReplayedDelivery(
            entered=entered(sums, unplanned),
            measured=self.with_brokers(self.near(), parcels(sums), unplanned),
            planned=planned_ledger(self.plan),
            parts=self.plan.section(DeliveryRecord).parts,
            prices=self.plan.section(DeliveryRecord).params.prices,
            seconds=(record.input.seconds, manifest.seconds),
            same=same,
            comparable=same and manifest.counted,
            exact=manifest.exact,
        )

    # ---- publications

    @cached_property
    def sent(self) -> DataFrame:
        """Publications with cell, source, and flow and audience class if the plan has them."""
        source, path = self.source, self.folder / "sent"
        points = with_topic_ids(source.read("publications"), source.read("topics"))
        entering = self.entering(points.withColumn("publisher", F.coalesce("publisher", F.lit(""))))
        columns = ("topic_id", "source", "bytes", *coordinates(source.manifest.dimensions))
        placed = source.placed(entering.select(*columns))
        flowing = placed.join(self.flows, on=PLACE, how="left").withColumn("weight", F.lit(1.0))
        if in_small_mode(source.session()):
            return held(flowing)
        flowing.write.parquet(str(path))
        return read_folder(source.session(), path)

    def entering(self, points: DataFrame) -> DataFrame:
        """Points with their source: the broker where the plan has their publisher."""
        if self.ways is None:
            return points.withColumn("source", F.lit(0))
        at = self.clients("publisher").select(F.col("client").alias("publisher"), "source")
        sent = points.join(at, on="publisher", how="left")
        return sent.withColumn("source", F.coalesce("source", F.lit(NOWHERE)))

    @cached_property
    def flows(self) -> DataFrame:
        """The flows of the plan by topic and cell."""
        flows = self.table("flows").select("flow", "topic", "cell", "audience_class")
        cell = F.coalesce("cell", F.array().cast("array<int>"))
        topics = self.source.read("topics").select("topic", "topic_id")
        return flows.withColumn("cell", cell).join(topics, on="topic", how="inner").drop("topic")

    @cached_property
    def cells(self) -> DataFrame:
        """Messages and bytes of each flow, or cell without one, from each source."""
        kinds = self.sent.groupBy(*PLACE, "source", "flow", "audience_class")
        return kinds.agg(sum_or_zero(F.col("weight")).alias("messages"), total_of("bytes"))

    def sums(self) -> pa.Table:
        """Messages of each class from each source; no class: not in the plan."""
        return self.cells.groupBy("audience_class", "source").agg(total_of("messages")).toArrow()

    @cached_property
    def points(self) -> DataFrame:
        """What is matched: publications, or places that stand for theirs."""
        if not self.source.manifest.by_place:
            return self.sent
        return cell_points(self.cells, self.source.manifest.dimensions)

    @property
    def boxes(self) -> str:
        manifest = self.source.manifest
        boxes = manifest.boxes if manifest.by_place else "regions"
        return str(verified(self.source.dataset, boxes))

    # ---- channels and unicast

    def near(self) -> dict[str, float]:
        """What the plan's own channels and unicast do with the flows that it has."""
        tables = read_tables(self.source.session(), self.plan)
        if self.ways is not None and len(self.ways.lost):
            gone = F.col("channel").isin(self.ways.lost.tolist())
            tables = replace(tables, channel_flows=tables.channel_flows.filter(~gone))
        flows = self.known().groupBy("flow").agg(total_of("messages"), total_of("bytes"))
        flows = flows.withColumn("unplanned", F.lit(False))
        wants = held(self.wants())
        row: Any = measured_ledger(flows, wants, tables).first()
        wants.unpersist()
        result: dict[str, float] = row.asDict()
        return result

    def known(self) -> DataFrame:
        """Messages and bytes of the flows of the plan that enter somewhere, from each source."""
        return self.cells.filter(F.col("flow").isNotNull() & (F.col("source") >= 0))

    def direct(self) -> float:
        """Messages that go past brokers to a subscriber in another domain than where they enter."""
        if self.ways is None:
            return 0.0
        past = self.known().join(self.table("direct_classes"), on="audience_class", how="inner")
        homes = self.clients("subscriber").select(
            F.col("client").alias("subscriber"), F.col("source").alias("home")
        )
        pairs = past.join(self.table("unicast"), on="flow", how="inner").join(
            homes, on="subscriber", how="inner"
        )
        found = pairs.groupBy("source", "home").agg(total_of("messages")).toArrow()
        source, home, messages = (found[name].to_numpy() for name in found.column_names)
        return float(messages[self.ways.beyond(source, home)].sum())

    def wants(self) -> DataFrame:
        """What each subscriber wants of the plan's flows; no flow where it does not enter."""
        enters = (F.col("source") >= 0).cast("int").alias("enters")
        points = self.points.filter("flow IS NOT NULL").select("*", enters)
        dimensions, key = self.source.manifest.dimensions, [*PLACE, "enters"]
        found = join_wants(points, self.boxes, dimensions, key)
        named = found.join(self.flows, on=PLACE, how="inner").join(
            self.source.read("subscribers"), on="subscriber_id", how="inner"
        )
        flow = F.when(F.col("enters") == 1, F.col("flow")).alias("flow")
        return named.select(flow, "subscriber", "messages")

    # ---- brokers

    def unplanned(self) -> pa.Table:
        """Routes of what the plan has no flow for: to the homes of those who want it.

        Whom the plan does not know misses it. Without brokers all are reached from one place.
        """
        points = self.points.filter("flow IS NULL")
        points = points.withColumn("point", F.monotonically_increasing_id())
        keep = ["point", "source", "weight", "bytes"]
        heard = join_audiences(points, self.boxes, self.source.manifest.dimensions, keep)
        each = heard.withColumn("subscriber_id", F.explode("subscribers"))
        at = F.when(F.col("source") >= 0, F.col("home")).alias("at")
        arrived = each.join(self.homes(), on="subscriber_id", how="left").select(*keep, at)
        ends = arrived.groupBy(*keep).agg(
            F.sort_array(F.collect_set("at")).alias("destinations"),
            F.count("at").alias("reached"),
            F.count(F.lit(1)).alias("wanted"),
        )
        weight, reached = F.col("weight"), F.col("reached")
        return (
            ends.groupBy("source", "destinations")
            .agg(
                sum_or_zero(weight).alias("messages"),
                sum_or_zero(weight * reached).alias("deliveries"),
                sum_or_zero(weight * (F.col("wanted") - reached)).alias("missed"),
                sum_or_zero(F.col("bytes") * reached).alias("bytes"),
            )
            .toArrow()
        )

    def homes(self) -> DataFrame:
        """Subscribers by number and the brokers where the plan has them."""
        people = self.source.read("subscribers").select("subscriber", "subscriber_id")
        if self.ways is None:
            return people.select("subscriber_id", F.lit(0).alias("home"))
        at = self.clients("subscriber").select(F.col("client").alias("subscriber"), "source")
        found = people.join(at, on="subscriber", how="inner")
        return found.select("subscriber_id", F.col("source").alias("home"))

    def clients(self, role: str) -> DataFrame:
        """Clients of a role and their broker as a position; of several the first by name."""
        names = self.ways.brokers.to_pylist() if self.ways else []
        places = [*zip(names, range(len(names)), strict=True)]
        numbers = small_table(self.source.session(), places, "broker string, source int")
        rows = self.table("clients").filter(F.col("role") == role)
        first = rows.groupBy("client").agg(F.min("broker").alias("broker"))
        return first.join(numbers, on="broker", how="inner")

    def with_brokers(
        self, near: dict[str, float], parcels: Parcels, unplanned: pa.Table
    ) -> DeliveryLedger:
        """The ledger of channels and unicast, with what brokers do and what was not planned."""
        near, more = dict(near), {name: sum_of(unplanned, name) for name in SUMMED}
        for counted in ("publications", "unplanned"):
            near.pop(counted)
        near["sent_unicast"] += more["deliveries"]
        near["received_wanted"] += more["deliveries"]
        near["missed"] += more["missed"]
        near["sent_bytes"] += more["bytes"]
        near["received_bytes"] += more["bytes"]
        if self.ways is None:
            matched = float(parcels.messages.sum())
            return DeliveryLedger(Ledger(**near, matched=matched), 0.0, 0, 0.0)
        problem = carried(self.ways, parcels, routes_in(unplanned))
        chosen = np.ones(problem.size, bool)
        far = groups_ledger(problem, chosen, self.plan.section(GroupsRecord).params.shortcuts)
        brokers = {"forwarded": float(far.received.sum()), "matched": far.matches}
        ledger = Ledger(**near, **brokers, control_messages=float(far.control))
        entries = len(self.ways.groups.entries.group)
        return DeliveryLedger(ledger, self.direct(), entries, far.delay_mean)

    def table(self, name: str) -> DataFrame:
        return read_folder(self.source.session(), self.plan.path(name))


NO_ROUTES = pa.schema(
    [*arrow_schema(ROUTES), *(pa.field(name, pa.float64()) for name in ("missed", "bytes"))]
)
SUMMED = ("deliveries", "missed", "bytes")


def parcels(sums: pa.Table) -> Parcels:
    """What enters somewhere, of classes that the plan has, in order."""
    known = pc.and_(pc.is_valid(sums["audience_class"]), pc.greater_equal(sums["source"], 0))
    order = [("audience_class", "ascending"), ("source", "ascending")]
    table = sums.filter(known).sort_by(order)
    row, source, messages = (table[name].to_numpy() for name in table.column_names)
    return Parcels(row.astype(np.int64), source.astype(np.int32), messages)


def entered(sums: pa.Table, unplanned: pa.Table) -> Entered:
    unknown = sums.filter(pc.is_null(sums["audience_class"]))
    strange = sums.filter(pc.less(sums["source"], 0))
    wanted = sum_of(unplanned, "messages")
    idle = sum_of(unknown, "messages") - wanted
    return Entered(int(sum_of(sums, "messages")), wanted, idle, sum_of(strange, "messages"))


def sum_of(table: pa.Table, name: str) -> float:
    return float(table[name].to_numpy().sum())


def total_of(name: str) -> Any:
    return sum_or_zero(F.col(name).cast("double")).alias(name)


def routes_in(table: pa.Table) -> Routes:
    """Those of the routes that enter somewhere, in their order."""
    return routes_of(ordered_routes(table.filter(pc.greater_equal(table["source"], 0))))
