"""Writing the table of the marking layer."""

from __future__ import annotations

from pathlib import Path

from fanplan.plan.marking.types import MarkingLayer
from fanplan.plan.parquet import parquet_writer, write
from fanplan.plan.tables import MARKS


def write_marking(layer: MarkingLayer, folder: Path) -> None:
    """The marks, ordered by the ends of links."""
    content = layer.marks.sort_by([(name, "ascending") for name in MARKS.key])
    with parquet_writer(folder, MARKS) as writer:
        write(writer, [content[column.name] for column in MARKS.columns])
