"""Writing the table of the marking layer."""

from __future__ import annotations

from pathlib import Path

from fanplan.layers.marking.types import MarkingLayer
from fanplan.plan.parquet import by_key, write_table
from fanplan.plan.tables import MARKS


def write_marking(layer: MarkingLayer, folder: Path) -> None:
    """The marks, ordered by the ends of links."""
    write_table(by_key(layer.marks, MARKS), MARKS, folder)
