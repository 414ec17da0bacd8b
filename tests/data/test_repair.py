"""Ingest into a dataset that is there: what is damaged is made again, and it is said."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commands import answer, run
from pyspark.sql import DataFrame, SparkSession

from fanplan.core.progress import quiet
from fanplan.core.tables import Column, Table
from fanplan.data.ingest.derived import Derived
from fanplan.data.ingest.ingest import ingest_workload
from fanplan.data.reader import damage, read_stage

LATER = Table("later", "", (Column("id", "long", ""),))


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repair") / "workload"
    folder.mkdir()
    wants = "".join(f"s{i},t{i % 3}\n" for i in range(9))
    (folder / "subscriptions.csv").write_text(f"subscriber,topic\n{wants}")
    sent = "".join(f"{i},t{i % 3}\n" for i in range(30))
    (folder / "publications.csv").write_text(f"time,topic\n{sent}")
    return folder


@pytest.fixture(scope="module")
def dataset(workload: Path, spark: SparkSession) -> Path:
    out = workload.parent / "dataset"
    assert ingest_workload(lambda _: spark, workload, out, {}, quiet()) == []
    return out


def drop(dataset: Path) -> None:
    shutil.rmtree(dataset / "flows")


def flip(dataset: Path) -> None:
    path = next((dataset / "flows").glob("*.parquet"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def edit(dataset: Path) -> None:
    path = dataset / "manifest.json"
    path.write_text(path.read_text().replace('"seconds": ', '"seconds": 1'))


@pytest.mark.parametrize(
    ("harm", "said"),
    [(drop, "stage flows: missing"), (flip, "hash differs"), (edit, "manifest.json: hash differs")],
)
def test_ingest_mends_what_is_damaged(
    dataset: Path,
    workload: Path,
    capsys: pytest.CaptureFixture[str],
    spark: SparkSession,
    harm: Callable[[Path], None],
    said: str,
) -> None:
    whole = read_stage(dataset, "flows")
    kept = next((dataset / "classes").glob("*.parquet")).stat().st_ino
    harm(dataset)
    code, told = answer(capsys, "ingest", workload, "--out", dataset, "--master", "local[2]")
    assert code == 0
    (mended,) = told["mended"]
    assert said in mended
    assert damage(dataset) == {}
    assert read_stage(dataset, "flows").equals(whole)
    assert next((dataset / "classes").glob("*.parquet")).stat().st_ino == kept, "made once"
    assert answer(capsys, "ingest", workload, "--out", dataset)[1]["mended"] == []
    harm(dataset)
    assert run("ingest", workload, "--out", dataset, "--master", "local[2]") == 0
    assert f"Mended: {mended.partition(':')[0]}" in capsys.readouterr().err


def test_a_stage_that_was_made_later_is_made_again_by_who_needs_it(
    dataset: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def build(_: Path) -> DataFrame:
        asked.append(1)
        return spark.range(3).select("id")

    source = Derived(lambda: spark, dataset, quiet())
    (dataset / "later.partial-0123abcd").mkdir()
    (dataset / ".left.tmp").mkdir()
    for _ in range(2):
        source.stage(LATER, None, build)
    assert len(asked) == 1
    left = ("*.partial-*", ".*")
    assert [path for name in left for path in dataset.glob(name)] == []
    path = next((dataset / "later").glob("*.parquet"))
    pq.write_table(pq.read_table(path).slice(1), path)
    assert list(damage(dataset)) == ["later"]
    source.stage(LATER, None, build)
    monkeypatch.setattr("fanplan.data.ingest.store.code_key", lambda: "a newer release")
    source.stage(LATER, None, build)
    assert len(asked) == 3
    assert sorted(read_stage(dataset, "later")["id"].to_pylist()) == [0, 1, 2]


def test_a_newer_release_reuses_nothing(
    dataset: Path, workload: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {path.name for path in dataset.glob("*/*.parquet")}
    for module in ("store", "ingest"):
        monkeypatch.setattr(f"fanplan.data.ingest.{module}.code_key", lambda: "a newer release")
    assert ingest_workload(lambda _: spark, workload, dataset, {}, quiet()) == []
    assert not files & {path.name for path in dataset.glob("*/part-0*.parquet")}
