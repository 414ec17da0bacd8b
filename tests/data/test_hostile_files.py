"""Files that somebody made to do harm, or that are not what they seem: named, in little memory."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import fanplan
from fanplan.core.errors import InputError
from fanplan.data.ingest import ingest
from fanplan.data.read.formats import read_splits
from fanplan.data.read.rows import layout_of
from fanplan.data.read.sources import MOST_COLUMNS, find_sources
from fanplan.data.read.splits import SplitError
from fanplan.workload.description import Description, load_description, parse_description
from fanplan.workload.tables import SUBSCRIPTIONS

HEADER = b"subscriber,topic\n"
LONG = 300 << 20
GROWTH = 160
"""MB that reading may take, whatever the file: half of what the longest line alone would."""

# Reads a table as the driver and its tasks do, and tells the growth of memory in MB.
READ = """
import re, sys
from pathlib import Path
from fanplan.core.errors import InputError
from fanplan.data.read.formats import read_splits
from fanplan.data.read.rows import layout_of
from fanplan.data.read.sources import find_sources
from fanplan.workload.description import Description
from fanplan.workload.tables import SUBSCRIPTIONS

def most():
    # Not of rusage, which begins with what the parent had.
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) >> 10

before, rows, faults = most(), 0, 0
try:
    source = find_sources(Path(sys.argv[1]))["subscriptions"]
    for batch in read_splits(source.splits, layout_of(source, SUBSCRIPTIONS, Description("x"))):
        rows += batch.num_rows
        faults += batch.num_rows - batch["_fault"].null_count
    print(rows, faults)
except InputError as error:
    print(error)
