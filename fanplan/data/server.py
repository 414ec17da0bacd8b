"""A Spark that stays between commands: where it is, whether it is still there, and its end.

It is a Spark Connect server on loopback. Its address and token lie in a file that its user alone
can read. A file whose process is gone, or whose server has other sources of Fanplan imported than
this process, counts for nothing.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from fanplan.core.errors import MachineError, Problem
from fanplan.core.folder import remove
from fanplan.core.processes import started_at
from fanplan.data.ingest.code import code_key

END_SECONDS = 30
REACH_SECONDS = 2
GLANCE = 0.05


@dataclass(frozen=True)
class SparkProcess:
    """A server: its process and when that began, its port and token, and the code it runs."""

    pid: int
    born: str
    port: int
    token: str
    code: str

    @property
    def address(self) -> str:
        """What Spark's client takes. It sends a token unencrypted to this very name alone."""
        return f"sc://localhost:{self.port}/;token={self.token}"

    @property
    def alive(self) -> bool:
        """Whether its process is there; a number may have gone to another one."""
        return bool(self.born) and started_at(self.pid) == self.born

    @property
    def current(self) -> bool:
        return self.code == code_key()

    @property
    def answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), REACH_SECONDS):
            return True
        return False

    def write(self) -> None:
        """Tell later commands, in a file for the user alone from its first moment."""
        path = folder() / "server.json"
        with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            json.dump(asdict(self), file)


def folder() -> Path:
    """The folder of this user's server: what it is, its settings, its log and its shuffles."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "fanplan" / "spark"


def known() -> SparkProcess | None:
    """The server that was started last and whose process is there; leftovers of others go."""
    try:
        found = SparkProcess(**json.loads((folder() / "server.json").read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    if found.alive:
        return found
    remove(folder())
    return None


def address() -> str | None:
    """Where a command finds its Spark, if one was started and is of use to it."""
    found = known()
    return found.address if found and found.current and found.answers else None


def stop() -> SparkProcess | None:
    """End the server, if there is one, and remove its files."""
    found = known()
    if found is None:
        return None
    with suppress(ProcessLookupError):
        os.kill(found.pid, signal.SIGTERM)
        if not within(END_SECONDS, lambda: not found.alive):
            os.killpg(found.pid, signal.SIGKILL)
            within(END_SECONDS, lambda: not found.alive)
    if found.alive:
        raise MachineError(Problem("Spark", f"process {found.pid} does not end", "End it yourself"))
    remove(folder())
    return found


def within(seconds: float, done: Callable[[], bool]) -> bool:
    """Whether something comes to be in that time."""
    last = time.monotonic() + seconds
    while not done():
        if time.monotonic() > last:
            return False
        time.sleep(GLANCE)
    return True
