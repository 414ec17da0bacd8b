"""What must not outlive this process: the processes that it starts and its temporary folders.

A child is ended by the kernel if this process is killed; until then whoever started it ends it. A
folder holds a locked file, and the lock goes with the process: what another run left behind is
known by a lock that is free, and the next run removes it.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PREFIX = "fanplan-"
OWNER = ".owner"
"""The locked file of a folder that is in use."""
PR_SET_PDEATHSIG = 1
HELD: dict[Path, int] = {}
"""Folders of this process and the locks that it holds on them."""


# ---- processes


def started(
    command: Sequence[str | Path], *, of_thread: bool = True, **options: Any
) -> subprocess.Popen[bytes]:
    """A process in a session of its own, so that a terminal's Ctrl-C is left to this one.

    It ends with the thread that starts it. With ``of_thread`` false it may outlive any thread but
    the main one; started elsewhere, the kernel does not end it. Instead of a session it may have a
    ``process_group``.
    """
    bound = of_thread or threading.current_thread() is threading.main_thread()
    if bound and sys.platform == "linux":
        options["preexec_fn"] = ending_with(os.getpid())
    session = "process_group" not in options
    with undisturbed():
        return subprocess.Popen(command, start_new_session=session, **options)


def ending_with(parent: int) -> Callable[[], None]:
    """In a child, before its program: end it when its parent ends."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def bind() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return bind


def outlive_parent() -> None:
    """In a child that has another reason to end: that its parent ends is none any more."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0)


def killed(process: subprocess.Popen[bytes]) -> None:
    """End a process at once, and those of its session's own group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C and requests to end wait for the end of the block: what it makes is not lost."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    # Whoever was to be told is told now.
    for first in came[:1]:
        signal.raise_signal(first)


# ---- folders


@contextmanager
def scratch(purpose: str) -> Iterator[Path]:
    """A private temporary folder for the length of a ``with`` block."""
    folder = claim(purpose)
    try:
        yield folder
    finally:
        release(folder)


def claim(purpose: str) -> Path:
    """A private temporary folder of this process, until it is released; dead ones go first."""
    place = Path(tempfile.gettempdir())
    sweep(place, PREFIX)
    return claim_in(place, f"{PREFIX}{purpose}-")


def claim_in(place: Path, prefix: str) -> Path:
    """The same at some place."""
    with undisturbed():
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        # Locked before it has its name: a file of that name that is not locked is nobody's.
        lock = os.open(folder / f"{OWNER}-new", os.O_CREAT | os.O_RDWR, 0o600)
        with suppress(OSError):  # Where there are no locks nobody takes it for abandoned.
            fcntl.flock(lock, fcntl.LOCK_EX)
        os.link(folder / f"{OWNER}-new", folder / OWNER)
        HELD[folder] = lock
    return folder


def release(folder: Path) -> None:
    """Remove a folder that was claimed."""
    lock = HELD.pop(folder, None)
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        os.close(lock)


def sweep(place: Path, prefix: str) -> None:
    """Remove the folders of this user at some place whose processes are gone."""
    with suppress(OSError):
        for entry in os.scandir(place):
            if entry.name.startswith(prefix) and abandoned(entry):
                shutil.rmtree(entry.path, ignore_errors=True)


def abandoned(entry: os.DirEntry[str]) -> bool:
    """Whether nobody holds a folder of ours."""
    try:
        if not entry.is_dir(follow_symlinks=False) or entry.stat().st_uid != os.geteuid():
            return False
        lock = os.open(os.path.join(entry.path, OWNER), os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
