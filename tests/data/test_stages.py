"""The stage store: nothing computed twice, nothing mixed, a dataset whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow.parquet as pq
import pytest
from datasets import Flow, World, write_dataset, write_manifest
from pyspark.sql import DataFrame, SparkSession

from fanplan.core.errors import InputError, StageError
from fanplan.core.progress import Quiet, quiet
from fanplan.core.tables import Column, Table
from fanplan.data.ingest.code import code_key, sources_key
from fanplan.data.ingest.derived import Derived
from fanplan.data.ingest.store import Stage, StageStore
from fanplan.data.read.formats import KIND_ENDS
from fanplan.data.read.rows import quarantined
from fanplan.data.tables import QUARANTINE

NUMBERS = Table("numbers", "", (Column("id", "long", ""),))
FACTS = {"key": "k", "seconds": 1, "cover": "overlap", "grid": "exact", "exact": True}
"""The least that a manifest says."""
NEWS = World((Flow(frozenset({0})),), subscribers=1)


class Counted:
    """Builds a table of so many numbers and counts how often it is asked to."""

    def __init__(self, spark: SparkSession, count: int = 5) -> None:
        self.spark, self.count, self.calls = spark, count, 0

    def __call__(self) -> DataFrame:
        self.calls += 1
        return self.spark.range(self.count).select("id")


def run(store: StageStore, build: Counted, name: str = "numbers", **changes: object) -> Stage:
    wishes = {"params": {"n": build.count}, "inputs": ["k"]}
    table = replace(NUMBERS, name=name)
    return store.run(table, build=build, **{**wishes, **changes})  # type: ignore[arg-type]


def listing(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_dataset_appears_whole(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "data [1]{a,b}*"
    with StageStore(out, quiet()) as store:
        stage = run(store, Counted(spark))
        assert (stage.rows, stage.quarantined, stage.reused) == (5, 0, False)
        assert sorted(row["id"] for row in stage.read(spark).collect()) == [0, 1, 2, 3, 4]
        assert not out.exists()
        store.finish({"seconds": 1.0}, Path.exists)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["seconds"] == 1.0
    assert manifest["stages"]["numbers"] == {"key": stage.key, "rows": 5, "seal": stage.seal}
    assert pq.read_table(out / "numbers").num_rows == 5
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_only_what_changed_is_computed_again(spark: SparkSession, tmp_path: Path) -> None:
    build, other = Counted(spark), Counted(spark, 3)
    with StageStore(tmp_path / "out", quiet()) as store:
        first = run(store, build)
        assert run(store, build).reused
    with StageStore(tmp_path / "out", quiet()) as store:
        assert run(store, build).reused
        for change in ({"inputs": ["other"]}, {"params": {"n": 5, "seed": 1}}):
            assert run(store, build, **change).key != first.key
        assert build.calls == 3
        run(store, build, name="dropped")
        run(store, build)
        store.finish({"run": 1}, Path.exists)
    with StageStore(tmp_path / "out", quiet()) as store:
        assert run(store, build).reused
        run(store, other, name="more")
        before = listing(tmp_path / "out")
        store.finish({"run": 2}, Path.exists)
    after = listing(tmp_path / "out")
    assert any(name.startswith("dropped/") for name in before)
    assert not any(name.startswith("dropped/") for name in after)
    assert {n: b for n, b in before.items() if n.startswith("numbers/")}.items() <= after.items()


def drop(file: Path) -> None:
    file.unlink()


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def add(file: Path) -> None:
    shutil.copyfile(file, file.with_name("more.parquet"))


def forget(file: Path) -> None:
    (file.parent / "_stage.json").write_text("{}")


@pytest.mark.parametrize("damage", [drop, flip, add, forget])
def test_a_damaged_stage_is_not_reused(
    spark: SparkSession, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    build = Counted(spark)
    with StageStore(tmp_path / "out", quiet()) as store:
        damage(next(run(store, build).path.glob("*.parquet")))
        assert not run(store, build).reused
        store.finish(FACTS, Path.exists)
    damage(next((tmp_path / "out" / "numbers").glob("*.parquet")))
    with StageStore(tmp_path / "out", quiet()) as store:
        assert not run(store, build).reused
        assert run(store, build).reused


def test_a_stage_that_other_code_made_is_not_reused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = Counted(spark)
    with StageStore(tmp_path / "out", quiet()) as store:
        first = run(store, build)
        monkeypatch.setattr("fanplan.data.ingest.store.code_key", lambda: "a newer release")
        again = run(store, build)
        assert (again.reused, again.key) == (False, first.key), "plans stay those of their dataset"
        assert run(store, build).reused


def test_the_key_of_code_is_that_of_all_its_sources_and_libraries(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.py").write_text("x = 1\n")
    keys = [sources_key(tmp_path, {"pyspark": "1"}), sources_key(tmp_path, {"pyspark": "2"})]
    (tmp_path / "deep" / "a.py").write_text("x = 2\n")
    keys.append(sources_key(tmp_path, {"pyspark": "1"}))
    (tmp_path / "deep" / "a.py").rename(tmp_path / "deep" / "b.py")
    keys.append(sources_key(tmp_path, {"pyspark": "1"}))
    assert len(set(keys)) == 4
    assert code_key() == code_key()


def test_the_same_result_leaves_the_old_dataset_alone(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    folders = []
    for _ in range(2):
        with StageStore(out, quiet()) as store:
            run(store, Counted(spark))
            store.finish(FACTS, Path.exists)
        folders.append(out.stat().st_ino)
    assert folders[0] == folders[1]
    assert os.listdir(tmp_path) == ["out"]


def test_other_folders_are_never_replaced(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="is not a dataset"), StageStore(tmp_path / "out", quiet()):
        pass
    (tmp_path / "empty").mkdir()
    with StageStore(tmp_path / "empty", quiet()) as store:
        run(store, Counted(spark))
        store.finish({}, Path.exists)
    assert (tmp_path / "empty" / "manifest.json").is_file()


def test_a_swap_that_was_cut_short_is_undone(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with StageStore(out, quiet()) as store:
        run(store, Counted(spark))
        store.finish({}, Path.exists)
    out.rename(tmp_path / ".out.replaced")
    with StageStore(out, quiet()) as store:
        assert (out / "manifest.json").is_file()
        assert run(store, Counted(spark)).reused


def test_the_contract_is_held(spark: SparkSession, tmp_path: Path) -> None:
    wishes: dict[str, Any] = {"params": {}, "inputs": []}
    text = Table("numbers", "", (Column("id", "string", ""),))
    with StageStore(tmp_path / "out", quiet()) as store:
        with pytest.raises(StageError, match=r"numbers.*bigint.*string"):
            store.run(text, build=Counted(spark), **wishes)
        with pytest.raises(StageError, match="6 rows in"):
            run(store, Counted(spark), rows_in=6)
        assert not (store.folder / "numbers").exists()


def test_kept_and_quarantined_rows_part(spark: SparkSession, tmp_path: Path) -> None:
    def build() -> DataFrame:
        return spark.createDataFrame(
            [
                (1, "f", 2, "r1", None),
                (None, "f", 3, "r2", f"bad{KIND_ENDS}: 7"),
                (3, "f", 4, "r3", None),
            ],
            "id long, _source string, _line long, _raw string, _reason string",
        )

    with StageStore(tmp_path / "out", quiet()) as store:
        wishes: dict[str, Any] = {"params": {}, "inputs": []}
        stage = store.run(NUMBERS, build=build, split=True, rows_in=3, **wishes)
        assert (stage.rows, stage.quarantined) == (2, 1)
        assert sorted(row["id"] for row in stage.read(spark).collect()) == [1, 3]
        apart = quarantined(stage.read_quarantined(spark), "t")
        assert [f.name for f in apart.schema] == QUARANTINE.names
        assert [tuple(row) for row in apart.collect()] == [("t", "f", 3, "r2", "bad: 7", "bad")]
        assert pq.read_table(stage.path, columns=["id"]).num_rows == 2
        empty = store.run(
            replace(NUMBERS, name="all bad"),
            build=lambda: build().filter("_reason IS NOT NULL"),
            split=True,
            **wishes,
        )
        assert (empty.rows, empty.read(spark).count()) == (0, 0)


def test_one_run_at_a_time(tmp_path: Path) -> None:
    def other() -> None:
        with StageStore(tmp_path / "out", quiet()):
            pass

    with (
        StageStore(tmp_path / "out", quiet()),
        ThreadPoolExecutor() as pool,
        pytest.raises(InputError, match=rf"another run \(process {os.getpid()} on"),
    ):
        pool.submit(other).result()
    other()


class Waiting(Quiet):
    """Progress of a run that waits for another one: what it was told, and when."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.waits = threading.Event()

    def note(self, text: str) -> None:
        self.told.append(text)
        self.waits.set()

    def reused(self) -> None:
        self.told.append("reused")


