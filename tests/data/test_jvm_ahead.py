"""A JVM that starts before all else: when it does, how it is called, and that it never stays."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fanplan.core import owned
from fanplan.data import java, jvm_ahead
from fanplan.data.server import within
from fanplan.data.workers import PLACE

SLEEP = str(shutil.which("sleep"))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    for name in jvm_ahead.OF_USER:
        monkeypatch.delenv(name, raising=False)
    java.cache().mkdir(parents=True)
    yield
    jvm_ahead.end_begun()


def start(folder: Path, text: str) -> None:
    """A session's folder with what its JVM would read."""
    folder.mkdir(exist_ok=True)
    (folder / "spark.conf").write_text(f"{text} in {folder}")


def keep_one(folder: Path) -> None:
    """Keep how a process was called, which stands for a JVM."""
    start(folder, "few")
    process = owned.started([SLEEP, "600"], env=os.environ | {"ADDED": "1"})
    jvm_ahead.keep_start(process, folder)
    owned.killed(process)


def workload(folder: Path) -> str:
    folder.mkdir()
    (folder / "subscriptions.csv").write_text("subscriber,topic\nann,a\n")
    return str(folder)


def test_what_is_kept_is_called_again_in_another_folder(tmp_path: Path) -> None:
    keep_one(tmp_path / "first")
    kept = jvm_ahead.kept_start()
    assert kept is not None
    assert (kept.words, kept.files) == ([SLEEP, "600"], {"spark.conf": "few in {folder}"})
    assert kept.added["ADDED"] == "1"
    start(tmp_path / "second", "few")
    process = jvm_ahead.called(tmp_path / "second")
    assert process is not None
    owned.killed(process)


def test_other_settings_are_not_called_so(tmp_path: Path) -> None:
    keep_one(tmp_path / "first")
    start(tmp_path / "second", "many")
    assert jvm_ahead.called(tmp_path / "second") is None


def test_what_a_user_sets_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf a=secret pyspark-shell")
    keep_one(tmp_path / "first")
    assert jvm_ahead.kept_start() is None


def test_a_command_that_ingests_begins_and_its_session_takes_it(tmp_path: Path) -> None:
    keep_one(tmp_path / "first")
    jvm_ahead.begin(["ingest", workload(tmp_path / "desk"), "--out", "dataset"])
    folder = jvm_ahead.begun_folder()
    assert folder is not None
    assert (folder / "spark.conf").read_text() == f"few in {folder}"
    process = jvm_ahead.taken(folder)
    assert process is not None
    assert process.poll() is None
    assert jvm_ahead.begun_folder() is None
    owned.killed(process)
    owned.release(folder)


@pytest.mark.parametrize("how", ["other settings", "nobody"])
def test_what_no_session_takes_is_ended(how: str, tmp_path: Path) -> None:
    keep_one(tmp_path / "first")
    jvm_ahead.begin(["ingest", workload(tmp_path / "desk")])
    assert jvm_ahead._begun is not None
    process, folder = jvm_ahead._begun.process, jvm_ahead._begun.folder
    if how == "nobody":
        jvm_ahead.end_begun()
        assert not folder.exists()
    else:
        start(folder, "many")
        assert jvm_ahead.taken(folder) is None
        owned.release(folder)
    assert process.poll() is not None


def test_only_commands_that_surely_need_it_for_few_rows_begin(tmp_path: Path) -> None:
    desk, dataset = workload(tmp_path / "desk"), workload(tmp_path / "dataset")
    (tmp_path / "dataset" / "manifest.json").touch()
    assert jvm_ahead.wants_spark(["ingest", desk])
    assert jvm_ahead.wants_spark(["design", desk, "--channels", "2"])
    assert jvm_ahead.wants_spark(["design", dataset, "--channels", "2"])
    assert jvm_ahead.wants_spark(["replay", "plan", dataset])
    assert jvm_ahead.wants_spark(["demo"])
    # A complete dataset needs no Spark, and other Sparks are not started here.
    (tmp_path / "dataset" / "senders").mkdir()
    assert not jvm_ahead.wants_spark(["design", dataset])
    assert not jvm_ahead.wants_spark(["ingest", desk, "--out", dataset])
    assert not jvm_ahead.wants_spark(["ingest", desk, "--master", "spark://somewhere"])
    assert not jvm_ahead.wants_spark(["ingest", desk, "--help"])
    assert not jvm_ahead.wants_spark(["ingest", str(tmp_path / "missing")])
    assert not jvm_ahead.wants_spark(["show", desk])
    assert not jvm_ahead.wants_spark([])
    os.truncate(tmp_path / "desk" / "subscriptions.csv", jvm_ahead.FEW_BYTES + 1)
    assert not jvm_ahead.wants_spark(["ingest", desk])


# ---- workers


@pytest.mark.parametrize("stands_by", [True, False])
def test_a_daemon_is_ready_and_ends_with_its_input(stands_by: bool, tmp_path: Path) -> None:
    """As Spark starts it: its port comes on stdout, and the end of stdin is its own."""
    ready = jvm_ahead.standing_by(tmp_path) if stands_by else None
    place = tmp_path / "workers"
    assert not stands_by or within(60, place.exists)
    spark = subprocess.Popen(
        [sys.executable, "-m", "fanplan.data.workers", "pyspark.worker"],
        env=os.environ | {PLACE: str(place)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert spark.stdout is not None
        port = int.from_bytes(spark.stdout.read(4))
        with socket.create_connection(("127.0.0.1", port)) as worker:
            pid = int.from_bytes(worker.recv(4))
            assert os.getpgid(pid) == (ready or spark).pid
        assert not place.exists()
        spark.communicate(timeout=60)
        assert ready is None or ready.wait(60) is not None
    finally:
        spark.kill()
        if ready is not None:
            owned.killed(ready)
