"""Stage `cell_routes`: the traffic of each cell of the groups' grid, by source and destinations."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fanplan.data import contracts
from fanplan.data.contracts import coordinates
from fanplan.data.ingest import cover
from fanplan.data.ingest.derived import Derived
from fanplan.data.ingest.traffic import GridRef
from fanplan.layers.groups.stages.grid import Batches, GroupGrid, numbers_at, with_cell
from fanplan.layers.overlay.stages import routes
from fanplan.network.dataset import require_homes

KEEP = ("cell", "source", "weight")


def cell_routes(source: Derived, grid: GroupGrid, cells: int) -> None:
    build = lambda folder: _cell_routes(source, grid, folder)  # noqa: E731
    source.stage("cell_routes", cells, contracts.CELL_ROUTES, build)


def _cell_routes(source: Derived, grid: GroupGrid, folder: Path) -> DataFrame:
    require_homes(source.dataset)
    sent = (
        _published(source, grid)
        if routes.traffic_is_measured(source)
        else _spread(source, grid, folder)
    )
    return routes.summed_routes(routes.to_brokers(source, sent, folder), "cell")


def _published(source: Derived, grid: GroupGrid) -> routes.SentPoints:
    """Publications, each with its cell."""
    points = routes.published_points(source, routes.publisher_brokers, False, "weight")
    return routes.SentPoints(with_cell(points, grid), source.read("regions"), KEEP)


def _spread(source: Derived, grid: GroupGrid, folder: Path) -> routes.SentPoints:
    """Advertised rates, spread over cells so fine that each lies in one cell of both grids.

    Who wants any of a fine cell is taken to want all of it; on an atomic grid that is exact.
    """
    fine = _refined(source, folder / "grid") if grid.dimensions else source.grid
    points = routes.advertised_points(source, routes.publisher_brokers, fine)
    columns = ("topic_id", "source", "weight", *coordinates(grid.dimensions))
    schema = points.select(*columns, F.lit(0).cast("long").alias("cell")).schema
    placed = points.select(*columns).mapInArrow(partial(_placed, grid, fine), schema)
    boxes = cover.cover(source.read("regions"), fine, "overlap")
    return routes.SentPoints(placed, boxes, KEEP)


def _refined(source: Derived, path: Path) -> GridRef:
    """The edges of the dataset's grid and of the groups' grid together."""
    others = source.read("group_grid").withColumnRenamed("edges", "others")
    both = source.read("grid").join(others, on=["topic_id", "axis"], how="inner")
    edges = F.array_sort(F.array_union("edges", "others")).alias("edges")
    both.select("topic_id", "axis", edges).write.parquet(str(path))
    known = source.manifest
    return GridRef(str(path), str(path), known.stages["topics"], known.dimensions)


def _placed(grid: GroupGrid, fine: GridRef, batches: Batches) -> Batches:
    """Fine cells with the cell of the groups' grid that their lower corners lie in."""
    edges = fine.load()
    for batch in batches:
        topic = batch.column("topic_id").to_numpy()
        corner = np.zeros((len(topic), grid.dimensions))
        for axis, name in enumerate(coordinates(grid.dimensions)):
            at = batch.column(name).to_numpy()
            own = ~np.isnan(at)
            corner[own, axis] = edges.values[edges.start[topic[own], axis] + at[own].astype(int)]
        yield batch.append_column("cell", pa.array(numbers_at(grid, topic, corner)))
