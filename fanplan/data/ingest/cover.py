"""Stage `cover`: each region as a box of cell numbers.

Who wants a cell is then the same question as which boxes hold a point. With *overlap* a subscriber
wants every cell that its region meets, so nobody is missed. With *full* (Zhang & Hu 2005, section
2.2) it wants only the cells wholly inside. On an atomic grid both are the same, and exact.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fanplan.data.cells import cells_of_boxes
from fanplan.data.ingest.traffic import Batches, GridRef
from fanplan.workload.description_schema import CoverMode


def _snapped(grid: GridRef, full: bool, batches: Batches) -> Batches:
    """Turn boxes of coordinates into boxes of cell numbers."""
    edges = grid.load()
    for batch in batches:
        lo, hi = batch.column("lo"), batch.column("hi")
        ends = [np.array(side.flatten().to_numpy(), np.float64) for side in (lo, hi)]
        offsets = lo.offsets.to_numpy() - lo.offsets[0].as_py()
        topic = batch.column("topic_id").to_numpy()
        low, high = ends
        cells_of_boxes(edges.start, edges.count, edges.values, topic, offsets, low, high, full)
        lists = [pa.ListArray.from_arrays(pa.array(offsets), pa.array(side)) for side in ends]
        yield pa.record_batch(
            [*(batch.column(name) for name in batch.schema.names[:3]), *lists],
            names=batch.schema.names,
        )


def cover(regions: DataFrame, grid: GridRef, mode: CoverMode) -> DataFrame:
    """Regions as boxes of cell numbers; a region that covers no cell is left out."""
    if grid.dimensions == 0:
        return regions
    snapped = regions.mapInArrow(partial(_snapped, grid, mode == "full"), regions.schema)
    holds_cells = F.forall(F.arrays_zip("lo", "hi"), lambda end: end["lo"] < end["hi"])
    return snapped.filter(holds_cells)


def cell_points(traffic: DataFrame, dimensions: int) -> DataFrame:
    """Cells as points of cell numbers, weighted by their messages, to be matched with the cover."""
    numbers = {
        f"x{axis}": F.coalesce(
            F.try_element_at("cell", F.lit(axis + 1)).cast("double"), F.lit(np.nan)
        )
        for axis in range(dimensions)
    }
    return traffic.withColumns({**numbers, "weight": F.col("messages")})
