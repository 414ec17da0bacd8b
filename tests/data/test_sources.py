"""Finding files: what is taken, what is refused and how the refusal reads."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanplan.core.errors import InputError
from fanplan.data.read.sources import SPLIT_BYTES, TableSource, find_sources
from fanplan.data.read.splits import Split, blocks, measure_lines

GOOD = "subscriber,topic\ns1,t1\n"


def workload(folder: Path, **files: str | bytes) -> Path:
    """A folder of files; ``__`` in a name stands for a dot, ``___`` for a slash."""
    for name, content in files.items():
        path = folder / name.replace("___", "/").replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def refusal(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        find_sources(folder)
    assert caught.value.exit_code == 2
    return str(caught.value)


def subscriptions(folder: Path, split_bytes: int = SPLIT_BYTES) -> TableSource:
    return find_sources(folder, split_bytes=split_bytes)["subscriptions"]


def test_folders_and_files_are_found_with_their_rows(tmp_path: Path) -> None:
    workload(
        tmp_path,
        subscriptions___b__csv="topic,subscriber\r\nt1,s1\r\n\r\nt2,s2\r\n",
        subscriptions___a__csv__gz=gzip.compress(GOOD.encode()),
        subscriptions____SUCCESS="",
        publications__jsonl='{"topic": "t1"}\n{"topic": "t2"}',
        notes__txt="not a table",
    )
    found = find_sources(tmp_path)
    assert list(found) == ["subscriptions", "publications"]
    files = found["subscriptions"].files
    assert [file.name for file in files] == ["subscriptions/a.csv.gz", "subscriptions/b.csv"]
    assert (found["subscriptions"].rows, found["publications"].rows) == (3, 2)


def test_the_key_is_of_the_content(tmp_path: Path) -> None:
    first = subscriptions(workload(tmp_path, subscriptions__csv=GOOD)).key
    assert subscriptions(workload(tmp_path, subscriptions__csv=GOOD)).key == first
    assert subscriptions(workload(tmp_path, subscriptions__csv=GOOD + "s2,t1\n")).key != first
    renamed = GOOD.replace("subscriber,topic", "topic,subscriber")
    assert subscriptions(workload(tmp_path, subscriptions__csv=renamed)).key != first


def test_a_parquet_file_of_several_row_groups(tmp_path: Path) -> None:
    table = pa.table({"subscriber": ["s"] * 10, "topic": list("abcdefghij")})
    pq.write_table(table, tmp_path / "subscriptions.parquet", row_group_size=4)
    source = subscriptions(tmp_path)
    assert [split.first_line for split in source.splits] == [1, 5, 9]
    assert source.rows == 10


def test_all_problems_come_together(tmp_path: Path) -> None:
    workload(
        tmp_path,
        subscriptions__csv="subscriber,tpoic\ns1,t1\n",
        brokers__csv="broker\nb\n",
        brokers__jsonl="{}",
        links__parquet=b"PAR1 not really",
    )
    text = refusal(tmp_path)
    assert "brokers.csv, brokers.jsonl" in text
    assert "subscriptions.csv: has no column 'topic'" in text
    assert "Rename 'tpoic' to 'topic'" in text
    assert "links.parquet: cannot be read" in text


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, ["no table at all", "subscriptions"]),
        ({"brokers__csv": "broker\n"}, ["only brokers", "subscriptions"]),
        ({"subscriptions__csv": "subscriber;topic\ns;t\n"}, ["semicolons"]),
        ({"subscriptions__csv": "subscriber\ttopic\ns\tt\n"}, ["tabs"]),
        ({"subscriptions__csv": "subscriber,topic\rs,t\r"}, ["CR alone"]),
        ({"subscriptions__csv": "subscriber, topic\ns,t\n"}, ["Rename ' topic' to 'topic'"]),
        ({"subscriptions__csv": "topic,subscriber,topic\n"}, ["two columns named 'topic'"]),
        ({"subscriptions__csv": GOOD.encode("utf-16")}, ["UTF-16", "Save it as UTF-8"]),
        ({"subscriptions__csv": GOOD.encode("utf-16-le")}, ["UTF-16"]),
        ({"subscriptions__csv": GOOD.encode("utf-32")}, ["UTF-32"]),
        ({"subscriptions__csv": "subscriber,tôpic\n".encode("latin-1")}, ["header", "utf-8"]),
        ({"subscriptions__csv": 'subscriber,"topic\n'}, ["header"]),
        ({"subscriptions__json": '[{"subscriber": 1}]'}, ["JSON array", "one object per line"]),
        ({"subscriptions___a__txt": "x"}, ["a.txt", "unknown ending"]),
        ({"subscriptions___day___a__csv": GOOD}, ["subscriptions/day", "is a folder"]),
        ({"subscriptions___a__csv": GOOD, "subscriptions___b__jsonl": "{}"}, ["several formats"]),
        ({"subscriptions__csv__gz": b"\x1f\x8b broken"}, ["csv.gz", "cannot be read"]),
        ({"subscriptions__csv__gz": gzip.compress(GOOD.encode() * 99)[:-9]}, ["cannot be read"]),
    ],
)
def test_what_is_refused(tmp_path: Path, files: dict[str, str], words: list[str]) -> None:
    text = refusal(workload(tmp_path, **files))
    assert all(word in text for word in words), text


def test_no_folder(tmp_path: Path) -> None:
    assert "cannot be opened" in refusal(tmp_path / "nothing")


def test_truncated_parquet(tmp_path: Path) -> None:
    path = tmp_path / "subscriptions.parquet"
    pq.write_table(pa.table({"subscriber": ["s"], "topic": ["t"]}), path)
    os.truncate(path, path.stat().st_size // 2)
    assert "subscriptions.parquet: cannot be read" in refusal(tmp_path)


def test_parquet_without_a_required_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"subscriber": ["s"]}), tmp_path / "subscriptions.parquet")
    assert "has no column 'topic'" in refusal(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_forbidden_file(tmp_path: Path) -> None:
    workload(tmp_path, subscriptions__csv=GOOD)
    (tmp_path / "subscriptions.csv").chmod(0)
    assert "Permission denied" in refusal(tmp_path)


def test_empty_files_are_told_apart_from_files_without_rows(tmp_path: Path) -> None:
    workload(
        tmp_path,
        subscriptions___empty__csv="",
        subscriptions___mark__csv=b"\xef\xbb\xbf",
        subscriptions___packed__csv__gz=gzip.compress(b""),
        subscriptions___header__csv="subscriber,topic",
    )
    source = subscriptions(tmp_path)
    assert source.empty == tuple(
        f"subscriptions/{n}" for n in ("empty.csv", "mark.csv", "packed.csv.gz")
    )
    assert source.rows == 0


def test_unknown_columns_are_noted(tmp_path: Path) -> None:
    workload(
        tmp_path,
        subscriptions__csv="subscriber,topic,fliter\n",
        publications__csv="topic,price,colour\n",
    )
    found = find_sources(tmp_path, attributes=["price"])
    assert "column 'fliter'" in found["subscriptions"].notes[0]
    assert "did you mean 'filter'?" in found["subscriptions"].notes[0]
    assert [("colour" in note, "price" in note) for note in found["publications"].notes] == [
        (True, False)
    ]


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fanplan.data.read.splits.LONGEST_LINE", 1 << 20)
    workload(tmp_path, subscriptions__csv=GOOD + "x" * (3 << 20))
    assert "a line of more than 1 MB" in refusal(tmp_path)


@given(
    lines=st.lists(st.text('ab,\r" é', max_size=12), max_size=30),
    end=st.sampled_from(["", "\n", "\r\n"]),
    size=st.integers(1, 60),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
)
def test_splits_tile_the_file_line_by_line(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: str, size: int, mark: bytes
) -> None:
    folder = tmp_path_factory.mktemp("tiles")
    body = ("\n".join(lines) + end).encode()
    workload(folder, subscriptions__csv=mark + b"subscriber,topic\n" + body)
    source = subscriptions(folder, split_bytes=size)
    pieces = [b"".join(blocks(split)) for split in source.splits]
    assert b"".join(pieces) == body
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])
    starts = [2 + b"".join(pieces[:i]).count(b"\n") for i in range(len(pieces))]
    assert [split.first_line for split in source.splits] == starts
    assert source.rows == sum(bool(line.strip(b"\r")) for line in body.split(b"\n"))


def test_blocks_hold_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fanplan.data.read.splits.BLOCK_BYTES", 10)
    content = b"\n".join(b"x" * n for n in range(30))
    (tmp_path / "x.csv").write_bytes(content)
    split = Split(str(tmp_path / "x.csv"), "x.csv", "csv", (), 0, len(content), len(content))
    pieces = list(blocks(split))
    assert b"".join(pieces) == content
    assert len(pieces) > 5
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])
    assert measure_lines(split).rows == 29
    assert (measure_lines(split).lines, measure_lines(split).rows) == (30, 29)
