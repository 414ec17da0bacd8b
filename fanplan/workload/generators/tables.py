"""Tables as files of a workload folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

TableFormat = Literal["parquet", "csv", "jsonl"]

# Rows that are turned into plain strings at a time: bounds the memory of a write.
ROWS_AT_A_TIME = 1 << 20


def write_table(table: pa.Table, folder: Path, name: str, format: TableFormat) -> None:
    """Write one table as one file, named after it."""
    _WRITERS[format](table, folder / f"{name}.{format}")


def _plain(table: pa.Table) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """The table a piece at a time, with names as plain strings."""
    schema = pa.schema(
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    )
    starts = range(0, table.num_rows, ROWS_AT_A_TIME)
    return schema, (table.slice(start, ROWS_AT_A_TIME).cast(schema) for start in starts)


def _write_parquet(table: pa.Table, path: Path) -> None:
    schema, pieces = _plain(table)
    with pa.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for piece in pieces:
            writer.write_table(piece)


def _write_csv(table: pa.Table, path: Path) -> None:
    schema, pieces = _plain(table)
    with pa.csv.CSVWriter(path, schema) as writer:
        for piece in pieces:
            writer.write_table(piece)


def _write_jsonl(table: pa.Table, path: Path) -> None:
    with path.open("w", encoding="utf-8") as lines:
        for piece in _plain(table)[1]:
            lines.writelines(json.dumps(row) + "\n" for row in piece.to_pylist())


_WRITERS: dict[TableFormat, Callable[[pa.Table, Path], None]] = {
    "parquet": _write_parquet,
    "csv": _write_csv,
    "jsonl": _write_jsonl,
}
