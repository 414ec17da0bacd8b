"""Writing the tables of the overlay layer."""

from __future__ import annotations

from pathlib import Path

from fanplan.plan.overlay.types import OverlayLayer
from fanplan.plan.parquet import parquet_writer, write
from fanplan.plan.tables import OVERLAY_TABLES, TREE_TABLES


def write_overlay(layer: OverlayLayer, folder: Path) -> None:
    """All tables, ordered by their keys."""
    for table in OVERLAY_TABLES + TREE_TABLES:
        if table.name in layer.tables:
            content = layer.tables[table.name].sort_by([(name, "ascending") for name in table.key])
            with parquet_writer(folder, table) as writer:
                write(writer, [content[column.name] for column in table.columns])
