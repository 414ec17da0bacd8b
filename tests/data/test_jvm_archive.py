"""Archives of classes: found by what they are of, made once, and never in the way."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from clusters import QUICK_JVM

from fanplan.data import jvm_archive
from fanplan.data import spark as sparks
from fanplan.data.java import SHIM, java_home

START = """
from fanplan.data import spark as sparks
with sparks.running("local[1]", rows=1) as spark:
    print(spark.range(10).count())
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def shim_of(java: Path) -> Path:
    """A folder with a shim for a Java that has an archive of its own classes."""
    home = java.parent / "shim"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(SHIM.format(dropped="", java=java))
    shared = java.parent.parent / "lib" / "server"
    shared.mkdir(parents=True)
    (shared / "classes.jsa").touch()
    return home


@pytest.fixture
def home(tmp_path: Path) -> Path:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch()
    return shim_of(java)


def test_the_first_jvm_writes_and_others_use_what_it_wrote(home: Path) -> None:
    first = jvm_archive.found(home)
    assert first is not None
    assert first.written is not None
    assert f"-XX:ArchiveClassesAtExit={first.written}" in " ".join(first.options)
    first.written.write_bytes(b"classes")
    first.keep()
    second = jvm_archive.found(home)
    assert second is not None
    assert second.written is None
    assert f"-XX:SharedArchiveFile={first.path}" in " ".join(second.options)
    assert second.path.read_bytes() == b"classes"


def test_another_java_has_another_archive(home: Path, tmp_path: Path) -> None:
    before = jvm_archive.key(home)
    os.utime(tmp_path / "jdk" / "bin" / "java", (1, 1))
    assert jvm_archive.key(home) != before


def test_a_jvm_that_was_killed_leaves_nothing(home: Path) -> None:
    first = jvm_archive.found(home)
    assert first is not None
    left = first.path.with_name("0123.999999999.writing")
    left.touch()
    assert jvm_archive.found(home) == first
    assert not left.exists()


@pytest.mark.parametrize("whole", [False, True])
def test_what_cannot_be_written_is_not_tried_by_every_next_jvm(whole: bool, home: Path) -> None:
    first = jvm_archive.found(home)
    assert first is not None
    first.keep(whole)
    second = jvm_archive.found(home)
    assert second is not None
    assert second.written is None
    assert str(second.path) not in " ".join(second.options)
    before = time.time() - jvm_archive.RETRY_SECONDS - 1
    os.utime(first.path.with_suffix(".failed"), (before, before))
    assert jvm_archive.found(home) == first


def test_archives_of_installations_that_are_gone_go_first(home: Path, tmp_path: Path) -> None:
    first = jvm_archive.found(home)
    assert first is not None
    assert first.written is not None
    first.written.touch()
    for name, jars in (("here", tmp_path), ("gone", tmp_path / "gone")):
        first.path.with_name(f"{name}.jsa").touch()
        first.path.with_name(f"{name}.jars").write_text(str(jars))
    first.keep()
    kept = {file.name for file in first.path.parent.glob("*.jsa")}
    assert kept == {"here.jsa", first.path.name}


def test_few_archives_are_kept(home: Path) -> None:
    first = jvm_archive.found(home)
    assert first is not None
    assert first.written is not None
    for i in range(jvm_archive.KEPT):
        old = first.path.with_name(f"{i}.jsa")
        old.touch()
        os.utime(old, (i, i))
    first.written.touch()
    first.keep()
    kept = {file.name for file in first.path.parent.glob("*.jsa")}
    assert kept == {*(f"{i}.jsa" for i in range(1, jvm_archive.KEPT)), first.path.name}


def test_where_nothing_can_be_kept_spark_starts_without(home: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    assert jvm_archive.found(home) is None


def test_a_damaged_archive_is_not_in_the_way() -> None:
    home = java_home()
    found = jvm_archive.found(home)
    assert found is not None
    found.path.write_bytes(b"no archive")
    conf = f"spark.driver.memory=1g 'spark.driver.extraJavaOptions={QUICK_JVM}'"
    done = subprocess.run(
        [sys.executable, "-c", START],
        env=os.environ | {sparks.EXTRA: conf},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("10\n", "")
