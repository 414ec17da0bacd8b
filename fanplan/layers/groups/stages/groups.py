"""Stages of groups: regions of brokers, and traffic by its destinations or by cells of a grid.

Cells that the same brokers marked are one *class*. Only classes, and a table from cells to classes,
reach the driver.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fanplan.data.ingest.cells import unordered_sum
from fanplan.data.ingest.derived import Derived
from fanplan.data.ingest.joins import join_audiences
from fanplan.data.numbering import numbered
from fanplan.data.write import write_folder
from fanplan.layers.groups.params import Grouping
from fanplan.layers.groups.problem.dataset import DEFAULT_CLASS
from fanplan.layers.groups.stages.cells import (
    GridStage,
    cell_boxes,
    cell_marks,
    cell_places,
    cell_routes,
    group_grid,
)
from fanplan.layers.groups.stages.tables import (
    BROKER_REGIONS,
    CLASS_OF_CELLS,
    GROUP_CLASSES,
    GROUP_ROUTES,
)
from fanplan.layers.overlay.stages.routes import stage_broker_routes
from fanplan.layers.overlay.stages.similarity import broker_numbers
from fanplan.network.dataset import require_homes

SIGNATURE = ["high", "low"]


def group_stages(source: Derived, grouping: Grouping) -> None:
    """Make the stages that `load_groups` reads."""
    broker_regions(source)
    if grouping.cells is None:
        stage_broker_routes(source)
        return
    grid = group_grid(source, grouping.cells)
    cell_marks(source, grid, grouping.cells)
    cell_routes(source, grid, grouping.cells)
    params = [grouping.cells, grouping.mark, grouping.least]
    source.stage(GROUP_CLASSES, params, lambda folder: _classes(source, grid, grouping, folder))
    source.stage(CLASS_OF_CELLS, params, lambda _: _cells(source, grouping))
    source.stage(GROUP_ROUTES, params, lambda _: _routes(source))


def broker_regions(source: Derived) -> None:
    """Stage `broker_regions`: the different regions that clients of each broker subscribed to."""
    source.stage(BROKER_REGIONS, None, lambda _: _regions(source))


def _regions(source: Derived) -> DataFrame:
    require_homes(source.dataset)
    homes = source.read("subscriptions").join(broker_numbers(source), on="broker", how="inner")
    owned = homes.select("subscription", F.col("owner").alias("broker"))
    boxes = source.read("regions").join(owned, on="subscription", how="inner")
    return boxes.select("topic_id", "broker", "lo", "hi").distinct()


def _eligible(source: Derived, grouping: Grouping) -> DataFrame:
    """Cells that may be in a group: whole where that is asked, and dense where a threshold is."""
    marks = source.read("cell_marks")
    if grouping.mark == "cover":
        marks = marks.filter("whole")
    if not grouping.least:
        return marks
    density = (
        source.read("cell_routes")
        .groupBy("cell")
        .agg(unordered_sum(F.col("messages")).alias("sent"))
    )
    dense = density.filter(F.col("sent") > grouping.least)
    return marks.join(dense, on="cell", how="left_semi")


def _classes(source: Derived, grid: GridStage, grouping: Grouping, folder: Path) -> DataFrame:
    """Stage `group_classes`: each set of brokers that marked a cell, taken from its first cell."""
    first = _eligible(source, grouping).groupBy(*SIGNATURE).agg(F.min("cell").alias("cell"))
    classes = numbered(first, "cell_class", "cell", aside=folder / "classes").select(
        "cell_class", *SIGNATURE, "cell"
    )
    path = folder / "boxes"
    write_folder(cell_boxes(source.read("broker_regions"), grid), path)
    points, keep = cell_places(classes, grid), ["cell_class", *SIGNATURE]
    found = join_audiences(points, str(path), grid.dimensions, keep)
    return found.withColumnRenamed("subscribers", "brokers")


def _cells(source: Derived, grouping: Grouping) -> DataFrame:
    """Stage `group_cells`: the class of each cell that may be in a group."""
    classes = source.read("group_classes").select("cell_class", *SIGNATURE)
    cells = _eligible(source, grouping).join(classes, on=SIGNATURE, how="inner")
    return cells.select("cell", "cell_class")


def _routes(source: Derived) -> DataFrame:
    """Stage `group_routes`: traffic by class, and what is in none."""
    rows = source.read("cell_routes").join(source.read("group_cells"), on="cell", how="left")
    known = F.coalesce("cell_class", F.lit(DEFAULT_CLASS)).alias("cell_class")
    by_class = rows.select(known, "source", "destinations", "messages", "deliveries")
    return by_class.groupBy("cell_class", "source", "destinations").agg(
        *(unordered_sum(F.col(name)).alias(name) for name in ("messages", "deliveries"))
    )
