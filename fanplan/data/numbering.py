"""Numbers 0, 1, 2, … for rows in an order, in which no two rows are equal."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from fanplan.data.sizes import in_small_mode, read_folder


def numbered(rows: DataFrame, name: str, *order: Column | str, aside: Path) -> DataFrame:
    """The rows with a column ``name``, which is their place.

    Few are numbered by one task. Many are dealt to tasks by ranges and laid ``aside``, a folder
    that must stay as long as the answer is used: there a row's number is its place in its file,
    after the rows of the files before. Laid aside and not worked out twice, as ranges are drawn
    from a sample, and a second one could differ.
    """
    if in_small_mode(rows.sparkSession):
        return rows.withColumn(name, dense_number(*order))
    ranges = rows.repartitionByRange(*order).sortWithinPartitions(*order)
    ranges.write.parquet(str(aside))
    files = sorted(aside.glob("*.parquet"))
    before = [0, *accumulate(pq.read_metadata(file).num_rows for file in files)]
    starts = [F.lit(each) for i, file in enumerate(files) for each in (file.name, before[i])]
    first = F.create_map(*starts)[F.col("_metadata.file_name")]
    number = (first + F.col("_metadata.row_index")).cast("int")
    return read_folder(rows.sparkSession, aside, rows.schema).withColumn(name, number)


def dense_number(*order: Column | str) -> Column:
    """The same as a column, which one task makes: for rows that are few whatever the workload."""
    return F.row_number().over(Window.partitionBy(F.lit(0)).orderBy(*order)) - 1
