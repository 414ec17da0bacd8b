"""What is decided about brokers: where clients are, and which links form which tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from fanplan.core.arrays import Floats
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.network.trees import Trees


@dataclass(frozen=True, eq=False)
class OverlayLayer:
    """An overlay with its origin and its figures; ``tables`` are those of the plan folder."""

    record: OverlayRecord
    tables: dict[str, pa.Table]
    trees: Trees
    load: Floats
    source: str
    seed: int
    version: str
    layer: Literal["overlay"] = "overlay"