print(most() - before)
"""


def read_apart(folder: Path) -> tuple[str, int]:
    """What reading a workload says, and by how many MB the process grew."""
    words = (sys.executable, "-c", READ, str(folder))
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300)
    said, grown = done.stdout.splitlines()
    return said, int(grown)


def refused(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        find_sources(folder)
    return str(caught.value)


# ---- memory


def test_a_line_without_end_in_a_packed_file(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "subscriptions.csv.gz", "wb", compresslevel=1) as file:
        file.write(HEADER)
        for _ in range(LONG >> 20):
            file.write(b"x" * (1 << 20))
    said, grown = read_apart(tmp_path)
    assert "subscriptions.csv.gz: has a line of more than 16 MB" in said
    assert grown < GROWTH


def test_a_line_without_end_in_a_plain_file(tmp_path: Path) -> None:
    with (tmp_path / "subscriptions.csv").open("wb") as file:
        file.write(HEADER)
        file.truncate(LONG)
    said, grown = read_apart(tmp_path)
    assert "has a line of more than 16 MB" in said
    assert grown < GROWTH


def write_subscriptions(folder: Path, topics: list[str]) -> None:
    names = [f"s{i}" for i in range(len(topics))]
    pq.write_table(
        pa.table({"subscriber": names, "topic": topics}), folder / "subscriptions.parquet"
    )


def test_a_parquet_cell_of_many_megabytes_is_refused_unread(tmp_path: Path) -> None:
    write_subscriptions(tmp_path, ["x" * (100 << 20)])
    said, grown = read_apart(tmp_path)
    assert "column 'topic' takes 100 MB in one row" in said
    assert grown < GROWTH


@pytest.mark.parametrize(("length", "faults"), [(60_000, 0), (400_000, 10_000)])
def test_one_parquet_value_in_every_row_is_not_unpacked_at_once(
    length: int, faults: int, tmp_path: Path
) -> None:
    """A file of a few KB that means a GB or four."""
    one = pa.DictionaryArray.from_arrays(pa.array([0] * 10_000, pa.int32()), ["x" * length])
    table = pa.table({"subscriber": [f"s{i}" for i in range(10_000)], "topic": one})
    # As other programs write it: packed, and nobody says so.
    pq.write_table(table, tmp_path / "subscriptions.parquet", store_schema=False)
    assert (tmp_path / "subscriptions.parquet").stat().st_size < 1 << 20
    said, grown = read_apart(tmp_path)
    assert said == f"10000 {faults}"
    assert grown < 3 * GROWTH


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_too_many_columns_are_refused(format_: str, tmp_path: Path) -> None:
    names = ["subscriber", "topic", *(f"c{i}" for i in range(30_000))]
    if format_ == "csv":
        (tmp_path / "subscriptions.csv").write_text(",".join(names) + "\n")
    else:
        table = pa.table({name: ["x"] for name in names})
        pq.write_table(table, tmp_path / "subscriptions.parquet")
    assert f"has 30,002 columns, and {MOST_COLUMNS:,} are the most" in refused(tmp_path)


def test_a_header_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "subscriptions.csv").write_bytes(b"subscriber,topic," + b"x" * (2 << 20))
    assert "the header, is longer than 1 MB" in refused(tmp_path)


# ---- what is no file


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_loop(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (make_pipe, "is not a file but a pipe or a device"),
        (make_device, "is not a file but a pipe or a device"),
        (make_loop, "Too many levels of symbolic links"),
    ],
)
def test_what_is_no_file_is_named(make: Callable[[Path], None], said: str, tmp_path: Path) -> None:
    make(tmp_path / "subscriptions.csv")
    assert f"subscriptions.csv: {said}" in refused(tmp_path).replace("cannot be read (", "")
    (tmp_path / "described").mkdir()
    make(tmp_path / "described" / "workload.toml")
    with pytest.raises(InputError, match=r"workload\.toml"):
        load_description(tmp_path / "described")


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "subscriptions").mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/subscriptions/\xff.csv")).write_bytes(HEADER)
    assert "its name is not UTF-8" in refused(tmp_path)


# ---- descriptions


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seconds = " + "1" * 5000, "4300 digits"),
        ("[limits]\nmax_cells = 0x1" + "0" * 5000, "more than 300 digits"),
        ("x = " + "[" * 100_000, "recursion"),
        ("x = " + "{a = " * 100_000, "recursion"),
        ("a." * 100_000 + "b = 1", "more than 100 parts"),
        ("'a' . " * 5000 + "b = 1", "more than 100 parts"),
    ],
)
def test_a_description_that_would_take_all_memory(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_description(text, "x")


def test_a_description_of_many_megabytes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "workload.toml").write_bytes(b"#" * (5 << 20))
    with pytest.raises(InputError, match="more than 4 MB"):
        load_description(tmp_path)


# ---- files that change


def change(path: Path) -> None:
    """Other content of the same length, at the same time as far as anybody can set it."""
    before, content = path.stat(), path.read_bytes()
    path.write_bytes(content.replace(b"wanted", b"hidden"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


@pytest.mark.parametrize("name", ["subscriptions.csv", "subscriptions.parquet"])
def test_a_file_that_changes_after_it_was_hashed(name: str, tmp_path: Path) -> None:
    if name.endswith("csv"):
        (tmp_path / name).write_bytes(HEADER + b"s,wanted\n")
    else:
        write_subscriptions(tmp_path, ["wanted"])
    source = find_sources(tmp_path)["subscriptions"]
    layout = layout_of(source, SUBSCRIPTIONS, Description("x"))
    assert sum(batch.num_rows for batch in read_splits(source.splits, layout)) == 1
    change(tmp_path / name)
    with pytest.raises(SplitError, match=f"{name}: it changed while it was being read"):
        list(read_splits(source.splits, layout))


def test_a_file_that_changes_during_an_ingest(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "work" / "subscriptions.csv"
    file.parent.mkdir()
    file.write_bytes(HEADER + b"s,wanted\n")

    def found_and_changed(*given: Any) -> Any:
        found = find_sources(*given)
        change(file)
        return found

    monkeypatch.setattr(ingest, "find_sources", found_and_changed)
    engine = fanplan.Engine("local[2]")
    with pytest.raises(InputError, match=r"subscriptions\.csv: .*it changed while"):
        fanplan.ingest(file.parent, tmp_path / "out", engine=engine)
    assert not (tmp_path / "out").exists()
