"""Writing the tables of the groups layer."""

from __future__ import annotations

from pathlib import Path

from fanplan.layers.groups.types import GroupsLayer
from fanplan.plan.parquet import write_table
from fanplan.plan.tables import CELL_TABLES, GROUPS_TABLES


def write_groups(layer: GroupsLayer, folder: Path) -> None:
    """All tables of the layer, as they were built."""
    for table in GROUPS_TABLES + CELL_TABLES:
        if table.name in layer.tables:
            write_table(layer.tables[table.name], table, folder)
