"""Rows are numbered by many tasks as one task would."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fanplan.data import sizes
from fanplan.data.numbering import dense_number, numbered

ROWS = 20_000


def rows_of(spark: SparkSession, count: int) -> DataFrame:
    """Rows in no order, many of them equal in the first column."""
    rows = spark.range(count)
    first = (F.xxhash64("id") % 7).alias("first")
    return rows.select(first, F.xxhash64("id", F.lit(1)).alias("second"), F.col("id").alias("kept"))


@pytest.mark.parametrize("count", [0, 1, ROWS])
def test_numbers_are_those_of_one_task(spark: SparkSession, tmp_path: Path, count: int) -> None:
    sizes.fit_session(spark, None)
    rows, order = rows_of(spark, count), (F.desc("first"), "second")
    found = numbered(rows, "number", *order, aside=tmp_path / "aside")
    alone = rows.withColumn("number", dense_number(*order))
    assert found.schema["number"].dataType == alone.schema["number"].dataType
    tables = (frame.toArrow().sort_by("number").to_pylist() for frame in (found, alone))
    assert next(tables) == next(tables)


def test_numbers_are_the_same_for_any_number_of_tasks(spark: SparkSession, tmp_path: Path) -> None:
    sizes.fit_session(spark, None)
    asked = ("spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions")
    before = {key: str(spark.conf.get(key)) for key in asked}
    found = {}
    try:
        spark.conf.set(asked[0], "false")
        for tasks in (1, 3, 8):
            spark.conf.set(asked[1], str(tasks))
            aside = tmp_path / str(tasks)
            rows = numbered(rows_of(spark, ROWS), "number", "second", aside=aside)
            found[tasks] = rows.toArrow().sort_by("number").to_pylist()
            assert len(list(aside.glob("*.parquet"))) == tasks
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)
    assert found[1] == found[3] == found[8]
    assert [row["number"] for row in found[1]] == list(range(ROWS))


def test_few_rows_stay_together(spark: SparkSession, tmp_path: Path) -> None:
    sizes.fit_session(spark, 10)
    try:
        found = numbered(rows_of(spark, 10), "number", "second", aside=tmp_path / "aside")
        assert sorted(row["number"] for row in found.collect()) == list(range(10))
    finally:
        sizes.fit_session(spark, None)
    assert not (tmp_path / "aside").exists()
