"""Files that a user names: no pipe that never ends, no secret that others can read; and CSV."""

from __future__ import annotations

import csv
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from fanplan.core.errors import InputError, Problem

OTHERS = 0o077
"""Permissions that nobody but the owner of a secret may have."""
MOST_BYTES = 100_000
"""A key, a secret or a signature is a few hundred bytes; more is something else."""


def read_small(path: Path, remedy: str) -> bytes:
    if not path.is_file():
        refuse(path, "there is no such file", remedy)
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES)
    except OSError as error:
        refuse(path, f"cannot be read ({error.strerror})", "Name a file that can be read")


def require_regular(path: Path, remedy: str) -> None:
    """A pipe or a device might be read for ever. What is not there is left to who opens it."""
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        refuse(path, "is not a file but a folder, a pipe or a device", remedy)


def require_private(path: Path, what: str) -> None:
    """Nobody but its owner may read a file."""
    if path.stat().st_mode & OTHERS:
        refuse(path, f"others can read this {what}", f"Run `chmod 600 {path}`")


def refuse(path: Path, what: str, remedy: str) -> NoReturn:
    raise InputError(Problem(str(path), what, remedy))


def write_csv(path: Path, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A header and rows, as spreadsheets and other programs read them."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])