def in_the_middle(spark: SparkSession, dataset: Path, told: Waiting, params: str) -> Counted:
    """Two runs that want a stage: the second one, with its params, comes while it is made."""
    build = Counted(spark)
    others: list[Future[None]] = []

    def slowly(_scratch: Path) -> DataFrame:
        second = Derived(lambda: spark, dataset, told)
        others.append(pool.submit(second.stage, NUMBERS, params, lambda _: build()))
        assert told.waits.wait(60)
        return build()

    with ThreadPoolExecutor() as pool:
        Derived(lambda: spark, dataset, quiet()).stage(NUMBERS, "first", slowly)
        others[0].result(60)
    return build


def test_of_two_runs_that_want_a_stage_one_makes_it(spark: SparkSession, tmp_path: Path) -> None:
    """The second failed at once, though all that it had to do was to wait."""
    write_dataset(tmp_path, NEWS)
    second = Waiting()
    assert in_the_middle(spark, tmp_path, second, "first").calls == 1
    who = f"another run (process {os.getpid()} on {socket.gethostname()})"
    assert second.told == [f"comes after {who}", "reused"]


def test_a_stage_that_another_run_works_with_is_not_replaced(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It would make its next stages from one of other options."""
    write_dataset(tmp_path, NEWS)
    with pytest.raises(InputError, match="works on it, and its numbers has other options"):
        in_the_middle(spark, tmp_path, Waiting(), "second")
    later = Counted(spark)
    Derived(lambda: spark, tmp_path, quiet()).stage(NUMBERS, "second", lambda _: later())
    assert later.calls == 1


def test_a_dataset_that_cannot_be_written_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer named a file that nobody knows, and asked for another folder to write in."""
    write_dataset(tmp_path, NEWS)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="cannot be written, and is to keep the further stage num"):
        Derived(MagicMock(), tmp_path, quiet()).stage(NUMBERS, "", MagicMock())


