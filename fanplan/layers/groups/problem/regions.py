"""The regions that clients of each broker subscribed to, read from the stage `broker_regions`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.data.reader import read_manifest, read_stage
from fanplan.data.subscription_cells import padded

COLUMNS = ("topic_id", "broker", "lo", "hi")


@dataclass(frozen=True, eq=False)
class BrokerRegions:
    """Boxes, one per line; the first ``dimensions`` columns of ``lo`` and ``hi`` count.

    ``broker`` is a position among the brokers of the dataset. Boxes of a broker may overlap.
    """

    topic: Longs
    dimensions: Ints
    broker: Longs
    lo: Floats
    hi: Floats


def read_broker_regions(dataset: Path) -> BrokerRegions:
    table = read_stage(dataset, "broker_regions", COLUMNS).combine_chunks()
    return regions_of(table, read_manifest(dataset).dimensions)


def regions_of(table: pa.Table, axes: int) -> BrokerRegions:
    """Boxes from columns of the stage; axes that a topic does not have are [0, 1)."""
    return BrokerRegions(
        topic=table["topic_id"].to_numpy().astype(np.int64),
        dimensions=pc.list_value_length(table["lo"]).to_numpy().astype(np.int32),
        broker=table["broker"].to_numpy().astype(np.int64),
        lo=padded(table["lo"], axes, 0.0),
        hi=padded(table["hi"], axes, 1.0),
    )
