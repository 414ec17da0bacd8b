"""Settings of sessions, and how they are shared."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from clusters import free_port
from pyspark.errors import NumberFormatException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import fanplan
from fanplan.core.errors import InputError
from fanplan.data import jvm
from fanplan.data import spark as sparks
from fanplan.data.secret import SECRET_FILE, secret_conf

GIGABYTE = 1 << 30


def test_values_that_cannot_be_cast_stop_the_job(spark: SparkSession) -> None:
    words = spark.createDataFrame([("1",), ("one",)], "word string")
    assert words.select(F.col("word").try_cast("int")).collect() == [(1,), (None,)]
    with pytest.raises(NumberFormatException):
        words.select(F.col("word").cast("int")).collect()


def test_times_are_utc(spark: SparkSession) -> None:
    seconds = F.unix_seconds(F.lit("1970-01-01 00:00:10").cast("timestamp"))
    assert spark.range(1).select(seconds).first() == (10,)


def test_batches_are_large(spark: SparkSession) -> None:
    def size(batches: Any) -> Iterator[Any]:
        yield from (pa.RecordBatch.from_pydict({"rows": [batch.num_rows]}) for batch in batches)

    rows = spark.range(200_000, numPartitions=1).mapInArrow(size, "rows long").collect()
    assert rows == [(200_000,)]


def test_writing_by_a_column_of_few_values_needs_no_sort(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE halves (id LONG, odd BOOLEAN) USING parquet PARTITIONED BY (odd)")
    into = spark.sql("EXPLAIN INSERT INTO halves SELECT id, id % 2 = 1 FROM range(10)").first()
    spark.sql("DROP TABLE halves")
    assert into is not None
    assert "WriteFiles" in into[0]
    assert "Sort" not in into[0]


def test_settings_of_the_environment_are_read_as_in_a_shell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(sparks.EXTRA, "spark.a=1 'spark.b=x y=z'")
    assert sparks.environment_conf() == {"spark.a": "1", "spark.b": "x y=z"}


@pytest.mark.parametrize("text", ["spark.a", "memory=1g", "spark.a=1 b"])
def test_a_setting_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(sparks.EXTRA, text)
    with pytest.raises(InputError, match=r"FANPLAN_SPARK_CONF.*is not a setting"):
        sparks.session()


@pytest.mark.parametrize(
    "address", [{"master": "spark://127.0.0.1:{port}"}, {"remote": "sc://127.0.0.1:{port}"}]
)
def test_nobody_at_the_address_is_an_error_and_keeps_the_running_session(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, address: dict[str, Any]
) -> None:
    monkeypatch.setattr(sparks, "REACH_SECONDS", 1)
    where: dict[str, Any] = {key: text.format(port=free_port()) for key, text in address.items()}
    with pytest.raises(InputError, match=next(iter(where.values()))):
        sparks.session(**where)
    assert spark.range(3).count() == 3


@pytest.mark.parametrize("address", [{"master": "127.0.0.1"}, {"remote": "spark://127.0.0.1"}])
def test_an_address_of_another_kind_is_an_error(address: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"is no Spark.*Write s"):
        sparks.session(**address)


@pytest.mark.parametrize("package", sparks.CONNECT)
def test_a_server_needs_the_packages_of_its_extra(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=rf"{package}.*pip install 'fanplan\[connect\]'"):
        sparks.session(remote="sc://127.0.0.1")


def test_a_master_and_a_server_exclude_each_other() -> None:
    with pytest.raises(InputError, match="Give one of them"):
        sparks.session(master="local", remote="sc://127.0.0.1")


@pytest.mark.parametrize(("machine", "heap"), [(1, 1024), (10, 4096), (1000, 31 * 1024)])
def test_the_heap_is_sized_to_the_machine(machine: int, heap: int) -> None:
    assert sparks.driver_megabytes(machine * GIGABYTE) == heap


def test_the_machine_has_some_memory() -> None:
    assert GIGABYTE // 4 < sparks.machine_bytes() <= psutil.virtual_memory().total


def test_the_shipped_package_is_whole_and_the_same_every_time(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    first, again = sparks.package_zip(tmp_path), sparks.package_zip(tmp_path / "again")
    assert first.read_bytes() == again.read_bytes()
    with zipfile.ZipFile(first) as archive:
        assert f"fanplan/{Path(str(fanplan.__file__)).name}" in archive.namelist()
        assert all(name.endswith(".py") for name in archive.namelist())


def test_who_connects_must_know_the_secret_of_the_run(spark: SparkSession) -> None:
    assert spark.sparkContext.getConf().get("spark.authenticate") == "true"
    assert jvm._process is not None
    # Others may list processes: what one was told is in a file that they cannot read.
    words = " ".join(psutil.Process(jvm._process.pid).cmdline())
    assert ("SparkSubmit" in words, "spark.authenticate" in words) == (True, False)
    stated = Path(words.split("--properties-file ")[1].split()[0])
    assert "spark.authenticate=true" in stated.read_text()
    assert stated.parent.stat().st_mode & 0o777 == 0o700


def test_the_secret_of_a_cluster_is_read_from_a_file_of_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, word = tmp_path / "secret", "0123456789abcdef"
    monkeypatch.setenv(SECRET_FILE, str(file))
    with pytest.raises(InputError, match="no such file"):
        secret_conf("spark://127.0.0.1")
    file.write_text(f"{word}\n")
    file.chmod(0o640)
    with pytest.raises(InputError, match="others can read this secret"):
        secret_conf("spark://127.0.0.1")
    file.chmod(0o600)
    own = {"spark.authenticate": "true", "spark.authenticate.secret": word}
    assert secret_conf("spark://127.0.0.1") == own
    # An embedded Spark makes its own; other clusters have theirs.
    assert [secret_conf(master) for master in (None, "local[2]", "yarn")] == [{}, {}, {}]
    for wrong in ("short", "two words of a secret", ""):
        file.write_text(wrong)
        with pytest.raises(InputError, match="is not a secret"):
            secret_conf("spark://127.0.0.1")
