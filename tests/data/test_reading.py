"""Reading tables: every row is kept with the right values, or quarantined with its text and why."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession

from fanplan.data.read.formats import attribute_column
from fanplan.data.read.rows import (
    as_input_error,
    mark_unknown,
    packed_splits,
    quarantined_files,
    raw_text,
    read_rows,
    reason_text,
    share_bytes,
)
from fanplan.data.read.sources import SPLIT_BYTES, TableSource, find_sources
from fanplan.data.read.splits import Split
from fanplan.workload import tables
from fanplan.workload.description import Description
from fanplan.workload.space import CategoryAttribute, NumberAttribute

PLAIN = Description("test")
ATTRIBUTES = Description(
    "test",
    attributes={
        "price": NumberAttribute("price", 0.0, 100.0),
        "venue": CategoryAttribute("venue", ("N", "Q")),
    },
)
NO_TIME = "time: not seconds or ISO 8601 (another way to write times: time_format)"
SUBSCRIPTIONS = "subscriber,topic\ns,t\n"


def source(folder: Path, table: str, split_bytes: int = SPLIT_BYTES) -> TableSource:
    """The source of one table; a workload always has subscriptions."""
    if not any(folder.glob("subscriptions*")):
        (folder / "subscriptions.csv").write_text(SUBSCRIPTIONS)
    return find_sources(folder, split_bytes=split_bytes)[table]


def rows_of(spark: SparkSession, found: TableSource, description: Description = PLAIN) -> list[Row]:
    table = next(table for table in tables.INPUT_TABLES if table.name == found.table)
    frame = read_rows(spark, found, table, description)
    told = frame.withColumns({"_raw": raw_text(frame), "_reason": reason_text()})
    rows = told.orderBy("_source", "_line").collect()
    assert len(rows) == found.rows
    return rows


def reasons(rows: Sequence[Row]) -> dict[int, str]:
    return {row["_line"]: row["_reason"] for row in rows if row["_reason"]}


def test_every_bad_value_has_its_reason(spark: SparkSession, tmp_path: Path) -> None:
    lines = {
        "p,t,,2.5,b": None,
        "p,t2,,,": None,
        ",t,,1,": "publisher: no value",
        'p,"",,1,': "topic: no value",
        "p,t3,,fast,": "rate: not a finite number from 0: fast",
        "p,t3,,1d,": "rate: not a finite number from 0: 1d",
        "p,t3,,NaN,": "rate: not a finite number from 0: NaN",
        "p,t3,,-inf,": "rate: not a finite number from 0: -inf",
        "p,t3,,1e999,": "rate: not a finite number from 0: 1e999",
        "p,t3,,-1,": "rate: not a finite number from 0: -1",
        "p,t,,7,": "duplicate of advertisements.csv, line 2",
        "p,t": "2 fields, but the header has 5",
        "p,t,a,1,b,c": "6 fields, but the header has 5",
        'p,"t,,1,b': "broken quote",
        'p,"t"x,,1,b': "broken quote",
        "p,t\0,,1,b": "null character",
        'p,t,"price IN (1,2)",1,"say ""b"""': None,
        "," * 30_000: "30001 fields",
    }
    (tmp_path / "advertisements.csv").write_text(
        "publisher,topic,filter,rate,broker\n" + "\n".join(lines)
    )
    rows = rows_of(spark, source(tmp_path, "advertisements"))
    for row, (text, expected) in zip(rows, lines.items(), strict=True):
        assert row["_raw"] == text
        assert (expected or "") in (row["_reason"] or ""), text
        assert (expected is None) == (row["_reason"] is None), row
    good = [tuple(row)[:5] for row in rows if row["_reason"] is None]
    assert good == [
        ("p", "t", None, 2.5, "b"),
        ("p", "t2", None, 1.0, None),
        ("p", "t", "price IN (1,2)", 1.0, 'say "b"'),
    ]


def test_other_encodings_are_shown_readable(spark: SparkSession, tmp_path: Path) -> None:
    text = "subscriber,topic\r\nJosé,t\r\n\r\nZoë,t\r\n"
    (tmp_path / "subscriptions").mkdir()
    (tmp_path / "subscriptions" / "a.csv").write_bytes(text.encode("latin-1"))
    (tmp_path / "subscriptions" / "b.csv").write_bytes(text.encode("utf-8-sig"))
    rows = rows_of(spark, source(tmp_path, "subscriptions"))
    assert [(row["_line"], row["_raw"]) for row in rows] == [(2, "José,t"), (4, "Zoë,t")] * 2
    assert ["not UTF-8" in (row["_reason"] or "") for row in rows] == [True, True, False, False]
    assert [row["subscriber"] for row in rows] == [None, None, "José", "Zoë"]


