"""Folders and files that appear whole or not at all; nothing else in the package replaces one.

A run claims the name of its output before the work: a lock keeps other runs away, what dead runs
left behind is swept, and what has the name is remembered. All is written under a name aside, is
made safe on the disk, and takes its name in one step in which both change places. What got there
in the meantime is never removed: the work is then kept beside it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from fanplan.core.errors import FanplanError, InputError, MachineError, Problem
from fanplan.core.failures import FULL, of_system
from fanplan.core.lock import Lock


@dataclass(frozen=True)
class Kind:
    """What a folder holds, and the file by which such a folder is known."""

    name: str
    sign: str


WORKLOAD = Kind("a workload", "workload.toml")
DATASET = Kind("a dataset", "manifest.json")
PLAN = Kind("a plan", "plan.json")
CURVE = Kind("a curve", "curve.json")
CHANGES = Kind("a list of changes", "changes.json")
SIMULATION = Kind("a simulation", "summary.json")
REPORT = Kind("a report", "report.json")
EXPORT = Kind("an export", "export.json")
TRIAL = Kind("a trial", "trial.json")

State = tuple[tuple[str, int, int], ...]
"""What has a name: it and what lies in it, each with its number on the disk and its last change."""

CLAIMS: ContextVar[dict[Path, State]] = ContextVar("claims")
"""Names that this run has claimed, and what had them."""


@contextmanager
def claimed(folder: Path | None, kind: Kind, replace: bool = False) -> Iterator[None]:
    """Keep a name for the output of this run, from before its work; without a name do nothing.

    A claim within a claim of the same name is that one.
    """
    name = None if folder is None else folder.absolute()
    mine = CLAIMS.get({})
    if name is None or name in mine:
        yield
        return
    with locked(name):
        recover(name)
        require_free(name, kind, replace)
        token = CLAIMS.set({**mine, name: state_of(name)})
        try:
            yield
        finally:
            CLAIMS.reset(token)


@contextmanager
def locked(path: Path, waits: Callable[[str], None] | None = None) -> Iterator[None]:
    """No other run may write what has this name; the folders above are made if need be.

    If another one does, it is an error, or ``waits`` is told and this run waits.
    """
    with ExitStack() as stack:
        try:
            for above in reversed(path.parents):
                if not os.path.lexists(above):
                    above.mkdir(exist_ok=True)
                    stack.callback(_remove_empty, above)
            lock = Lock(path, waits)
        except OSError as error:
            raise unwritable(path, error) from error
        stack.callback(lock.release)
        yield


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


@contextmanager
def whole_folder(folder: Path, kind: Kind, replace: bool = False) -> Iterator[Path]:
    """A folder to write in that takes the name ``folder`` at the end, if nothing was raised."""
    with claimed(folder, kind, replace), aside(folder) as written:
        written.mkdir(parents=True)
        yield written


def write_whole(path: Path, text: str) -> None:
    """A file of this text, in place of the one there."""
    with aside(path) as written:
        written.write_text(text, encoding="utf-8")


@contextmanager
def aside(path: Path) -> Iterator[Path]:
    """A name for a file or folder that becomes ``path`` at the end, if nothing was raised.

    No name is used twice: what a killed run has started may still write under its own.
    """
    path = path.absolute()
    before = state_before(path)
    written = path.with_name(f"{path.name}.partial-{uuid.uuid4().hex[:8]}")
    try:
        yield written
        put(written, path, before)
    except OSError as error:
        if error.errno not in REFUSED:
            raise
        raise unwritable(path, error) from error
    finally:
        # Whoever was stopped may still be writing there; why it was stopped is what counts.
        with suppress(OSError):
            remove(written)


# ---- replacing


def put(new: Path, path: Path, before: State) -> None:
    """Give a file or folder its name, in place of what had it when it was in the state ``before``.

    What has come there since is left alone, and the new one is kept under another name.
    """
    flush(new)
    old = _place_folder(new, path, before) if new.is_dir() else _place_file(new, path)
    sync(path.parent)
    if path in (claims := CLAIMS.get({})):
        claims[path] = state_of(path)
    with suppress(OSError):  # What is left of it the next run sweeps.
        remove(old)


def _place_file(new: Path, path: Path) -> Path:
    new.replace(path)
    return new


def _place_folder(new: Path, path: Path, before: State) -> Path:
    """Put a folder in its place; returns where what it replaces is now."""
    now = state_of(path)
    if now not in ((), before):
        raise name_changed(new, path)
    if rename_by(EXCHANGE if now else NO_REPLACE, new, path):
        if now and state_of(new) != before:
            # It was changed after the look above: it gets its name back.
            rename_by(EXCHANGE, new, path)
            raise name_changed(new, path)
        return new
    # Two steps, where the system cannot do it in one: `recover` knows what to do in between.
    if now:
        path.rename(_replaced(path))
    new.rename(path)
    return _replaced(path)


def name_changed(new: Path, path: Path) -> InputError:
    """The error about a name that was taken or changed; the work is kept."""
    kept = path.with_name(f"{path.name}.kept-{uuid.uuid4().hex[:8]}")
    new.rename(kept)
    what = f"has changed while this run was working, so it was left alone; the result is in {kept}"
    return InputError(Problem(str(path), what, "Look at both, and rename the one that you want"))


def recover(path: Path) -> None:
    """After runs that were killed: give back a name, and sweep what they wrote.

    Only who has locked the name may do it.
    """
    old = _replaced(path)
    if os.path.lexists(old) and not os.path.lexists(path):
        old.rename(path)
    own = re.compile(re.escape(path.name) + r"\.partial-[0-9a-f]{8}")
    left = [each for each in path.parent.iterdir() if own.fullmatch(each.name)]
    for each in (old, *left):
        with suppress(OSError):
            remove(each)


def state_before(path: Path) -> State:
    """The state of what has this name: when it was claimed, or now."""
    claim = CLAIMS.get({}).get(path)
    return state_of(path) if claim is None else claim


def state_of(path: Path) -> State:
    """The state of what has this name; empty if nothing has."""
    try:
        inside = sorted(path.iterdir()) if path.is_dir() and not path.is_symlink() else []
        stats = [("", path.lstat()), *((each.name, each.lstat()) for each in inside)]
    except FileNotFoundError:
        return ()
    return tuple((name, about.st_ino, about.st_mtime_ns) for name, about in stats)


NO_REPLACE, EXCHANGE = 1, 2
"""Flags of renameat2(2): not if the new name is taken; both change places."""
HERE = -100
"""Where renameat2 starts from with a path that is not absolute: the working folder."""
UNKNOWN = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)
"""What systems and disks answer that do not know the flags."""


def rename_by(flag: int, old: Path, new: Path) -> bool:
    """Rename in one step as the flag says; False if that is not possible here."""
    rename = _renameat2()
    if rename is None:
        return False
    if rename(HERE, os.fsencode(old), HERE, os.fsencode(new), flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in UNKNOWN:
        return False
    if number == errno.EEXIST:
        raise name_changed(old, new)
    raise OSError(number, os.strerror(number), str(new))


def _renameat2() -> Callable[..., int] | None:
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def flush(path: Path) -> None:
    """What was written is on the disk, with the folders that name it."""
    inside = [*path.rglob("*")] if path.is_dir() else []
    with ThreadPoolExecutor(FLUSHES) as pool:
        # A disk takes many at once in hardly more time than one.
        for _ in pool.map(sync, (*inside, path)):
            pass


FLUSHES = 16


def sync(path: Path) -> None:
    """The content of a file, or the names in a folder, are on the disk."""
    if path.is_symlink():
        return
    place = os.open(path, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)


def remove(path: Path) -> None:
    """Remove a file or folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _replaced(path: Path) -> Path:
    return path.with_name(f".{path.name}.replaced")


