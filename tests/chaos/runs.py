"""Commands as processes of their own, all that they start, and what they leave."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

MARK = "FANPLAN_CHAOS"
SECONDS = 300
"""Long enough for any of the commands, on a busy machine too."""
GLANCE = 0.02


@dataclass
class Run:
    """A command under way. Whatever it starts inherits a mark, by which it is found."""

    words: tuple[str, ...]
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def start(self) -> None:
        told = self.folder / f"told-{self.mark[:8]}"
        self.output, self.errors = told.with_suffix(".out"), told.with_suffix(".err")
        temporary = self.folder / "temporary"
        temporary.mkdir(exist_ok=True)
        with self.output.open("wb") as out, self.errors.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "fanplan", *self.words],
                env=os.environ | {MARK: self.mark, "TMPDIR": str(temporary)} | self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def ended(self, seconds: float = SECONDS) -> int | None:
        """The exit code, or None if it goes on."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kin(self) -> Iterator[tuple[int, str]]:
        return marked(self.mark)

    def find(self, part: str) -> int | None:
        """The number of a process: the command itself, its JVM or a Python worker of Spark."""
        if part == "driver":
            return self.process.pid
        sign = {"jvm": "java ", "worker": "pyspark.worker"}[part]
        return next((pid for pid, words in self.kin() if sign in words), None)

    def await_command(self) -> None:
        """Until the command hears signals; before that Python answers in ways of its own."""
        status, term = Path(f"/proc/{self.process.pid}/status"), 1 << (signal.SIGTERM - 1)
        while self.process.poll() is None:
            # It may end while it is looked at.
            with suppress(OSError, StopIteration):
                lines = status.read_text().splitlines()
                caught = next(line for line in lines if line.startswith("SigCgt:"))
                if int(caught.split()[1], 16) & term:
                    return
            time.sleep(GLANCE)

    def await_part(self, part: str) -> int | None:
        """As `find`, but waits for it until the command ends."""
        while (pid := self.find(part)) is None and self.process.poll() is None:
            time.sleep(GLANCE)
        return pid

    def await_alone(self, seconds: float = 60) -> list[str]:
        """What is still running some time after the command has ended."""
        deadline = time.monotonic() + seconds
        while (left := [words for _, words in self.kin()]) and time.monotonic() < deadline:
            time.sleep(GLANCE)
        return left

    def end(self) -> None:
        """End whatever is left of it."""
        for pid, _ in [*self.kin()]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def marked(mark: str) -> Iterator[tuple[int, str]]:
    """Processes with a mark: their numbers and commands."""
    sign = f"{MARK}={mark}".encode()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            # It may end while it is looked at.
            with suppress(OSError):
                if sign in (folder / "environ").read_bytes().split(b"\0"):
                    words = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                    if words:
                        yield int(folder.name), words.decode("utf-8", "replace")


def finish(run: Run) -> tuple[int | None, str]:
    """Run a command to its end: its exit code and what it said on stderr."""
    run.start()
    try:
        code = run.ended()
        return code, run.errors.read_text("utf-8", "replace")
    finally:
        run.end()


def digest(folder: Path) -> str | None:
    """What a folder means, None without one. Spark names and cuts the files of a stage anew."""
    if not folder.exists():
        return None
    told = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder)
        if (path.parent / "_stage.json").exists() or name.name == "manifest.json":
            continue
        told.update(f"{name}\n".encode() + hashlib.sha256(path.read_bytes()).digest())
    for stage in sorted(folder.rglob("_stage.json")):
        rows = pq.read_table(stage.parent).to_pylist()
        told.update(f"{stage.relative_to(folder)}\n".encode())
        told.update("\n".join(sorted(map(repr, rows))).encode())
    return told.hexdigest()