def test_a_dataset_that_was_ingested_anew_meanwhile_gets_no_stage(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_dataset(tmp_path, NEWS)
    run_of_old = Derived(lambda: spark, tmp_path, quiet())
    assert run_of_old.manifest
    write_manifest(tmp_path, replace(NEWS, seconds=3.0))
    with pytest.raises(InputError, match="was ingested anew while this run was at work"):
        run_of_old.stage(NUMBERS, {}, lambda _: Counted(spark)())
    assert not (tmp_path / "numbers").exists()


KILLED = """
import sys, time
from pathlib import Path
from fanplan.core.tables import Column, Table
from fanplan.data.spark import session
from fanplan.data.ingest.store import StageStore
from fanplan.core.progress import Quiet, quiet

out, sign = map(Path, sys.argv[1:])
spark = session("local[1]", conf={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})

def slow(batches):
    for batch in batches:
        yield batch
        sign.touch()
        time.sleep(600)

with StageStore(out, quiet()) as store:
    same = dict(params={"n": 5}, inputs=["k"])
    numbers, late = (Table(name, "", (Column("id", "long", ""),)) for name in ("numbers", "slow"))
    store.run(numbers, build=lambda: spark.range(5), **same)
    store.run(late, build=lambda: spark.range(5).mapInArrow(slow, "id long"), **same)
"""


def test_killed_in_the_middle(spark: SparkSession, tmp_path: Path) -> None:
    out, sign = tmp_path / "out", tmp_path / "sign"
    command = [sys.executable, "-c", KILLED, str(out), str(sign)]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        await_file(sign, process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    left = [path.name for path in (tmp_path / "out.partial").iterdir()]
    assert any(name.startswith("slow.partial-") for name in left)
    build, slow = Counted(spark), Counted(spark)
    with StageStore(out, quiet()) as store:
        assert run(store, build).reused
        assert run(store, slow, name="slow").rows == 5
        store.finish({}, Path.exists)
    assert (build.calls, slow.calls) == (0, 1)
    assert sorted(path.name for path in out.iterdir()) == ["manifest.json", "numbers", "slow"]


def await_file(path: Path, process: subprocess.Popen[bytes], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, "the run ended by itself"
        assert time.monotonic() < deadline, "the run never reached its second stage"
        time.sleep(0.1)