def test_a_field_of_ten_megabytes(spark: SparkSession, tmp_path: Path) -> None:
    long = "x" * (10 << 20)
    content = f"subscriber,topic\ns,{long}\ns,t\n"
    (tmp_path / "subscriptions.csv").write_text(content)
    big, fine = rows_of(spark, source(tmp_path, "subscriptions"))
    assert big["_raw"] == f"s,{long}"
    assert big["_reason"] == "topic: more than 65536 characters: 10485760"
    assert fine["_reason"] is None


def test_lines_are_numbered_across_splits(spark: SparkSession, tmp_path: Path) -> None:
    lines = [f"s{i},t" if i % 3 else f"s{i}" for i in range(500)]
    lines[100:100] = ["", "\r"]
    (tmp_path / "subscriptions.csv").write_text("subscriber,topic\n" + "\n".join(lines))
    found = source(tmp_path, "subscriptions", split_bytes=100)
    assert len(found.splits) > 20
    rows = rows_of(spark, found)
    assert [(row["_line"], row["_raw"]) for row in rows] == [
        (i, line) for i, line in enumerate(lines, start=2) if line.strip("\r")
    ]
    assert set(reasons(rows)) == {
        i for i, line in enumerate(lines, 2) if line.strip() and "," not in line
    }


def test_files_may_order_their_columns_differently(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "brokers"
    folder.mkdir()
    (folder / "a.csv").write_text("site,broker,extra\nx,b1,1\n")
    (folder / "b.csv").write_text("broker,capacity\nb2,5\nb3,0\n")
    (folder / "c.csv.gz").write_bytes(gzip.compress(b"broker\nb4\n\nb1\n"))
    rows = rows_of(spark, source(tmp_path, "brokers"))
    assert [tuple(row)[:4] for row in rows] == [
        ("b1", None, 1.0, "x"),
        ("b2", 5.0, 1.0, None),
        ("b3", 0.0, 1.0, None),
        ("b4", None, 1.0, None),
        ("b1", None, 1.0, None),
    ]
    assert [row["_reason"] for row in rows] == [
        None,
        None,
        "capacity: not a finite number above 0: 0",
        None,
        "duplicate of brokers/a.csv, line 2",
    ]


def test_json_lines(spark: SparkSession, tmp_path: Path) -> None:
    lines = {
        '{"topic": "t", "time": 1.5, "bytes": 3, "price": 7, "venue": "N"}': None,
        '{"topic": "t", "attributes": {"price": 1e1, "venue": "Q"}}': None,
        '{"topic": 12, "time": "2024-01-01T00:00:00+01:00", "bytes": 2.0}': None,
        '{"topic": "t", "price": 1, "attributes": {"price": 2}}': "price: one value as a column, "
        "another in attributes: 1, 2",
        '{"topic": "t", "attributes": [1]}': 'attributes: no JSON object: ["1"]',
        '{"topic": "t"}{"topic": "u"}': "broken JSON: Extra data",
        '{"topic": "t"': "broken JSON",
        '["t"]': "not a JSON object",
        '{"price": 1}': "topic: no value",
        '{"topic": "t", "bytes": 1.5}': "bytes: not a whole number from 0: 1.5",
        '{"topic": "t", "bytes": -1}': "bytes: not a whole number from 0: -1",
        '{"topic": "t", "time": "noon"}': f"{NO_TIME}: noon",
        '{"topic": "t", "time": NaN}': f"{NO_TIME}: NaN",
        '{"topic": "\\ud800"}': "half of a surrogate pair",
        '{"topic": "t", "bytes": 9223372036854775807}': "bytes: more than 1e+12",
        '{"topic": "t", "bytes": 1000000000000}': None,
        '{"topic": "t", "bytes": 1e300}': "bytes: not a whole number from 0: 1e300",
        "[" * 100_000: "broken JSON",
    }
    (tmp_path / "publications.jsonl").write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    rows = rows_of(spark, source(tmp_path, "publications"), ATTRIBUTES)
    for row, (text, expected) in zip(rows, lines.items(), strict=True):
        assert row["_raw"] == text
        assert (expected or "") in (row["_reason"] or ""), text
        assert (expected is None) == (row["_reason"] is None), row
    kept = [tuple(row)[:6] for row in rows if row["_reason"] is None]
    assert kept == [
        (1.5, None, "t", 3, "7", "N"),
        (None, None, "t", 0, "1e1", "Q"),
        (1704063600.0, None, "12", 2, None, None),
        (None, None, "t", 1000000000000, None, None),
    ]


def test_parquet_of_many_types(spark: SparkSession, tmp_path: Path) -> None:
    moment = dt.datetime(2024, 1, 1, 0, 0, 0, 250_000)
    columns: dict[str, pa.Array] = {
        "topic": pa.array(["t", "", "t", "t"]).dictionary_encode(),
        "time": pa.array([moment] * 4, pa.timestamp("ns")),
        "bytes": pa.array([1.0, 2.0, 2.5, math.nan]),
        "publisher": pa.array([1, 2, 3, None]),
        "price": pa.array([Decimal("1.50")] * 4),
        "venue": pa.array([b"N", b"Q", b"N", b"N"]),
        "unused": pa.array([moment] * 4, pa.timestamp("ns")),
    }
    pq.write_table(pa.table(columns), tmp_path / "publications.parquet", row_group_size=3)
    rows = rows_of(spark, source(tmp_path, "publications"), ATTRIBUTES)
    assert [tuple(row)[:3] for row in rows[:2]] == [
        (1704067200.25, "1", "t"),
        (1704067200.25, "2", None),
    ]
    assert [row[attribute_column(0)] for row in rows] == ["1.50"] * 4
    assert reasons(rows) == {
        2: "topic: no value",
        3: "bytes: not a whole number from 0: 2.5",
        4: "bytes: not a whole number from 0: nan",
    }
    assert json.loads(rows[2]["_raw"])["bytes"] == "2.5"


def test_parquet_numbers_stay_numbers(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"topic": ["t"], "time": [3], "price": [0.1]})
    pq.write_table(table, tmp_path / "publications.parquet")
    found = source(tmp_path, "publications")
    rows = read_rows(spark, found, tables.PUBLICATIONS, ATTRIBUTES)
    assert dict(rows.dtypes)[attribute_column(0)] == "double"
    assert rows.collect()[0][attribute_column(0)] == 0.1


