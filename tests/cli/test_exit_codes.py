"""Commands as automation runs them: whatever happens ends in a sentence and a code."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import typer
from clusters import QUICK_JVM
from commands import answer
from commands import run as run_here
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from fanplan.cli import app
from fanplan.cli.failed import as_our_error
from fanplan.cli.main import heard_again
from fanplan.core.errors import InputError, MachineError, Problem
from fanplan.core.failures import explained
from fanplan.core.owned import sweep
from fanplan.core.stop import Heard, Terminated, ended_by_term, interrupt

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
SECONDS = 180
QUICK = f"spark.driver.memory=1g 'spark.driver.extraJavaOptions={QUICK_JVM}'"


def fanplan(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    command = [sys.executable, "-m", "fanplan", *map(str, words)]
    kept: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.run(command, timeout=SECONDS, check=False, **kept | options)


def sentence(text: str) -> str:
    """The one line on stderr."""
    lines = text.splitlines()
    assert len(lines) == 1, text
    assert lines[0].startswith("fanplan: ")
    return lines[0]


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    folder = tmp_path / "workload"
    folder.mkdir()
    (folder / "subscriptions.csv").write_text("subscriber,topic\na,t\nb,t\n")
    (folder / "publications.csv").write_text("topic\n" + "t\n" * 20)
    return folder


# ---- usage and paths


def test_wrong_usage_is_a_sentence_and_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    done = fanplan("channels", "--nonsense", "--json")
    assert done.returncode == 2
    assert "No such option: --nonsense" in sentence(done.stderr)
    told = json.loads(done.stdout)["error"]
    assert (told["code"], [set(each) for each in told["problems"]]) == (
        2,
        [{"where", "what", "remedy"}],
    )
    for words in (("chanels",), ("channels",), ("check", "a"), ("simulate", "--seed", "x")):
        code, told = answer(capsys, *words)
        assert (code, told["error"]["code"]) == (2, 2)


def test_bad_input_is_an_object_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = answer(capsys, "check", tmp_path, tmp_path)
    assert code == told["error"]["code"] == 2
    assert "not a plan" in told["error"]["problems"][0]["what"]


@pytest.mark.parametrize("out", ["file/new", "x" * 300, "/proc/new", "loop/new"])
def test_a_place_that_cannot_be_is_named(
    out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    assert run_here("generate", "market", "--out", tmp_path / out) == 2
    assert out in sentence(capsys.readouterr().err)


def test_a_name_that_is_no_text_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here("ingest", "work\udcff", "--out", "x") == 2
    assert "is not UTF-8" in sentence(capsys.readouterr().err)


# ---- streams


def test_a_reader_who_goes_away_changes_nothing() -> None:
    out, reader = os.pipe()[::-1]
    os.close(reader)
    done = fanplan("--help", stdout=out)
    os.close(out)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_behind_stdout_is_told() -> None:
    with open("/dev/full", "w") as full:
        done = fanplan("--version", stdout=full)
    assert done.returncode == 3
    assert "stdout: cannot be written (No space left on device)" in sentence(done.stderr)


def test_closed_streams_are_no_reason_to_fail() -> None:
    command = f"{sys.executable} -m fanplan --version <&- >&- 2>&-"
    assert subprocess.run(command, shell=True, check=False, timeout=SECONDS).returncode == 0


# ---- the machine


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts disks of a given size."""
    mounted: list[Path] = []

    def mount(options: str) -> Path:
        folder = tmp_path / f"disk-{len(mounted)}"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("this machine lets nobody mount a disk")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@root
