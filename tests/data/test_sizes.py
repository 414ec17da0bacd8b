"""Small queries run otherwise than large ones, and answer the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from fanplan.cli.prepare import DESCRIPTION, TABLES
from fanplan.core.progress import quiet
from fanplan.data import sizes
from fanplan.data.frames import store_tables
from fanplan.data.ingest import run
from fanplan.data.ingest.ingest import ingest_workload
from fanplan.data.read.sources import find_sources
from fanplan.data.reader import read_manifest, read_stage
from fanplan.data.write import write_folder

SETTING = "spark.sql.adaptive.enabled"


@pytest.fixture
def session(spark: SparkSession) -> Any:
    """The shared session, left for many rows."""
    sizes.fit_session(spark, None)
    yield spark
    sizes.fit_session(spark, None)


def test_few_rows_change_settings_and_many_give_them_back(session: SparkSession) -> None:
    before = {key: session.conf.get(key) for key in sizes.SMALL}
    sizes.fit_session(session, sizes.SMALL_ROWS)
    assert session.conf.get(SETTING) == "false"
    sizes.fit_session(session, sizes.SMALL_ROWS + 1)
    assert {key: session.conf.get(key) for key in sizes.SMALL} == before


def test_what_the_user_set_stays(session: SparkSession) -> None:
    chosen = str(session.conf.get(sizes.FIXED, ""))
    session.conf.set(sizes.FIXED, SETTING)
    try:
        sizes.fit_session(session, 1)
        assert session.conf.get(SETTING) == "true"
        sizes.fit_session(session, None)
    finally:
        session.conf.set(sizes.FIXED, chosen)


def test_a_small_query_is_one_task(
    session: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session.range(0, 100, 1, 4).write.parquet(str(tmp_path / "odd{1,2}*[x]"))
    sizes.fit_session(session, 100)
    rows = sizes.read_folder(session, tmp_path / "odd{1,2}*[x]")
    names = sizes.small_table(session, [(1, "one"), (2, None)], "id long, name string")
    found = sizes.spread(rows.join(names, on="id", how="left"), "id").groupBy("name")
    found.agg(F.count(F.lit(1)).alias("n")).explain()
    assert "Exchange" not in capsys.readouterr().out
    counts = {row["name"]: row["n"] for row in found.agg(F.count(F.lit(1)).alias("n")).collect()}
    assert counts == {"one": 1, None: 99}


def test_rows_of_a_small_query_are_brought_together(session: SparkSession) -> None:
    divided = session.range(20).repartition(7, "id")
    assert divided.select(F.spark_partition_id()).distinct().count() > 1
    sizes.fit_session(session, 20)
    together = sizes.spread(divided, "id").select(F.spark_partition_id()).distinct()
    assert together.count() == 1


def test_a_dataset_is_the_same_whether_its_queries_are_small_or_not(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_tables(TABLES, tmp_path / "workload", DESCRIPTION)
    made: list[dict[str, Any]] = []
    # Large; small, held and written by Spark; narrow answers with the driver; all of them.
    for small, narrow, few in ((0, 0, 0), (99, 0, 0), (99, 99, 0), (99, 0, 99), (99, 1, 0)):
        monkeypatch.setattr(sizes, "SMALL_ROWS", small)
        monkeypatch.setattr(sizes, "NARROW_ROWS", narrow)
        monkeypatch.setattr(sizes, "FEW_ROWS", few)
        out = tmp_path / f"dataset-{len(made)}"
        ingest_workload(lambda _: session, tmp_path / "workload", out, {}, quiet())
        assert sizes.in_small_mode(session) is bool(small)
        made.append(contents(out))
        sizes.fit_session(session, None)
    assert all(other == made[0] for other in made)


def test_tables_of_few_rows_that_are_wide_are_not_for_the_driver(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_tables(TABLES, tmp_path / "workload", DESCRIPTION)
    size = sum(source.size for source in find_sources(tmp_path / "workload").values())
    assert size > 0
    for most, small in ((size, True), (size - 1, False)):
        monkeypatch.setattr(run, "WIDE_BYTES", most)
        out = tmp_path / f"dataset-{small}"
        ingest_workload(lambda _: session, tmp_path / "workload", out, {}, quiet())
        assert sizes.in_small_mode(session) is small
        sizes.fit_session(session, None)
    assert contents(tmp_path / "dataset-True") == contents(tmp_path / "dataset-False")


def test_an_answer_is_collected_only_if_it_is_few(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "FEW_ROWS", 9)
    monkeypatch.setattr(sizes, "NARROW_ROWS", 20)
    rows = session.range(0, 20, 1, 3).withColumn("odd", F.col("id") % 2 == 1)
    found = []
    for count, narrow in ((None, True), (9, False), (10, False), (10, True)):
        sizes.fit_session(session, count)
        found += [sizes.collected(answer, narrow) for answer in (rows, rows.union(rows))]
    assert [f and len(f) for f in found] == [None, None, 20, 40, None, None, 20, None]
    for count in (9, 10):
        sizes.fit_session(session, count)
        write_folder(rows, tmp_path / str(count), by="odd")
        table = pq.read_table(tmp_path / str(count))
        assert sorted(table["id"].to_pylist()) == [*range(20)]
        assert pq.read_table(tmp_path / str(count) / "odd=true").num_rows == 10


def test_rows_that_are_held_are_made_once(session: SparkSession) -> None:
    sizes.fit_session(session, 10)
    rows = sizes.held(session.range(3).withColumn("draw", F.rand()))
    assert rows.collect() == rows.collect()


def contents(dataset: Path) -> dict[str, Any]:
    """The rows of all stages, in an order of their own, and the key."""
    manifest = read_manifest(dataset)
    stages: dict[str, Any] = {
        stage: sorted(map(repr, read_stage(dataset, stage).to_pylist()))
        for stage in manifest.stages
    }
    return stages | {"key": manifest.key, "rows": manifest.stages}


def test_the_schema_of_a_folder_is_that_of_its_files(session: SparkSession, tmp_path: Path) -> None:
    session.range(3).write.parquet(str(tmp_path / "table"))
    file = next((tmp_path / "table").glob("*.parquet"))
    assert sizes.read_folder(session, file).schema == sizes.read_folder(session, file.parent).schema
    assert sizes.first_schema(tmp_path / "table").names == pq.read_schema(file).names
