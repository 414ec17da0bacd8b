"""The section of plan.json on groups."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
from pydantic import FiniteFloat

from fanplan.core.tables import Table
from fanplan.layers.groups.params import GroupsParams
from fanplan.plan.numbers import Amount, Count
from fanplan.plan.parquet import write_table
from fanplan.plan.section import SectionRecord
from fanplan.plan.tables import CELL_TABLES, GROUPS_TABLES


class GroupsRecord(SectionRecord):
    """Which groups were found and chosen, and what they save.

    ``params`` are what was asked for. ``groups`` counts those that were found, ``selected`` those
    that are set up. ``value`` is their benefit; no choice by the same rule exceeds ``bound``.
    Ledgers are totals and means over the window: ``default`` without groups, ``ledger`` with them.
    """

    layer = "groups"
    main = "virtual_groups"

    params: GroupsParams
    brokers: Count
    roots: Count
    groups: Count
    selected: Count
    covered: Amount
    value: FiniteFloat
    bound: FiniteFloat
    default: dict[str, FiniteFloat]
    ledger: dict[str, FiniteFloat]

    def tables(self) -> tuple[Table, ...]:
        return GROUPS_TABLES + (CELL_TABLES if self.params.cells else ())


RECORD = GroupsRecord


@dataclass(frozen=True, eq=False)
class GroupsSection:
    """Groups with their origin and their figures; ``tables`` are those of the plan folder.

    Nothing about them is drawn at random, so that the seed does not matter.
    """

    record: GroupsRecord
    tables: dict[str, pa.Table]
    source: str
    version: str
    seed: int = 0
    layer: Literal["groups"] = "groups"


def write_groups(layer: GroupsSection, folder: Path) -> None:
    """All tables of the layer, as they were built."""
    for table in GROUPS_TABLES + CELL_TABLES:
        if table.name in layer.tables:
            write_table(layer.tables[table.name], table, folder)
