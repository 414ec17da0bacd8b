"""Writing the tables of the groups layer."""

from __future__ import annotations

from pathlib import Path

from fanplan.plan.groups.types import GroupsLayer
from fanplan.plan.parquet import parquet_writer, write
from fanplan.plan.tables import CELL_TABLES, GROUPS_TABLES


def write_groups(layer: GroupsLayer, folder: Path) -> None:
    """All tables of the layer, as they were built."""
    for table in GROUPS_TABLES + CELL_TABLES:
        if table.name in layer.tables:
            content = layer.tables[table.name]
            with parquet_writer(folder, table) as writer:
                write(writer, [content[column.name] for column in table.columns])
