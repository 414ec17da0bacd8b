"""What is decided about links: which descriptors travel on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from fanplan.layers.marking.record import MarkingRecord


@dataclass(frozen=True, eq=False)
class MarkingLayer:
    """A marking with its origin and its figures; ``marks`` is the table of the plan folder.

    Nothing about it is drawn at random, so that the seed does not matter.
    """

    record: MarkingRecord
    marks: pa.Table
    source: str
    version: str
    seed: int = 0
    layer: Literal["marking"] = "marking"
