"""Whatever a command is pointed at: a sentence, an object with --json, and nothing left behind."""

from __future__ import annotations

import json
import os
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import run
from mesh_worlds import WANTED, write_mesh_dataset

import fanplan

HUGE = "9" * 30


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset and a plan of it, and what a careless or ill-meaning person puts beside them."""
    monkeypatch.chdir(tmp_path)
    fanplan.mesh(write_mesh_dataset(tmp_path / "dataset", WANTED, "key-1")).save(tmp_path / "plan")
    os.mkfifo("pipe")
    os.symlink("loop", "loop")
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], place: Path, *words: str) -> str:
    """What a command says of its words; it neither waits for ever nor leaves anything."""
    before = sorted(place.iterdir())
    assert run(*words, "--json") == 2
    told = capsys.readouterr()
    assert "unexpected" not in told.err
    assert json.loads(told.out)["error"]["code"] == 2
    assert sorted(place.iterdir()) == before
    return told.err


@pytest.mark.parametrize(
    "words",
    [
        ("observe", "graphml", "{}", "--out", "out"),
        ("observe", "pcap", "{}", "--out", "out"),
        ("mesh", "{}", "--out", "out"),
        ("channels", "dataset", "--channels", "2", "--max-switch-entries", "{}", "--out", "out"),
        ("sign", "plan", "--key", "{}"),
        ("check", "plan", "dataset", "--key", "{}"),
        ("watch", "{}", "--stream", "dataset", "--state", "out"),
        ("watch", "plan", "--stream", "{}", "--state", "out"),
        ("watch", "plan", "--stream", "dataset", "--state", "out"),
        ("switch", "{}", "plan"),
        ("ask", "{}", "why", "x", "--workload", "dataset"),
    ],
    ids=" ".join,
)
def test_pipes_and_loops_are_named(
    place: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    for what in ("pipe", "loop"):
        refused(capsys, place, *(word.format(what) for word in words))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mesh", "dataset", "--seed", HUGE, "--out", "out"), "seed"),
        (("mesh", "dataset", "--degree", HUGE, "--out", "out"), "degree"),
        (("mesh", "dataset", "--degree", "9" * 5000, "--out", "out"), "degree"),
        (("mesh", "dataset", "--time", "nan", "--out", "out"), "time"),
        (("generate", "cloud", "--hosts", HUGE, "--out", "out"), "hosts"),
        (("generate", "options", "--rate", "inf", "--out", "out"), "rate"),
        (("watch", "plan", "--stream", "dataset", "--state", "out", "--gap", "nan"), "gap"),
    ],
    ids=lambda words: " ".join(words)[:60],
)
def test_numbers_that_nothing_could_hold_are_named(
    place: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert said in refused(capsys, place, *words)


@contextmanager
def answering(words: bytes) -> Iterator[str]:
    """A server that says the same to everybody."""

    class Answer(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1000)
            self.request.sendall(words)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize(
    "words",
    [
        # What the port of NATS for clients says.
        b'INFO {"server_id":"x"}\r\n',
        b"HTTP/1.0 200 OK\r\n\r\n<html>",
        b"HTTP/1.0 200 OK\r\n\r\n[1, 2]",
        b"HTTP/1.0 200 OK\r\n\r\n" + b"[" * 100_000,
        b'HTTP/1.0 200 OK\r\n\r\n{"server_id": null, "routes": "x"}',
        b'HTTP/1.0 200 OK\r\n\r\n{"server_id": 5, "connections": [{"cid": []}], "total": "x"}',
    ],
)
def test_a_monitor_that_is_none_is_named(
    place: Path, capsys: pytest.CaptureFixture[str], words: bytes
) -> None:
    with answering(words) as url:
        assert url in refused(capsys, place, "observe", "nats", "--monitor", url, "--out", "out")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://[::x", "http://127.0.0.1:99999"])
def test_an_address_that_is_none_is_named(
    place: Path, capsys: pytest.CaptureFixture[str], url: str
) -> None:
    refused(capsys, place, "observe", "nats", "--monitor", url, "--out", "out")
