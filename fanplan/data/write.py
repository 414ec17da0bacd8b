"""Rows of a query as a folder of Parquet files."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from fanplan.data.sizes import collected


def write_folder(
    rows: DataFrame, folder: Path, by: str | None = None, narrow: bool = False
) -> pa.Table | None:
    """Write rows to a new folder, divided ``by`` a column into folders called COLUMN=VALUE.

    A few rows are written here, and returned; see `collected` for ``narrow``. Spark's way through
    Hadoop is long for them: on a local disk it starts a process (`chmod`) for every file and
    folder, ten for one table.
    """
    found = collected(rows, narrow)
    if found is not None:
        write_here(found, folder, by)
    elif by:
        rows.write.partitionBy(by).parquet(str(folder))
    else:
        rows.write.parquet(str(folder))
    return found


def write_here(rows: pa.Table, folder: Path, by: str | None) -> None:
    for name, part in divided(rows, by):
        (folder / name).mkdir(parents=True)
        # Workers remember files by their names: none comes twice.
        file = folder / name / f"part-00000-{uuid.uuid4()}.parquet"
        pq.write_table(part, file, store_schema=False)


def divided(rows: pa.Table, by: str | None) -> Iterator[tuple[str, pa.Table]]:
    """Rows by the folder that they go to."""
    if by is None:
        yield "", rows
        return
    for value in pc.unique(rows[by]):
        part = rows.filter(pc.equal(rows[by], value)).drop_columns(by)
        yield f"{by}={str(value).lower()}", part
