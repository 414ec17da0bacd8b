"""Splits: parts of input files that tasks read on their own.

A split of a text file starts and ends with a line, and knows the number of its first line; a split
of a Parquet file is a row group. So every row's place in its file is known without a second pass.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Literal, cast

import numpy as np
import pyarrow as pa

Format = Literal["csv", "json", "parquet"]

BLOCK_BYTES = 4 << 20
LONGEST_LINE = 16 << 20
"""Bytes of the longest line that is read. It must fit into memory, several times."""
UNREADABLE = (OSError, EOFError, zlib.error, pa.ArrowException)


@dataclass(frozen=True)
class Split:
    """Bytes ``start`` to ``stop`` of a text file (unpacked), or row groups of a Parquet file."""

    path: str
    name: str
    format: Format
    columns: tuple[str, ...]
    start: int
    stop: int
    size: int
    first_line: int = 1
    digest: bytes = b""
    stamp: tuple[int, ...] = ()


class SplitError(Exception):
    """A file that fails in a task: its message begins with the file's name."""


class LongLineError(Exception):
    """A line that is too long to be a row."""

    def __init__(self) -> None:
        super().__init__(f"has a line of more than {LONGEST_LINE >> 20} MB")


class ChangedError(Exception):
    """A file that is not any more what was hashed."""

    def __init__(self) -> None:
        super().__init__("it changed while it was being read")


def stamp_of(path: str) -> tuple[int, ...]:
    """What changes when somebody writes to a file, even if he sets its time back."""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def require_unchanged(split: Split) -> None:
    if split.stamp and stamp_of(split.path) != split.stamp:
        raise ChangedError


def opened(path: str) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.endswith(".gz") else open(path, "rb")


def blocks(split: Split) -> Iterator[bytes]:
    """The bytes of a text split, a few MB of whole lines at a time."""
    left = split.stop - split.start
    with opened(split.path) as file:
        file.seek(split.start)
        while left > 0 and (block := file.read(min(BLOCK_BYTES, left))):
            if len(block) < left and not block.endswith(b"\n"):
                block += rest_of_line(file)
            left -= len(block)
            yield block


def rest_of_line(file: IO[bytes]) -> bytes:
    """Up to the next line; who never comes to an end is stopped before memory is."""
    rest = file.readline(LONGEST_LINE)
    if len(rest) == LONGEST_LINE and not rest.endswith(b"\n"):
        raise LongLineError
    return rest


def line_ends(block: bytes) -> np.ndarray:
    """Positions just after each line."""
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
    return ends if block.endswith(b"\n") else np.append(ends, len(block))


def new_digest() -> hashlib._Hash:
    """For text, which is hashed twice: processors have instructions for this one."""
    return hashlib.sha256()


@dataclass(frozen=True)
class Measured:
    """What the driver knows of a split: a hash of its bytes, its lines, and which hold a row."""

    digest: bytes
    lines: int
    rows: int


def measure_lines(split: Split) -> Measured:
    """Read a text split once. O(bytes), a few MB of memory."""
    digest, lines, rows = new_digest(), 0, 0
    for block in blocks(split):
        ends = line_ends(block)
        starts = np.concatenate(([0], ends[:-1]))
        if int((ends - starts).max()) > LONGEST_LINE:
            raise LongLineError
        digest.update(block)
        lines, rows = lines + len(ends), rows + int(filled_lines(block, starts).sum())
    return Measured(digest.digest(), lines, rows)


def filled_lines(block: bytes, starts: np.ndarray) -> np.ndarray:
    """Which lines have more than line ends; for most their first byte tells."""
    content = np.frombuffer(block, np.uint8)
    first = content[starts]
    if (first == ord("\r")).any():
        other = (content != ord("\n")) & (content != ord("\r"))
        return np.logical_or.reduceat(other, starts)
    filled: np.ndarray = first != ord("\n")
    return filled
