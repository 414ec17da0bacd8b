"""How queries run depends on how many rows they see; what they answer does not.

A query over a few rows takes longer to plan, compile and divide than to run. So small ones are
interpreted, in one task: what is read lies in one partition, and then no join, group or order
needs a shuffle, and every query is one job.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

SMALL_ROWS = 300_000
"""Most rows of a small query, all its inputs together."""
FEW_ROWS = 10_000
"""Most rows of a query whose answer the driver may have: pairs of so few are 100 MB at most."""
NARROW_ROWS = 50_000
"""Most rows of an answer that the driver may have of any small query, if its rows are narrow."""
WIDE_BYTES = 64 << 20
"""Tables of few rows and more bytes have wide rows: too many for the driver, few as they are."""
LARGE_ROWS = 2_000_000
"""For more rows than these a JVM that was started for few is replaced."""

# On the session itself, so that it can be told over Spark Connect too.
MODE = "spark.fanplan.small"
FEW = "spark.fanplan.few"

SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # A broadcast is a job of its own.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}

FIXED = "spark.fanplan.fixed"
"""Names of the settings that the user chose: they stay."""
BEFORE = "spark.fanplan.before"
"""Beside each setting that is changed for small queries: what it was."""


def is_small(rows: int | None) -> bool:
    """Whether this many rows are few; they are not if nobody knows how many there are."""
    return rows is not None and rows <= SMALL_ROWS


def fit_session(spark: SparkSession, rows: int | None) -> None:
    """Set a session for queries over that many rows."""
    small = is_small(rows)
    spark.conf.set(FEW, str(small and (rows or 0) <= FEW_ROWS).lower())
    if small == in_small_mode(spark):
        return
    fixed = (spark.conf.get(FIXED, "") or "").split()
    spark.conf.set(MODE, str(small).lower())
    for key in SMALL.keys() - fixed:
        if small:
            spark.conf.set(f"{BEFORE}.{key}", str(spark.conf.get(key)))
        spark.conf.set(key, SMALL[key] if small else str(spark.conf.get(f"{BEFORE}.{key}")))


def in_small_mode(spark: SparkSession) -> bool:
    return spark.conf.get(MODE, "false") == "true"


def most_collected(spark: SparkSession, narrow: bool) -> int:
    """How many rows of an answer the driver may have; those of a ``narrow`` table have no lists."""
    if spark.conf.get(FEW, "false") == "true":
        return SMALL_ROWS
    return NARROW_ROWS if narrow and in_small_mode(spark) else 0


def collected(rows: DataFrame, narrow: bool = False) -> pa.Table | None:
    """The rows of an answer, if they are few; all may be null, as in files."""
    most = most_collected(rows.sparkSession, narrow)
    if not most:
        return None
    found = rows.limit(most + 1).toArrow()
    return found.cast(as_in_files(rows.schema)) if len(found) <= most else None


def as_in_files(schema: T.StructType) -> pa.Schema:
    """Columns as files have them: all may be null."""
    return to_arrow_schema(schema.toNullable())


def gathered(rows: DataFrame) -> DataFrame:
    """The rows of a small query in one partition, so that nothing has to be shuffled."""
    return rows.coalesce(1) if in_small_mode(rows.sparkSession) else rows


def ordered(rows: DataFrame, *columns: str) -> DataFrame:
    """Rows in the order of columns. Spark would shuffle them, even if they lie together."""
    if in_small_mode(rows.sparkSession):
        return rows.coalesce(1).sortWithinPartitions(*columns)
    return rows.orderBy(*columns)


@contextmanager
def kept() -> Iterator[Callable[[DataFrame], DataFrame]]:
    """Rows that a small query uses more than once are made once, and kept to the end of the block.

    A large query has shuffles, and Spark makes those once by itself.
    """
    found: list[DataFrame] = []

    def keep(rows: DataFrame) -> DataFrame:
        if in_small_mode(rows.sparkSession):
            found.append(held(rows))
            return found[-1]
        return rows

    yield keep
    # Not after an error: Spark may be what failed.
    for rows in found:
        rows.unpersist()


def is_local(master: str | None) -> bool:
    """Whether the tasks of a master run in the driver's JVM; those of local-cluster[…] do not."""
    return master == "local" or str(master).startswith("local[")


def held(rows: DataFrame) -> DataFrame:
    """Rows that are made once, when they are first wanted, and lie in memory or on disk from then.

    Those of a small query on this machine lie there as rows, and how they were made is forgotten:
    what uses them is planned sooner. `persist` makes columns of them, by code that is compiled.
    """
    spark = rows.sparkSession
    if is_local(spark.conf.get("spark.master", "")) and in_small_mode(spark):
        return rows.localCheckpoint(eager=False)
    return rows.persist()


def at_hand(rows: DataFrame) -> DataFrame:
    """Rows that fit into memory, for a join that looks them up instead of sorting both sides."""
    return rows.hint("shuffle_hash" if in_small_mode(rows.sparkSession) else "broadcast")


def spread(rows: DataFrame, *columns: str, evenly: bool = False) -> DataFrame:
    """Rows dealt to tasks by the values of columns; those of a small query stay together.

    ``evenly``: to all tasks, though few bytes are much work.
    """
    if in_small_mode(rows.sparkSession):
        return gathered(rows)  # The user may have chosen how many partitions there are.
    cores = [int(str(rows.sparkSession.conf.get("spark.sql.shuffle.partitions")))] if evenly else []
    return rows.repartition(*cores, *columns)  # type: ignore[arg-type]


def read_folder(spark: SparkSession, path: Path, schema: T.StructType | None = None) -> DataFrame:
    """The rows of a Parquet file or folder, whose columns are those of its first file.

    Spark would start a job to find them.
    """
    found = schema or from_arrow_schema(first_schema(path))
    return gathered(spark.read.schema(found).parquet(escaped_path(path)))


def first_schema(path: Path) -> pa.Schema:
    file = path if path.is_file() else min(path.glob("*.parquet"))
    return pa.schema([field.with_nullable(True) for field in pq.read_schema(file)])


def escaped_path(path: Path) -> str:
    """A path for Spark's readers, which take some characters as patterns."""
    return re.sub(r"([\\*?\[\]{},])", r"\\\1", str(path))


def small_table(
    spark: SparkSession, rows: Sequence[tuple[Any, ...]], schema: str | T.StructType
) -> DataFrame:
    """Rows that the driver has, for a join: without a job, and on every executor.

    Given as a list, Spark would have a Python worker of another kind read them.
    """
    fields = cast("T.StructType", T.DataType.fromDDL(schema)) if isinstance(schema, str) else schema
    arrays = [
        pa.array([row[i] for row in rows], field.type)
        for i, field in enumerate(to_arrow_schema(fields))
    ]
    table = pa.Table.from_arrays(arrays, schema=to_arrow_schema(fields))
    return at_hand(given(spark, table))


def given(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A table that the driver has."""
    return gathered(spark.createDataFrame(table, from_arrow_schema(table.schema)))
