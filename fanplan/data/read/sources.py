"""Finding and vetting the files of a workload, before any of them is read by Spark.

A table is a file ``NAME.csv``, ``.jsonl``, ``.ndjson``, ``.json`` or ``.parquet``, or a folder
``NAME`` of such files; text files may end in ``.gz`` too. All that is wrong with the files is
reported together. The driver reads every file once, to hash it; that pass also finds where the
lines are, so it costs no more than the hash.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import os
import stat
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fanplan.core.errors import InputError, Problem
from fanplan.core.tables import Table
from fanplan.data.read.splits import (
    BLOCK_BYTES,
    UNREADABLE,
    Format,
    LongLineError,
    Measured,
    Split,
    measure_lines,
    opened,
    rest_of_line,
    stamp_of,
)
from fanplan.workload.tables import INPUT_TABLES, PUBLICATIONS

SPLIT_BYTES = 16 << 20
HEADER_BYTES = 1 << 20
MOST_COLUMNS = 4096
FOOTER_BYTES = 64 << 20
"""Of a Parquet file."""
CHUNK_BYTES = 64 << 20
ROW_BYTES = 4096
MOST_CHUNK_BYTES = 512 << 20
"""One column of a row group is unpacked at once. It may take the first of these; more if its values
are of the second size on average, up to the third."""
FORMATS: Mapping[str, Format] = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".jsonl": "json",
    ".jsonl.gz": "json",
    ".ndjson": "json",
    ".ndjson.gz": "json",
    ".json": "json",
    ".json.gz": "json",
    ".parquet": "parquet",
}
ENDINGS = ", ".join(FORMATS)
UTF8_MARK = b"\xef\xbb\xbf"
OTHER_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class SourceFile:
    """One file: its format, its columns (none for JSON), and where its rows begin."""

    path: str
    name: str
    format: Format
    columns: tuple[str, ...] = ()
    types: tuple[pa.DataType, ...] = ()
    start: int = 0
    first_line: int = 1
    empty: bool = False
    stamp: tuple[int, ...] = ()


@dataclass(frozen=True)
class TableSource:
    """The files of one table. ``rows`` counts what is there, bad rows included."""

    table: str
    files: tuple[SourceFile, ...]
    splits: tuple[Split, ...]
    rows: int
    key: str
    notes: tuple[str, ...]

    @property
    def empty(self) -> tuple[str, ...]:
        """Names of files without a single byte."""
        return tuple(file.name for file in self.files if file.empty)

    @property
    def size(self) -> int:
        """Bytes, unpacked if they are text."""
        return sum(split.size for split in self.splits)


def find_sources(
    folder: Path, attributes: Collection[str] = (), split_bytes: int = SPLIT_BYTES
) -> dict[str, TableSource]:
    """The tables of a workload folder. ``attributes`` are names that publications may use."""
    problems: list[Problem] = []
    listed = list_tables(folder, problems)
    if not problems and "subscriptions" not in listed:
        problems.append(nothing_to_read(folder, listed))
    vetted = {
        table.name: [
            vet_file(folder, path, table, known_names(table, attributes), problems)
            for path in listed[table.name]
        ]
        for table in INPUT_TABLES
        if table.name in listed
    }
    if problems:
        raise InputError(problems)
    return {
        table.name: measured_source(table, vetted[table.name], attributes, split_bytes)
        for table in INPUT_TABLES
        if table.name in vetted
    }


# ---- which files


def list_tables(folder: Path, problems: list[Problem]) -> dict[str, list[Path]]:
    """The files of each table that is there."""
    try:
        present = {path.name: path for path in folder.iterdir()}
    except OSError as error:
        remedy = "Give the folder with the tables"
        problems.append(Problem(str(folder), f"cannot be opened ({error.strerror})", remedy))
        return {}
    listed = {}
    for table in INPUT_TABLES:
        names = [name for name in (table.name, *files_of(table)) if name in present]
        if len(names) > 1:
            remedy = "Keep one of them"
            what = f"is there more than once: {', '.join(names)}"
            problems.append(Problem(f"{folder.name}: table {table.name}", what, remedy))
        elif names:
            listed[table.name] = list_files(present[names[0]], folder, problems)
    return listed


def files_of(table: Table) -> list[str]:
    return [table.name + ending for ending in FORMATS]


def list_files(path: Path, folder: Path, problems: list[Problem]) -> list[Path]:
    """The file itself, or the visible files of a folder."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.name[0] not in "._")
    for file in files:
        if not has_text_name(file.name):
            remedy = "Rename it: names go into tables, as text"
            problems.append(Problem(file_label(file, folder), "its name is not UTF-8", remedy))
        if file.is_dir() or ending(file) is None:
            what = "is a folder" if file.is_dir() else "has an unknown ending"
            remedy = f"A table's folder holds files ending in {ENDINGS}: move this one away"
            problems.append(Problem(file_label(file, folder), what, remedy))
    if len({FORMATS[end] for file in files if (end := ending(file))}) > 1:
        remedy = "Keep the files of one format"
        problems.append(Problem(file_label(path, folder), "has files of several formats", remedy))
    if not files:
        remedy = "Put files there, or remove the folder"
        problems.append(Problem(file_label(path, folder), "is an empty folder", remedy))
    return files


