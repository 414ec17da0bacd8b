"""Writing the tables of the overlay layer."""

from __future__ import annotations

from pathlib import Path

from fanplan.layers.overlay.types import OverlayLayer
from fanplan.plan.parquet import by_key, write_table
from fanplan.plan.tables import OVERLAY_TABLES, TREE_TABLES


def write_overlay(layer: OverlayLayer, folder: Path) -> None:
    """All tables, ordered by their keys."""
    for table in OVERLAY_TABLES + TREE_TABLES:
        if table.name in layer.tables:
            write_table(by_key(layer.tables[table.name], table), table, folder)
