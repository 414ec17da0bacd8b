"""Audience classes: equal audiences meet, different ones never do, whatever the hash says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fanplan.core.errors import StageError
from fanplan.data import tables
from fanplan.data.ingest import interest as audience
from fanplan.data.schema import spark_schema

ROWS = [
    (0, [], 5.0, 50.0, [1, 2]),
    (1, [0, 1], 3.0, 30.0, [1, 2]),
    (1, [0, 2], 2.0, 20.0, []),
    (1, [1, 0], 9.0, 90.0, [2]),
    (2, [], 0.0, 0.0, [1, 2, 3]),
]


def heard(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(
        [(*row, 0.0, [], []) for row in ROWS], spark_schema(tables.AUDIENCES)
    )


def colliding(salts: int) -> Any:
    """A signature that is the same for all audiences under the first salts."""
    true = audience.signed

    def signed(audiences: DataFrame, salt: int) -> DataFrame:
        if salt >= salts:
            return true(audiences, salt)
        return audiences.withColumns({"high": F.lit(0).cast("long"), "low": F.lit(0).cast("long")})

    return signed


def summary(spark: SparkSession, folder: Path) -> tuple[list[Any], list[Any]]:
    topics = spark.createDataFrame(
        [("a", 0, 0), ("b", 1, 1), ("c", 2, 0)], spark_schema(tables.TOPICS)
    )
    salt = audience.find_salt(audience.wanted_audiences(heard(spark)))
    classes = audience.audience_classes(heard(spark), salt, folder)
    flows = audience.named_flows(False, salt, heard(spark), classes, topics)
    listed = classes.select("audience_class", "subscribers", "messages", "bytes", "flows")
    return (
        [tuple(row) for row in listed.orderBy("audience_class").collect()],
        [(row["flow"], row["audience_class"]) for row in flows.collect()],
    )


CLASSES = [(0, [2], 9.0, 90.0, 1), (1, [1, 2], 8.0, 80.0, 2), (2, [1, 2, 3], 0.0, 0.0, 1)]
FLOWS = [("a", 1), ("b[0,1]", 1), ("b[0,2]", -1), ("b[1,0]", 0), ("c", 2)]


def test_flows_with_equal_audiences_form_one_class(spark: SparkSession, tmp_path: Path) -> None:
    assert summary(spark, tmp_path / "aside") == (CLASSES, FLOWS)


def test_a_collision_is_found_and_another_salt_is_taken(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(audience, "signed", colliding(salts=2))
    assert audience.collisions(heard(spark), 0) == 1
    assert summary(spark, tmp_path / "aside") == (CLASSES, FLOWS)


def test_a_hash_that_always_collides_stops_the_stage(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audience, "signed", colliding(salts=len(audience.SALTS)))
    with pytest.raises(StageError, match="collide"):
        audience.find_salt(heard(spark))
