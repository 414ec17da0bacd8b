"""Sessions in processes of their own: they come and go, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
from clusters import QUICK_JVM

from fanplan.data import spark as sparks

QUICK = f"spark.driver.memory=1g 'spark.driver.extraJavaOptions={QUICK_JVM}'"

LIFE = """
import os
from fanplan.data import spark as sparks

first = sparks.session("local[1]")
assert sparks.session("local[1]") is first
second = sparks.session("local[2]")
assert second.range(10).count() == 10
assert second.conf.get("spark.driver.memory") == "1g"
second.range(10).write.parquet(os.environ["OUT"])
sparks.stop()
print("done")
"""

ENDLESS = """
import time
from fanplan.data import spark as sparks

def wait(batches):
    for batch in batches:
        open("started", "w").close()
        time.sleep(600)
        yield batch

try:
    with sparks.running("local[1]") as spark:
        spark.range(1).mapInArrow(wait, "id long").count()
except KeyboardInterrupt:
    print("interrupted")
"""

FULL = """
import shutil
from fanplan.core.errors import MachineError
from fanplan.data import spark as sparks

shutil.disk_usage = lambda _: shutil._ntuple_diskusage(1, 1, 1 << 17)
try:
    sparks.session("local[1]")
except MachineError as error:
    print(error)
"""


def start(code: str, folder: Path, out: Path) -> subprocess.Popen[str]:
    """Run code in an interpreter of its own, with temporary files in ``out``."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | {sparks.EXTRA: QUICK, "TMPDIR": str(out), "OUT": str(out / "table")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def folders(tmp_path: Path) -> tuple[Path, Path]:
    # A blank in the name: Spark splits options at blanks.
    made = tmp_path / "current", tmp_path / "temporary files"
    for folder in made:
        folder.mkdir()
    return made


def test_sessions_come_and_go_and_leave_nothing_behind(tmp_path: Path) -> None:
    current, temporary = folders(tmp_path)
    process = start(LIFE, current, temporary)
    assert process.communicate(timeout=180) == ("done\n", "")
    assert list(current.iterdir()) == []
    assert [file.name for file in temporary.iterdir()] == ["table"]


def test_an_interrupt_ends_the_job_and_the_jvm(tmp_path: Path) -> None:
    current, temporary = folders(tmp_path)
    process = start(ENDLESS, current, temporary)
    await_file(current / "started", process)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == ("interrupted\n", "")
    _, alive = psutil.wait_procs(children, timeout=30)
    assert (len(children) > 1, alive) == (True, [])
    assert list(temporary.iterdir()) == []


def await_file(file: Path, process: subprocess.Popen[str], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not file.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_temporary_files_without_room_are_told_before_a_library_of_the_jvm_fails(
    tmp_path: Path,
) -> None:
    current, temporary = folders(tmp_path)
    out, err = start(FULL, current, temporary).communicate(timeout=180)
    assert "131 KB are free there, but about 16.8 MB are needed" in out, err
    assert "(TMPDIR for temporary files)" in out
    assert (err, list(temporary.iterdir())) == ("", [])