# ---- what is asked before the work


REFUSED = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG)
"""What a disk says when it does not take what is written."""

LITTLE = 1 << 20
"""Bytes that any folder takes."""


def require_free(folder: Path, kind: Kind, replace: bool) -> None:
    """Only a folder of the same kind may be replaced, and only when asked; never other files."""
    require_room(folder, LITTLE)
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / kind.sign).is_file():
        what = f"already exists and is not {kind.name}"
        raise InputError(Problem(str(folder), what, "Name another folder"))
    if not replace:
        what = f"is {kind.name} already"
        remedy = "Name another folder, or add --replace (in Python: replace=True)"
        raise InputError(Problem(str(folder), what, remedy))


def require_room(folder: Path, size: int) -> None:
    """The disk of a folder has this many bytes free."""
    free = shutil.disk_usage(place_of(folder)).free
    if free < size:
        what = f"{in_bytes(free)} are free there, but about {in_bytes(size)} are needed"
        raise MachineError(Problem(str(folder), what, FULL))


def place_of(folder: Path) -> Path:
    """The nearest folder above that is there already."""
    return next(above for above in folder.absolute().parents if os.path.lexists(above))


def unwritable(folder: Path, error: OSError) -> FanplanError:
    return of_system(str(folder), error, "cannot be written")


def in_bytes(size: float) -> str:
    """A number of bytes as a person writes it."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
