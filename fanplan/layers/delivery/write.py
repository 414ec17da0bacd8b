"""Writing the tables of the delivery section."""

from __future__ import annotations

from pathlib import Path

from fanplan.layers.delivery.types import DeliveryLayer
from fanplan.plan.parquet import by_key, write_table
from fanplan.plan.tables import DELIVERY_TABLES


def write_delivery(layer: DeliveryLayer, folder: Path) -> None:
    """All tables, ordered by their keys."""
    for table in DELIVERY_TABLES:
        write_table(by_key(layer.tables[table.name], table), table, folder)
