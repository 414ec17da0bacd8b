"""What a trial is on this machine: a folder, processes, an end; and what a killed one left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "fanplan-trial-"
OWNER = "owner.json"
TERMINATED = 128 + signal.SIGTERM
"""The exit code of what was asked to end."""


def process_state(pid: int) -> list[str]:
    """What the kernel says of a process, from its state on; nothing if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return []
    found = text.rpartition(")")[2].split()
    return [] if found[0] == "Z" else found


def started_at(pid: int) -> str:
    """When a process started, in the kernel's ticks; nothing if there is none."""
    return "".join(process_state(pid)[19:20])


@contextmanager
def trial_folder() -> Iterator[Path]:
    """A folder for one trial, removed at its end; those of trials that were killed go first."""
    sweep()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        write_owner(folder, {os.getpid(): started_at(os.getpid())}, {})
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_owner(folder: Path, owner: dict[int, str], servers: dict[int, str]) -> None:
    told = {"owner": owner, "servers": servers}
    (folder / OWNER).write_text(json.dumps(told), encoding="utf-8")


def sweep() -> None:
    """End the servers and remove the folders of trials whose own process is gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            told = json.loads((folder / OWNER).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            # Just made, or not ours to read.
            continue
        if any(started_at(int(pid)) == start for pid, start in told["owner"].items()):
            continue
        for pid, start in told["servers"].items():
            if start and started_at(int(pid)) == start:
                with suppress(OSError):
                    os.kill(int(pid), signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def ended_by_term() -> Iterator[None]:
    """A request to end is an error like Ctrl-C, so that servers are ended, too."""

    def end(*_: object) -> None:
        raise SystemExit(TERMINATED)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