def has_text_name(name: str) -> bool:
    """Whether a name is text; the system lets any bytes be one."""
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False


def ending(path: Path) -> str | None:
    """The ending that tells a file's format; the longest that fits."""
    fitting = [end for end in FORMATS if path.name.endswith(end)]
    return max(fitting, key=len, default=None)


def file_label(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def nothing_to_read(folder: Path, listed: Collection[str]) -> Problem:
    found = f"only {', '.join(listed)}" if listed else "no table at all"
    return Problem(
        str(folder),
        f"is not a workload: there is {found}",
        f"A workload needs subscriptions, as a file ending in {ENDINGS} or a folder of such files",
    )


# ---- what is in them


def known_names(table: Table, attributes: Collection[str]) -> list[str]:
    """What a column of a table may be called; only publications have attributes."""
    own = [column.name for column in table.columns]
    return [*own, *attributes] if table.name == PUBLICATIONS.name else own


def vet_file(
    folder: Path, path: Path, table: Table, known: Collection[str], problems: list[Problem]
) -> SourceFile:
    """Look at a file's header or footer; what is wrong with it is added to ``problems``."""
    file = SourceFile(
        os.path.realpath(path), file_label(path, folder), FORMATS[ending(path) or ".csv"]
    )
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            remedy = "Write its rows into a file"
            problems.append(Problem(file.name, "is not a file but a pipe or a device", remedy))
            return file
        if found.st_size == 0:
            return replace(file, empty=True)
        stamped = replace(file, stamp=stamp_of(file.path))
        vet = partial(vet_parquet, known=known) if file.format == "parquet" else vet_text
        file = vet(stamped, problems)
    except UNREADABLE as error:
        problems.append(unreadable_file(file.name, error))
        return file
    if len(file.columns) > MOST_COLUMNS:
        what = f"has {len(file.columns):,} columns, and {MOST_COLUMNS:,} are the most"
        problems.append(Problem(file.name, what, "Keep the columns that are needed"))
        return replace(file, columns=())
    problems.extend(problems_with_names(file, known))
    file = replace(file, columns=in_our_capitals(file.columns, known))
    if file.columns:
        problems.extend(problems_with_columns(file, table))
    return file


def in_our_capitals(names: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """Names as we write them, however a file does: `Topic` and `TOPIC` are `topic`."""
    ours = {name.lower(): name for name in known}
    return tuple(ours.get(name.lower(), name) for name in names)


def unreadable_file(name: str, error: BaseException) -> Problem:
    """The problem for a file that is damaged, missing or forbidden."""
    told = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
    remedy = "Check that the file is whole and may be read, or remove it"
    return Problem(name, f"cannot be read ({told.splitlines()[0]})", remedy)


def vet_parquet(
    file: SourceFile, problems: list[Problem], known: Collection[str] = ()
) -> SourceFile:
    """The columns in the footer; what would not fit into memory is refused by what it says."""
    if footer_bytes(file.path) > FOOTER_BYTES:
        remedy = "Write it with fewer row groups or columns"
        problems.append(Problem(file.name, f"has a footer above {FOOTER_BYTES >> 20} MB", remedy))
        return file
    metadata = pq.read_metadata(file.path)
    problems.extend(problems_with_chunks(file, metadata, {name.lower() for name in known}))
    schema = metadata.schema.to_arrow_schema()
    return replace(file, columns=tuple(schema.names), types=tuple(schema.types))


def footer_bytes(path: str) -> int:
    """The length of a Parquet file's footer, which is in its last bytes; 0 if it has none."""
    with open(path, "rb") as stream:
        stream.seek(max(0, os.path.getsize(path) - 8))
        length, sign = stream.read(4), stream.read(4)
    return int.from_bytes(length, "little") if sign == b"PAR1" else 0


def problems_with_chunks(
    file: SourceFile, metadata: pq.FileMetaData, known: Collection[str]
) -> Iterator[Problem]:
    """Columns that are read and take too much memory in a row group; the first of each."""
    paths = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    for i, path in enumerate(paths):
        if path.split(".")[0].lower() not in known:
            continue
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            size = group.column(i).total_uncompressed_size
            most = max(CHUNK_BYTES, ROW_BYTES * group.num_rows)
            if size > min(most, MOST_CHUNK_BYTES):
                rows = f"{group.num_rows:,} rows" if group.num_rows != 1 else "one row"
                what = f"column {path!r} takes {size >> 20} MB in {rows} (row group {number})"
                remedy = "Check its values, or write smaller row groups"
                yield Problem(file.name, what, remedy)
                break


def vet_text(file: SourceFile, problems: list[Problem]) -> SourceFile:
    """Skip a UTF-8 mark; for CSV also read the header line."""
    with opened(file.path) as stream:
        begin = stream.read(4)
        stream.seek(0)
        header = stream.readline(HEADER_BYTES)
    if begin.startswith(OTHER_MARKS) or b"\0" in header:
        remedy = "Save it as UTF-8"
        problems.append(Problem(file.name, "is UTF-16 or UTF-32, or no text at all", remedy))
        return file
    mark = len(UTF8_MARK) if header.startswith(UTF8_MARK) else 0
    if not header[mark:]:
        return replace(file, empty=True)
    if file.format == "json":
        if ".jsonl" not in file.name and header[mark:].lstrip().startswith(b"["):
            remedy = "Write one object per line, without [ and ]"
            problems.append(Problem(file.name, "is one JSON array", remedy))
        return replace(file, start=mark)
    if len(header) == HEADER_BYTES and not header.endswith(b"\n"):
        what = f"its first line, the header, is longer than {HEADER_BYTES >> 20} MB"
        problems.append(Problem(file.name, what, "The first line must name the columns"))
        return file
    columns = header_columns(header[mark:], file, problems)
    return replace(file, columns=columns, start=len(header), first_line=2)


def header_columns(line: bytes, file: SourceFile, problems: list[Problem]) -> tuple[str, ...]:
    """The names in a CSV file's first line."""
    if b"\r" in line.rstrip(b"\r\n"):
        remedy = "Convert the file to lines that end in LF"
        problems.append(Problem(file.name, "its lines end in CR alone", remedy))
        return ()
    try:
        names = next(csv.reader([line.decode().rstrip("\r\n")], strict=True), [])
    except (UnicodeDecodeError, csv.Error) as error:
        remedy = "The first line must name the columns, in UTF-8, with commas between"
        problems.append(Problem(file.name, f"the header cannot be read ({error})", remedy))
        return ()
    return tuple(names) or ("",)


def problems_with_names(file: SourceFile, known: Iterable[str]) -> Iterable[Problem]:
    """Columns that are there twice; those we know also if only their capitals differ."""
    for name, times in Counter(file.columns).items():
        if times > 1:
            yield Problem(file.name, f"has two columns named {name!r}", "Rename one of them")
    for name in known:
        alike = sorted({other for other in file.columns if other.lower() == name.lower()})
        if len(alike) > 1:
            what = f"has columns that differ only in capitals: {', '.join(map(repr, alike))}"
            yield Problem(file.name, what, "Rename one of them")


def problems_with_columns(file: SourceFile, table: Table) -> Iterable[Problem]:
    """Columns that are missing."""
    found = list(file.columns)
    for name in table.required:
        if name not in found:
            what = f"has no column {name!r}; its columns are {', '.join(map(repr, found))}"
            yield Problem(file.name, what, remedy_for_missing(name, found, file.format))


def remedy_for_missing(name: str, found: list[str], format_: Format) -> str:
    for separator, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if format_ == "csv" and any(name in c.lower().split(separator) for c in found):
            return f"The header is divided by {word}: write the file with commas"
    near = nearest_name(name, found)
    return f"Rename {near!r} to {name!r}" if near else f"Add the column {name!r}"


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """The most similar name, ignoring case and spaces."""
    plain = {other.strip().lower(): other for other in names}
    close = difflib.get_close_matches(name.strip().lower(), plain, n=1, cutoff=0.7)
    return plain[close[0]] if close else None


def notes_on(files: Iterable[SourceFile], table: Table, attributes: Collection[str]) -> list[str]:
    """Columns that nobody will read."""
    known = known_names(table, attributes)
    notes = []
    for file in files:
        for name in file.columns:
            if name not in known:
                near = nearest_name(name, known)
                hint = f"; did you mean {near!r}?" if near else ""
                notes.append(f"{file.name}: column {name!r} is not known and is ignored{hint}")
    return notes


# ---- measuring


def measured_source(
    table: Table, files: list[SourceFile], attributes: Collection[str], split_bytes: int
) -> TableSource:
    """Hash all files and count their rows, many splits at a time."""
    splits = [split for file in files for split in cut_file(file, split_bytes)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(measure_split, splits))
    key = hashlib.blake2b(digest_size=16)
    for file in files:
        key.update(repr((file.name, file.columns, file.types)).encode())
    for measured in found:
        key.update(measured.digest)
    return TableSource(
        table=table.name,
        files=tuple(files),
        splits=tuple(placed_splits(splits, found)),
        rows=sum(measured.rows for measured in found),
        key=key.hexdigest(),
        notes=tuple(notes_on(files, table, attributes)),
    )


def cut_file(file: SourceFile, split_bytes: int) -> list[Split]:
    """A file's splits, not yet knowing their first lines."""
    if file.empty:
        return []
    with naming(file.name):
        edges = group_edges(file) if file.format == "parquet" else line_edges(file, split_bytes)
    sizes = [stop - start for start, stop in pairwise(edges)]
    if file.format == "parquet":
        sizes = [os.path.getsize(file.path) // len(sizes) for _ in sizes]
    return [
        Split(
            path=file.path,
            name=file.name,
            format=file.format,
            columns=file.columns,
            start=start,
            stop=stop,
            size=size,
            first_line=file.first_line,
            stamp=file.stamp,
        )
        for (start, stop), size in zip(pairwise(edges), sizes, strict=True)
    ]


def group_edges(file: SourceFile) -> range:
    return range(pq.read_metadata(file.path).num_row_groups + 1)


def line_edges(file: SourceFile, split_bytes: int) -> list[int]:
    """Positions in a text file where a line begins, about ``split_bytes`` apart.

    A packed file can only be read from its beginning: it is one split.
    """
    size = os.path.getsize(file.path)
    if file.path.endswith(".gz"):
        return [file.start, sys.maxsize]
    edges = [file.start]
    with open(file.path, "rb") as stream:
        while edges[-1] + split_bytes < size:
            stream.seek(edges[-1] + split_bytes - 1)
            rest_of_line(stream)
            edges.append(stream.tell())
    return edges if edges[-1] == size else [*edges, size]


def measure_split(split: Split) -> Measured:
    """Measure a split; a file that fails halfway, or has no lines, stops the run by its name."""
    with naming(split.name):
        return measure_groups(split) if split.format == "parquet" else measure_lines(split)


@contextmanager
def naming(name: str) -> Iterator[None]:
    """What goes wrong with a file names it."""
    try:
        yield
    except LongLineError as error:
        remedy = "Check that it is text with one row a line"
        raise InputError(Problem(name, str(error), remedy)) from None
    except UNREADABLE as error:
        raise InputError(unreadable_file(name, error)) from error


def measure_groups(split: Split) -> Measured:
    """Rows of a row group from the footer; the hash is over its share of the file's bytes."""
    metadata = pq.read_metadata(split.path)
    rows = sum(metadata.row_group(i).num_rows for i in range(split.start, split.stop))
    size, groups = os.path.getsize(split.path), metadata.num_row_groups
    begin, end = size * split.start // groups, size * split.stop // groups
    digest = hashlib.blake2b(digest_size=16)
    with open(split.path, "rb") as stream:
        stream.seek(begin)
        for left in range(end - begin, 0, -BLOCK_BYTES):
            digest.update(stream.read(min(left, BLOCK_BYTES)))
    return Measured(digest.digest(), lines=rows, rows=rows)


def placed_splits(splits: list[Split], found: list[Measured]) -> Iterator[Split]:
    """The splits with their hashes and the number of their first line, by counting lines."""
    lines: Counter[str] = Counter()
    for split, measured in zip(splits, found, strict=True):
        first = split.first_line + lines[split.path]
        yield replace(split, first_line=first, digest=measured.digest)
        lines[split.path] += measured.lines
