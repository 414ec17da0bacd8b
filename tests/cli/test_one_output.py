"""Two runs into one folder: the second ends at once, before its work, and names the first."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from commands import run
from report_worlds import ReportWorld, write_report_world

from fanplan.core.folder import locked
from fanplan.data.engine import Engine

COMMANDS = {
    "channels": ("channels", "{dataset}", "--channels", "3"),
    "curve": ("channels", "{dataset}", "--channels", "2,3"),
    "overlay": ("overlay", "{dataset}"),
    "allocate": ("allocate", "{dataset}"),
    "groups": ("groups", "{dataset}"),
    "mark": ("mark", "{dataset}", "--trees", "per-source"),
    "mesh": ("mesh", "{dataset}"),
    "design": ("design", "{dataset}", "--channels", "3"),
    "simulate": ("simulate", "{overlay}", "{dataset}"),
    "report": ("report", "{plan}", "--workload", "{dataset}"),
    "export": ("export", "{plan}", "{dataset}", "--to", "multicast"),
    "trial": ("trial", "{plan}", "{dataset}", "--on", "multicast"),
    "diff": ("diff", "{plan}", "{plan}", "{dataset}"),
    "ingest": ("ingest", "{workload}"),
    "generate": ("generate", "market"),
    "papers": ("papers", "matchmaker", "--quick"),
    "demo": ("demo",),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> ReportWorld:
    return write_report_world(tmp_path_factory.mktemp("one"))


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Another run has the name: a thread, as a claim is of one thread."""
    there, over = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(path):
            there.set()
            over.wait()

    other = threading.Thread(target=hold)
    other.start()
    try:
        assert there.wait(60)
        yield
    finally:
        over.set()
        other.join()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_second_run_into_a_folder_ends_before_its_work(
    world: ReportWorld,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    monkeypatch.setattr(Engine, "session", MagicMock(side_effect=AssertionError("it worked")))
    monkeypatch.setattr("fanplan.data.reader.verified", MagicMock(side_effect=AssertionError))
    workload = tmp_path / "workload"
    workload.mkdir()
    (workload / "subscriptions.csv").write_text("subscriber,topic\nana,news\n")
    named = {"dataset": world.dataset, "workload": workload, "plan": world.plans[0]}
    words = [w.format(**named, overlay=world.plans[1]) for w in COMMANDS[command]]
    with held(tmp_path / "out"):
        assert run(*words, "--out", tmp_path / "out") == 2
    who = f"another run (process {os.getpid()} on {socket.gethostname()}) is writing it"
    assert f"{tmp_path / 'out'}: {who}" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == ["workload"]
