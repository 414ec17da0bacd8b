"""Folders and files that appear whole or not at all; nothing else in the package replaces one.

All is written under a name aside, which only a killed run leaves behind. A folder that is replaced
is removed last: `recover` gives it its name back after a run that was killed in between.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fanplan.core.errors import FanplanError, InputError, MachineError, Problem
from fanplan.core.failures import of_system


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


@contextmanager
def whole_folder(folder: Path, kind: Kind, replace: bool = False) -> Iterator[Path]:
    """A folder to write in that takes the name ``folder`` at the end, if nothing was raised."""
    require_free(folder, kind, replace)
    with aside(folder) as written:
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
    written = path.with_name(f"{path.name}.partial-{uuid.uuid4().hex[:8]}")
    try:
        yield written
        put(written, path)
    except OSError as error:
        if error.errno not in REFUSED:
            raise
        raise unwritable(path, error) from error
    finally:
        # Whoever was stopped may still be writing there; why it was stopped is what counts.
        with suppress(OSError):
            remove(written)


def put(new: Path, path: Path) -> None:
    """Give a file or folder its name, in place of what has it."""
    remove(_replaced(path))
    if path.is_dir():
        # A file is replaced at once, a folder only by two renames.
        path.rename(_replaced(path))
    new.rename(path)
    remove(_replaced(path))


def recover(path: Path) -> None:
    """After a run that was killed between the two renames of `put`."""
    if _replaced(path).exists() and not path.exists():
        _replaced(path).rename(path)


REFUSED = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG)
"""What a disk says when it does not take what is written."""

LITTLE = 1 << 20
"""Bytes that any folder takes."""


def require_free(folder: Path, kind: Kind, replace: bool) -> None:
    """Only a folder of the same kind may be replaced, and only when asked; never other files.

    It must be possible to write it: this is asked before the work whose result goes there.
    """
    recover(folder)
    require_writable(folder)
    require_room(folder, LITTLE)
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / kind.sign).is_file():
        what = f"is there already and is not {kind.name}"
        raise InputError(Problem(str(folder), what, "Name another folder"))
    if not replace:
        what = f"is {kind.name} already"
        raise InputError(Problem(str(folder), what, "Name another folder, or allow replacing it"))


def remove(path: Path) -> None:
    """Remove a file or folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _replaced(path: Path) -> Path:
    return path.with_name(f".{path.name}.replaced")


def require_writable(folder: Path) -> None:
    """A folder of this name could be made: the place for it is there and takes new folders."""
    try:
        with tempfile.TemporaryDirectory(prefix=".fanplan-", dir=place_of(folder)):
            pass
    except OSError as error:
        raise unwritable(folder, error) from error


def require_room(folder: Path, size: int) -> None:
    """The disk of a folder has so many bytes free."""
    free = shutil.disk_usage(place_of(folder)).free
    if free < size:
        what = f"{in_bytes(free)} are free there, but about {in_bytes(size)} are needed"
        raise MachineError(Problem(str(folder), what, "Free some, or name a folder elsewhere"))


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
