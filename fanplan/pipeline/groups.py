"""Stages of groups: the regions of brokers, and the traffic between them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fanplan.pipeline import contracts
from fanplan.pipeline.derived import Derived
from fanplan.pipeline.routes import broker_routes
from fanplan.pipeline.similarity import broker_numbers
from fanplan.problem.groups_dataset import Grouping
from fanplan.problem.overlay_dataset import require_homes


def group_stages(source: Derived, grouping: Grouping) -> None:
    """Make the stages that `load_groups` reads."""
    broker_regions(source)
    broker_routes(source)


def broker_regions(source: Derived) -> None:
    """Stage `broker_regions`: the different regions that clients of each broker subscribed to."""
    source.stage("broker_regions", None, contracts.BROKER_REGIONS, lambda _: _regions(source))


def _regions(source: Derived) -> DataFrame:
    require_homes(source.dataset)
    homes = source.read("subscriptions").join(broker_numbers(source), on="broker", how="inner")
    owned = homes.select("subscription", F.col("owner").alias("broker"))
    boxes = source.read("regions").join(owned, on="subscription", how="inner")
    return boxes.select("topic_id", "broker", "lo", "hi").distinct()
