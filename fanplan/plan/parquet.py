"""Plain Parquet: nothing in a file depends on when or where it is written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fanplan.core.tables import Table, arrow_schema

BATCH_ROWS = 1 << 18
"""Rows written at a time; a row group of a table holds as many."""


def parquet_writer(folder: Path, table: Table) -> pq.ParquetWriter:
    """A writer of one of the plan's tables."""
    return pq.ParquetWriter(
        folder / f"{table.name}.parquet",
        arrow_schema(table),
        compression="zstd",
        store_schema=False,
    )


def write(writer: pq.ParquetWriter, columns: list[pa.Array]) -> None:
    """Write columns as row groups."""
    fields = zip(columns, writer.schema, strict=True)
    table = pa.table([column.cast(field.type) for column, field in fields], schema=writer.schema)
    writer.write_table(table, row_group_size=BATCH_ROWS)


def write_table(content: pa.Table, table: Table, folder: Path) -> None:
    """Write a whole table of the plan, in the order in which it comes."""
    with parquet_writer(folder, table) as writer:
        write(writer, [content[column.name] for column in table.columns])


def by_key(content: pa.Table, table: Table) -> pa.Table:
    """The table ordered by its key."""
    return content.sort_by([(name, "ascending") for name in table.key])
