"""The one language that tables are described in: input, stages of a dataset, plans and results.

A description feeds the schema of files, what a stage is held to, messages about wrong values and
the documentation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

ColumnType = Literal[
    "string", "number", "integer", "long", "boolean", "time", "map",
    "strings", "numbers", "integers", "boxes",
]  # fmt: skip
"""An integer has 32 bits and a long 64; times and maps are only in input; plurals are lists."""

ARROW_TYPES = {
    "string": pa.string(),
    "number": pa.float64(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "boolean": pa.bool_(),
    "strings": pa.list_(pa.string()),
    "numbers": pa.list_(pa.float64()),
    "integers": pa.list_(pa.int32()),
    "boxes": pa.list_(pa.struct(dict.fromkeys(("lo", "hi"), pa.list_(pa.float64())))),
}


@dataclass(frozen=True)
class Column:
    """One column. ``at_least`` is the smallest value allowed; ``positive`` excludes zero.

    ``at_most`` is the largest, and ``nearest_0`` the smallest that is not zero: what is beyond
    cannot be added up without loss.
    """

    name: str
    type: ColumnType
    meaning: str
    required: bool = False
    unit: str = ""
    default: str = ""
    at_least: float | None = None
    positive: bool = False
    at_most: float | None = None
    nearest_0: float = 0.0


@dataclass(frozen=True)
class Table:
    """One record type. ``key`` names the columns that must be unique together."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.required)

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)


def arrow_schema(table: Table) -> pa.Schema:
    """The table's columns for Arrow, and so for Parquet."""
    return pa.schema([pa.field(c.name, ARROW_TYPES[c.type], not c.required) for c in table.columns])
