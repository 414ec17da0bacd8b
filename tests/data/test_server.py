"""A Spark that stays between commands: found while it lives, used if it is of this code, ended."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clusters import QUICK_JVM, free_port

from fanplan.cli.prepare import DESCRIPTION, TABLES
from fanplan.core.errors import InputError
from fanplan.core.processes import started_at
from fanplan.core.stop import Terminated
from fanplan.data import server, serving
from fanplan.data import spark as sparks
from fanplan.data.frames import store_tables
from fanplan.data.ingest.code import code_key
from fanplan.data.server import SparkProcess


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is there, and does nothing."""
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        yield process
        process.kill()


def told(process: subprocess.Popen[bytes], code: str | None = None) -> SparkProcess:
    """A server that is told of, with that process."""
    server.folder().mkdir(parents=True)
    found = SparkProcess(
        process.pid, started_at(process.pid), free_port(), "secret", code or code_key()
    )
    found.write()
    return found


def test_only_its_user_can_read_of_it(process: subprocess.Popen[bytes]) -> None:
    found = told(process)
    path = server.folder() / "server.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert server.known() == found


def test_a_server_whose_process_is_gone_is_forgotten(process: subprocess.Popen[bytes]) -> None:
    told(process)
    process.kill()
    process.wait()
    assert server.known() is None
    assert not server.folder().exists()


def test_a_process_that_took_its_number_is_not_it(process: subprocess.Popen[bytes]) -> None:
    found = told(process)
    SparkProcess(found.pid, "another time", found.port, found.token, found.code).write()
    assert server.stop() is None
    assert process.poll() is None


def test_a_server_of_other_sources_or_that_does_not_answer_is_not_used(
    process: subprocess.Popen[bytes],
) -> None:
    assert told(process).current
    assert server.address() is None
    told_again = SparkProcess(**{**vars(server.known() or told(process)), "code": "older"})
    told_again.write()
    assert server.known() == told_again
    assert not told_again.current
    assert server.address() is None


def test_a_second_one_is_not_started(process: subprocess.Popen[bytes]) -> None:
    told(process)
    with pytest.raises(InputError, match="fanplan spark stop"):
        serving.start()


@pytest.mark.parametrize("how", [KeyboardInterrupt, Terminated])
def test_who_does_not_wait_for_the_start_leaves_no_server(
    monkeypatch: pytest.MonkeyPatch, how: type[BaseException]
) -> None:
    """Ctrl-C while the server starts: its process is known from the first moment, and ended."""
    seen: list[int] = []

    def slow(*_: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["sleep", "600"], start_new_session=True)

    def waiting(_: float, done: Callable[[], bool]) -> bool:
        if not seen:
            seen.extend(each.pid for each in [server.known()] if each)
            raise how
        return done() or not started_at(seen[0]) or bool(os.waitpid(seen[0], 0))

    monkeypatch.setattr(serving, "launched", slow)
    monkeypatch.setattr(serving, "within", waiting)
    monkeypatch.setattr(server, "within", waiting)
    with pytest.raises(how):
        serving.start()
    assert not started_at(seen[0])
    assert not server.folder().exists()


def test_a_file_that_is_none_counts_for_nothing() -> None:
    server.folder().mkdir(parents=True)
    for text in ("", "[]", json.dumps({"pid": 1})):
        (server.folder() / "server.json").write_text(text)
        assert server.known() is None


def fanplan(*words: str | Path) -> str:
    """What a command prints, in a process of its own, in which no JVM could start but a server."""
    conf = f"spark.driver.memory=1g 'spark.driver.extraJavaOptions={QUICK_JVM}'"
    done = subprocess.run(
        [sys.executable, "-m", "fanplan", *words],
        env=os.environ | {sparks.EXTRA: conf if words[0] == "spark" else "spark.driver.memory=1k"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_commands_use_the_spark_that_stays(tmp_path: Path) -> None:
    store_tables(TABLES, tmp_path / "workload", DESCRIPTION)
    fanplan("spark", "start")
    try:
        status = json.loads(fanplan("spark", "status", "--json"))
        assert (status["running"], status["used"]) == (True, True)
        words = Path(f"/proc/{status['process']}/cmdline").read_text()
        found = server.known()
        assert found is not None
        assert found.token not in words
        made = json.loads(
            fanplan("ingest", tmp_path / "workload", "--out", tmp_path / "dataset", "--json")
        )
        assert made["tables"]["publications"]["kept"] == 2
    finally:
        fanplan("spark", "stop")
    assert not started_at(status["process"])
    assert not server.folder().exists()
    assert json.loads(fanplan("spark", "status", "--json"))["running"] is False
