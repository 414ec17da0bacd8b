"""Folders that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fanplan.core.errors import InputError, Problem


@dataclass(frozen=True)
class Kind:
    """What a folder holds, and the file by which such a folder is known."""

    name: str
    sign: str


WORKLOAD = Kind("a workload", "workload.toml")
PLAN = Kind("a plan", "plan.json")
CURVE = Kind("a curve", "curve.json")
CHANGES = Kind("a list of changes", "changes.json")
SIMULATION = Kind("a simulation", "summary.json")
REPORT = Kind("a report", "report.json")


@contextmanager
def whole_folder(folder: Path, kind: Kind, replace: bool = False) -> Iterator[Path]:
    """A folder to write in that takes the name ``folder`` at the end, if nothing was raised."""
    require_free(folder, kind, replace)
    aside = folder.with_name(f"{folder.name}.partial-{os.getpid()}")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    try:
        yield aside
        _rename_over(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def require_free(folder: Path, kind: Kind, replace: bool) -> None:
    """Only a folder of the same kind may be replaced, and only when asked; never other files."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / kind.sign).is_file():
        what = f"is there already and is not {kind.name}"
        raise InputError(Problem(str(folder), what, "Name another folder"))
    if not replace:
        what = f"is {kind.name} already"
        raise InputError(Problem(str(folder), what, "Name another folder, or allow replacing it"))


def _rename_over(new: Path, folder: Path) -> None:
    old = folder.with_name(f"{folder.name}.replaced-{os.getpid()}")
    if folder.exists():
        folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