def test_parquet_files_of_different_types_and_maps(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "publications"
    folder.mkdir()
    pq.write_table(pa.table({"topic": ["t"], "time": [1], "price": [5]}), folder / "a.parquet")
    maps = pa.array([[("price", 2.5)], None], pa.map_(pa.string(), pa.float64()))
    table = pa.table({"topic": [b"t", b"\xff"], "time": ["2024-01-01", "0"], "attributes": maps})
    pq.write_table(table, folder / "b.parquet")
    rows = rows_of(spark, source(tmp_path, "publications"), ATTRIBUTES)
    assert [(row["time"], row[attribute_column(0)]) for row in rows] == [
        (1.0, "5"),
        (1704067200.0, "2.5"),
        (None, None),
    ]
    assert [row["_source"] for row in rows] == ["publications/a.parquet"] + [
        "publications/b.parquet"
    ] * 2
    assert rows[2]["_reason"].startswith("not UTF-8")
    assert "ÿ" in rows[2]["_raw"]


def test_links_may_be_parallel_but_no_loops(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("a,b\nx,y\ny,x\nx,x\ny,z\nz,w\n")
    (tmp_path / "brokers.csv").write_text("broker\nx\ny\nz\n")
    found = find_sources(_with_subscriptions(tmp_path))
    brokers = read_rows(spark, found["brokers"], tables.BROKERS, PLAIN).select("broker")
    rows = read_rows(spark, found["links"], tables.LINKS, PLAIN)
    for end in ("a", "b"):
        rows = mark_unknown(rows, end, brokers, "brokers")
    assert reasons(rows.withColumn("_reason", reason_text()).collect()) == {
        4: "a link joins a broker to itself",
        6: "b: not in brokers: w",
    }


def test_missing_filters_are_equal(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "subscriptions.csv").write_text(
        'subscriber,topic,filter\ns,t,\ns,t,""\ns,t,x > 1\ns,t,x > 1\n,t,\n,t,\n'
    )
    assert reasons(rows_of(spark, source(tmp_path, "subscriptions"))) == {
        3: "duplicate of subscriptions.csv, line 2",
        5: "duplicate of subscriptions.csv, line 4",
        6: "subscriber: no value",
        7: "subscriber: no value",
    }


def test_a_table_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "subscriptions").mkdir()
    (tmp_path / "subscriptions" / "header.csv").write_text("subscriber,topic\n")
    (tmp_path / "subscriptions" / "empty.csv").write_text("")
    found = source(tmp_path, "subscriptions")
    assert rows_of(spark, found) == []
    entries = quarantined_files(spark, [found]).collect()
    assert [tuple(entry) for entry in entries] == [
        ("subscriptions", "subscriptions/empty.csv", None, None, *["the file is empty"] * 2)
    ]


def test_a_file_that_fails_in_a_task_is_named(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"topic": [f"topic{i}" for i in range(10_000)]})
    pq.write_table(table, tmp_path / "publications.parquet", compression="none")
    found = source(tmp_path, "publications")
    content = bytearray((tmp_path / "publications.parquet").read_bytes())
    content[4:5000] = b"\xff" * 4996
    (tmp_path / "publications.parquet").write_bytes(content)
    with pytest.raises(Exception, match="SplitError") as caught:
        read_rows(spark, found, tables.PUBLICATIONS, PLAIN).collect()
    error = as_input_error(caught.value, [found])
    assert error is not None
    assert str(error).startswith("publications.parquet: cannot be read")
    assert as_input_error(ValueError("other"), [found]) is None


