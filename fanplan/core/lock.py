"""One run at a time may work on an output; the lock of a process that died is free."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import IO

from fanplan.core.errors import InputError, Problem


class Lock:
    """A lock on a name, by a file beside it that says who holds it.

    While another run has it, an error says so; or ``waits`` is told, and this run waits.
    """

    def __init__(self, target: Path, waits: Callable[[str], None] | None = None) -> None:
        self.target = target
        self.waits = waits
        self.path = target.with_name(f".{target.name}.lock")
        self.file = self._open()
        while not self._is_current():
            self.file.close()
            self.file = self._open()
        self.file.truncate(0)
        self.file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        self.file.flush()

    def _open(self) -> IO[str]:
        file = self.path.open("a+", encoding="utf-8")
        try:
            self._take(file)
        except BaseException:
            file.close()
            raise
        return file

    def _take(self, file: IO[str]) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            other = f"another run ({file.read().strip()})"
            if self.waits is None:
                remedy = "Wait until it has ended, or name another folder"
                what = f"{other} is writing it"
                raise InputError(Problem(str(self.target), what, remedy)) from None
            self.waits(other)
            fcntl.flock(file, fcntl.LOCK_EX)

    def _is_current(self) -> bool:
        """Whether the file locked is still the one of that name: its last owner removes it."""
        try:
            return os.path.samestat(os.fstat(self.file.fileno()), self.path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        self.path.unlink(missing_ok=True)
        self.file.close()