def test_a_full_disk_is_a_sentence(
    small_disk: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for size, said in (("64k", "are free there"), ("2m", "No space left on device")):
        disk = small_disk(f"size={size}")
        words = ("--flows", 20_000, "--users", 2000, "--format", "csv", "--out", disk / "market")
        assert run_here("generate", "market", *words) == 3
        assert said in sentence(capsys.readouterr().err)
        assert list(disk.iterdir()) == []


@root
def test_a_disk_that_may_only_be_read_is_named(
    small_disk: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    out = small_disk("size=1m,ro") / "market"
    assert run_here("generate", "market", "--out", out) == 2
    assert "Read-only file system" in sentence(capsys.readouterr().err)


@root
def test_a_disk_that_fills_in_a_task_of_spark_is_a_sentence(
    spark: SparkSession,
    workload: Path,
    small_disk: Callable[[str], Path],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Names that cannot be packed take more room than was asked for; fewer the driver writes."""
    rows = "".join(f"{os.urandom(20).hex()},t\n" for _ in range(60_000))
    (workload / "subscriptions.csv").write_text("subscriber,topic\n" + rows)
    out = small_disk("size=1200k") / "dataset"
    assert run_here("ingest", workload, "--out", out, "--master", "local[2]") == 3
    text = capfd.readouterr().err
    assert "fanplan: Spark: a job failed (No space left on device). Free some room" in text
    assert "Traceback" not in text


def test_a_defect_is_a_sentence_with_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(app, "require_text", lambda words: os.environ["GONE"])
    code, told = answer(capsys, "check", "a", "b")
    assert (code, told["error"]["problems"][0]["what"]) == (3, "KeyError: 'GONE'")
    (file,) = tmp_path.iterdir()
    assert str(file) in told["error"]["problems"][0]["remedy"]
    assert file.read_text().startswith("Traceback")
    monkeypatch.setenv("FANPLAN_TRACEBACK", "1")
    assert run_here("check", "a", "b") == 3
    assert "Traceback" in capsys.readouterr().err


def test_what_python_and_the_kernel_raise_is_told_apart() -> None:
    for code in (errno.ENOSPC, errno.EMFILE, errno.EIO, errno.EADDRINUSE):
        assert isinstance(explained(OSError(code, "x", "file")), MachineError)
    for code in (errno.ENOTDIR, errno.ENAMETOOLONG, errno.EROFS, errno.ELOOP):
        assert isinstance(explained(OSError(code, "x", "file")), InputError)
    assert isinstance(explained(MemoryError()), MachineError)
    with pytest.raises(ValueError, match=r"too big|dimension") as found:
        np.empty(1 << 62)
    assert isinstance(explained(found.value), MachineError)
    assert explained(KeyError("x")) is None
    assert isinstance(explained(Py4JNetworkError("Error while sending or receiving")), MachineError)


def test_a_signal_that_got_lost_in_a_finaliser_is_still_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = Py4JNetworkError("Answer from Java side is empty")
    assert as_our_error(broken).exit_code == 3
    for number in (signal.SIGINT, signal.SIGTERM):
        monkeypatch.setattr(Heard, "signal", number)
        assert as_our_error(broken).exit_code == 128 + number


@pytest.mark.parametrize("raised", [KeyboardInterrupt, Terminated])
def test_a_signal_that_python_drops_is_heard_again(
    raised: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(_: object) -> None:
        raise raised

    def watched() -> None:
        passing = {0}
        watching = weakref.ref(passing, ended)
        del passing
        assert watching() is None
        threading.Event().wait(SECONDS)

    monkeypatch.setattr(sys, "unraisablehook", heard_again)
    with ended_by_term(), pytest.raises(raised):
        watched()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "later",
    [
        AttributeError("partially initialized module 'pandas' has no attribute 'core'"),
        MachineError(Problem("a file", "cannot be read", "Try again")),
        SystemExit(1),
        typer.BadParameter("what is this"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_goes_wrong_after_a_signal_comes_from_it(
    number: int,
    later: BaseException,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """As when pyarrow imports pandas: it drops what ends the import, and meets half of pandas."""

    def lost(_words: object) -> None:
        with suppress(KeyboardInterrupt, Terminated):
            signal.raise_signal(number)
        raise later

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(app, "require_text", lost)
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        code, told = answer(capsys, "check", "a", "b")
        assert (code, told["error"]["problems"][0]["where"]) == (128 + number, "stopped")
        assert list(tmp_path.iterdir()) == []
        monkeypatch.setattr(app, "require_text", lambda words: os.environ["GONE"])
        assert run_here("check", "a", "b") == 3, "another command was not stopped"
    finally:
        signal.signal(signal.SIGINT, before)


# ---- stopped, at any moment


class Stopped:
    """A command under way, all its processes known by a mark, its temporary files in a folder."""

    def __init__(self, folder: Path, *words: object) -> None:
        self.mark, self.temporary = uuid.uuid4().hex, folder / "temporary"
        self.temporary.mkdir()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fanplan", *map(str, words)],
            env=os.environ
            | {"FANPLAN_SPARK_CONF": QUICK, "TMPDIR": str(self.temporary), "MARK": self.mark},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def others(self) -> list[psutil.Process]:
        """The processes of the command but its first, also those that nobody is parent of."""
        found = []
        for process in psutil.process_iter():
            try:
                marked = process.environ().get("MARK") == self.mark
                if marked and process.pid != self.process.pid:
                    found += [process] if process.status() != psutil.STATUS_ZOMBIE else []
            except psutil.Error:
                continue
        return found

    def until(self, words: str) -> psutil.Process:
        """One of them, as soon as its command line has these words."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.process.communicate()
            for process in psutil.Process(self.process.pid).children(recursive=True):
                try:
                    if words in " ".join(process.cmdline()):
                        return process
                except psutil.Error:
                    continue
            time.sleep(0.05)
        raise AssertionError(f"no {words}")

    def ended(self) -> tuple[int, str]:
        """Exit code and stderr; nobody is left who could hold it."""
        _, said = self.process.communicate(timeout=SECONDS)
        _, alive = psutil.wait_procs(self.others(), timeout=SECONDS)
        assert alive == []
        return self.process.returncode, said


MOMENTS = {
    "launched": "bin/spark-class",
    "java": "org.apache.spark.deploy.SparkSubmit",
    "work": "pyspark.worker",
}


@pytest.mark.parametrize(
    ("moment", "number", "group", "code"),
    [
        ("launched", signal.SIGINT, True, 130),
        ("java", signal.SIGINT, False, 130),
        ("java", signal.SIGKILL, False, -9),
        ("work", signal.SIGTERM, False, 143),
        ("work", signal.SIGKILL, False, -9),
    ],
)
def test_nothing_is_left_behind(
    moment: str, number: signal.Signals, group: bool, code: int, workload: Path, tmp_path: Path
) -> None:
    out = tmp_path / "dataset"
    under_way = Stopped(tmp_path, "ingest", workload, "--out", out, "--master", "local[1]")
    under_way.until(MOMENTS[moment])
    (os.killpg if group else os.kill)(under_way.process.pid, number)
    found, said = under_way.ended()
    assert found == code
    if number == signal.SIGKILL:
        assert list(under_way.temporary.iterdir())
        sweep(under_way.temporary, "fanplan-")
    else:
        assert "fanplan: stopped: by " in sentence(said)
    assert list(under_way.temporary.iterdir()) == []
    assert not out.exists()


def test_a_jvm_that_is_killed_is_a_sentence(workload: Path, tmp_path: Path) -> None:
    words = ("ingest", workload, "--out", tmp_path / "dataset", "--master", "local[1]")
    under_way = Stopped(tmp_path, *words)
    under_way.until(MOMENTS["work"])
    under_way.until(MOMENTS["java"]).kill()
    code, said = under_way.ended()
    assert code == 3
    assert "Spark: a process of its ended" in sentence(said)
    assert list(under_way.temporary.iterdir()) == []