@given(sizes=st.lists(st.integers(0, 50)))
def test_small_splits_share_a_task(sizes: list[int]) -> None:
    parts = [Split(str(i), "", "csv", (), 0, size, size) for i, size in enumerate(sizes)]
    shares = list(packed_splits(parts, size=60))
    assert [split for share in shares for split in share] == parts
    loads = [sum(split.size for split in share) for share in shares]
    assert all(load <= 60 for load in loads)
    assert all(a + b > 60 for a, b in pairwise(loads)) or 0 in sizes


@pytest.mark.parametrize(("files", "tasks"), [(1, 1), (40, 40), (64, 32), (128, 32), (256, 64)])
def test_much_to_read_has_larger_shares(files: int, tasks: int) -> None:
    parts = [Split(str(i), "", "csv", (), 0, SPLIT_BYTES, SPLIT_BYTES) for i in range(files)]
    assert len(list(packed_splits(parts, share_bytes(parts)))) == tasks


Broken = st.sampled_from(["short", "long", "quote", "encoding", "number", "nan", "negative", "gap"])


def corrupted(kind: str, line: str) -> bytes:
    name, capacity = line.rsplit(",", 1)
    broken: dict[str, str] = {
        "short": name,
        "long": line + ",more",
        "quote": f'"{line}',
        "encoding": f"é{line}",
        "number": f"{name},{capacity}x",
        "nan": f"{name},NaN",
        "negative": f"{name},-{capacity}",
        "gap": f",{capacity}",
    }
    return broken[kind].encode("latin-1")


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    names=st.lists(st.text("abé ,\"'", min_size=1), unique=True, max_size=20),
    data=st.data(),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_what_is_not_corrupted_is_kept(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    names: list[str],
    data: st.DataObject,
    end: str,
) -> None:
    folder = tmp_path_factory.mktemp("random")
    good = {name: i + 0.5 for i, name in enumerate(names)}
    lines, bad = [b"broker,capacity"], []
    for name, capacity in good.items():
        line = f'"{name.replace(chr(34), chr(34) * 2)}",{capacity}'
        lines.append(line.encode())
        for kind in data.draw(st.lists(Broken, max_size=2)):
            lines.append(corrupted(kind, line))
            bad.append(lines[-1].decode("latin-1"))
    (folder / "brokers.csv").write_bytes(end.encode().join(lines))
    found = source(folder, "brokers", split_bytes=data.draw(st.integers(5, 200)))
    rows = rows_of(spark, found)
    assert {row["broker"]: row["capacity"] for row in rows if row["_reason"] is None} == good
    assert [row["_raw"] for row in rows if row["_reason"]] == bad


def _with_subscriptions(folder: Path) -> Path:
    (folder / "subscriptions.csv").write_text(SUBSCRIPTIONS)
    return folder
