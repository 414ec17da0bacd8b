"""Publications that tasks read on their own: points and faults are those of the long way."""

from __future__ import annotations

import csv
import io
import json
import math
import random
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from fanplan.data.ingest.points import to_points
from fanplan.data.read import scan
from fanplan.data.read.plain import Plainly, PlainReader
from fanplan.data.read.rows import layout_of, raw_text, read_rows, reason_text
from fanplan.data.read.sources import find_sources
from fanplan.workload.description import Description, TopicEntry
from fanplan.workload.space import PLAIN, CategoryAttribute, NumberAttribute, Space
from fanplan.workload.tables import PUBLICATIONS
from fanplan.workload.times import Clock

PRICE = NumberAttribute("price", -5.0, 100.0)
VENUE = CategoryAttribute("venue", ("N", "Q", "Zürich"))
MARKET = Description(
    "market",
    topic_syntax="nats",
    attributes={"price": PRICE, "venue": VENUE},
    topics=(TopicEntry("quotes.*", 1), TopicEntry("quotes.ibm", 2), TopicEntry("alerts", 0)),
    spaces=(PLAIN, Space((VENUE, PRICE), (3, 10)), Space((PRICE,), (10,))),
)
VALUES: dict[str, list[str]] = {
    "time": [
        "",
        "0",
        "-0",
        "1700000000.123",
        "0.1234567890123456789",
        "1e3",
        "1E400",
        "1e11",
        "nan",
        " 5",
        "5 ",
        "+7",
        "2024-02-29T12:00:00Z",
        "2023-02-29T12:00:00Z",
        "2024-05-01 08:09:10",
        "2024-05-01T08:09:10.123456+02:00",
        "2024-05-01",
        "20240501T080910Z",
        "soon",
        "1,5",
    ],
    "publisher": ["", "p", "Jürgen", 'a "b" c', "x" * 50, "x" * 201, "a,b", "\u2028"],
    "topic": [
        "",
        "quotes.ibm",
        "quotes.x",
        "quotes.é",
        "alerts",
        "quotes.*",
        "quotes..x",
        "other",
        "quotes. x",
        "alerts\u00a0",
    ],
    "bytes": ["", "0", "12", "012", "-1", "12.0", "1e2", " 3", "9" * 15, "9" * 20, "none"],
    "price": [
        "",
        "1",
        "99.999999999999999999",
        "100",
        "100.0000001",
        "-5",
        "-0.0",
        "1e-320",
        "1d",
        "0x1p3",
        ".5",
        "5.",
        "1e",
        "inf",
        "3.141592653589793",
        "123456789012345678e-17",
    ],
    "venue": ["", "N", "Q", "Zürich", "n", " N", "hold"],
}
USUAL = {
    "time": "1.5",
    "publisher": "p",
    "topic": "quotes.x",
    "bytes": "5",
    "price": "7.25",
    "venue": "N",
}
ROWS = 1500


def drawn(seed: int) -> list[dict[str, str]]:
    """Rows with a value or two that are special, and every special value at least once."""
    draw = random.Random(seed)
    every = [USUAL | {name: value} for name, values in VALUES.items() for value in values]
    some = [
        USUAL
        | {
            name: draw.choice(VALUES[name])
            for name in draw.sample(list(VALUES), draw.randint(0, 2))
        }
        for _ in range(ROWS - len(every))
    ]
    return every + some


def csv_lines(rows: list[dict[str, str]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(VALUES), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    odd = [
        "",
        "\r",
        "1,p",
        "1,p,quotes.x,5,7,N,more",
        '1,"p,quotes.x,5,7,N',
        '1,p"q,alerts,,,',
        '"1","p","quotes.x","5","7","N"',
        '1,"p"x,alerts,,,',
        "1,p,alerts,,,\r",
        "1,p\0,alerts,,,",
        "1,p\tq,alerts,,,",
        ',,"",,,',
        "1,p,quotes.x,5,7,N",
    ]
    lines = text.getvalue().encode() + "\n".join(odd).encode()
    return lines + b"\n1,\xff,alerts,,,\n1,p,alerts,,,"


def json_lines(rows: list[dict[str, str]]) -> bytes:
    """Values as texts, or as numbers where they are; and lines that are no such object."""
    draw = random.Random(1)
    lines = [json.dumps(row, ensure_ascii=draw.random() < 0.1) for row in rows]
    lines += [line.replace('"1.5"', "1.5").replace('"7.25"', "7.25e0") for line in lines[:300]]
    lines += [
        "",
        "{}",
        "[]",
        "nothing",
        '{"topic": "alerts"}',
        '{ "topic" : "alerts" , "time" : null }\r',
        '{"topic": "alerts", "time": 01}',
        '{"topic": "alerts", "time": 1.}',
        '{"topic": "alerts",}',
        '{"topic": "alerts"} x',
        '{"topic": "alerts", "TIME": 5}',
        '{"Topic": "alerts", "topic": "x"}',
        '{"topic": "alerts", "more": {"a": [1]}}',
        '{"topic": "alerts", "more": true}',
        '{"topic": "alerts", "time": true}',
        '{"topic": "alerts", "time": 1, "time": 2}',
        '{"topic": "quotes.ibm", "attributes": {"price": 3}}',
        '{"topic": "alerts", "attributes": null}',
        '{"topic": "alerts", "publisher": "a\\u00e4"}',
        '{"topic": "alerts", "publisher": "a\tb"}',
        '{"topic": "alerts", "time": NaN}',
        '{"topic": "alerts", "time": -}',
        '{"topic": 5, "time": -0}',
        '{"topic": "alerts", "time": +1}',
        '{"topic": "alerts", "time": 1e5}',
        '{"topic": "alerts"',
        '{"topic": "alerts", "time": nul',
        '{"topic": "alerts", "bytes": 7.0}',
        '{"töpic": 1}',
    ]
    return "\n".join(lines).encode() + b'\n{"topic": "alerts", "publisher": "\xff"}'


def parquet_table(rows: list[dict[str, str]]) -> pa.Table:
    """Texts that are packed; the last ones also hold one that is too long and one not UTF-8."""
    columns: dict[str, Any] = {
        name: pa.array([row[name] or None for row in rows], pa.string())
        for name in ("topic", "venue")
    }
    texts = [*(row["publisher"].encode() for row in rows[:-3]), b"x" * 300_000, b"\xff", None]
    columns["publisher"] = pa.array(texts, pa.binary()).view(pa.string())
    draw = np.random.default_rng(2)
    special = [math.nan, math.inf, -0.0, 100.0, 100.1, 1e11, 1e300, -5.0]
    for name in ("time", "price"):
        value = np.where(draw.random(len(rows)) < 0.3, draw.choice(special, len(rows)), 3.5)
        columns[name] = pa.array(value, mask=draw.random(len(rows)) < 0.1)
    size = draw.choice([-1, 0, 7, 2**62], len(rows))
    columns["bytes"] = pa.array(size, mask=draw.random(len(rows)) < 0.1)
    return pa.table(columns)


def found(rows: DataFrame) -> tuple[list[str], list[str]]:
    """Points, and what is said of rows that are none; in any order."""
    told = rows.select("*", reason_text().alias("why"), raw_text(rows).alias("text")).toArrow()
    points: list[str] = []
    lost: list[str] = []
    for row in told.to_pylist():
        if row["why"] is None:
            points.append(repr([row[n] for n in told.column_names if n[0] != "_"][:-2]))
        else:
            lost.append(repr([row[n] for n in ("_source", "_line", "text", "why")]))
    return sorted(points), sorted(lost)


def same_both_ways(
    spark: SparkSession, folder: Path, description: Description = MARKET, least: int = 1
) -> None:
    """The short way and the long way find the same, and the short way is taken by many rows."""
    (folder / "subscriptions.csv").write_text("subscriber,topic\ns,alerts\n")
    source = find_sources(folder, description.attributes, split_bytes=20_000)["publications"]
    points = folder / "points"
    points.mkdir()
    long = found(to_points(read_rows(spark, source, PUBLICATIONS, description), description))
    rows = read_rows(spark, source, PUBLICATIONS, description, Plainly(points))
    rest = to_points(rows, description)
    other, lost = found(rest)
    short = chain.from_iterable(pq.read_table(file).to_pylist() for file in points.iterdir())
    plainly = [repr(list(row.values())[:-1]) for row in short]
    assert len(plainly) >= least
    assert lost == long[1]
    assert sorted([*plainly, *other]) == long[0]


@pytest.mark.parametrize("clock", [Clock(), Clock(zone="Europe/Zurich", unit="ms")])
def test_csv(spark: SparkSession, tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "publications.csv").write_bytes(csv_lines(drawn(3)))
    description = Description(**{**vars(MARKET), "clock": clock})
    same_both_ways(spark, tmp_path, description, least=300)


def test_json_lines(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "publications.jsonl").write_bytes(json_lines(drawn(4)))
    same_both_ways(spark, tmp_path, least=300)


def test_parquet(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(parquet_table(drawn(5)), tmp_path / "publications.parquet", row_group_size=400)
    same_both_ways(spark, tmp_path, least=100)


def test_times_of_parquet_files(spark: SparkSession, tmp_path: Path) -> None:
    times = pa.array([0, 1_700_000_000_123_456, None], pa.timestamp("us", "Europe/Zurich"))
    table = pa.table({"time": times, "topic": ["alerts"] * 3})
    pq.write_table(table, tmp_path / "publications.parquet")
    same_both_ways(spark, tmp_path, least=3)


def test_nothing_is_plain_where_times_have_a_format_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "publications.csv").write_text("time,topic\n1,alerts\n")
    (tmp_path / "subscriptions.csv").write_text("subscriber,topic\ns,alerts\n")
    source = find_sources(tmp_path)["publications"]
    for clock, possible in ((Clock(), True), (Clock(format="%Y"), False)):
        description = Description("", clock=clock)
        layout = layout_of(source, PUBLICATIONS, description)
        reader = PlainReader(layout, description, pa.schema([]), Plainly(tmp_path))
        assert reader.possible is possible


# ---- values


def number(text: str) -> tuple[int, float]:
    data = np.frombuffer(text.encode(), np.uint8)
    status, value = scan.read_number(data, 0, len(data))
    return int(status), float(value)


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["r", ".3f", ".17e", "g"]))
def test_numbers_are_read_exactly_or_left_to_others(value: float, style: str) -> None:
    text = repr(value) if style == "r" else format(value, style)
    status, read = number(text)
    if status == scan.FINE:
        assert (read, math.copysign(1, read)) == (float(text), math.copysign(1, float(text)))
    else:
        assert status in (scan.HARD, scan.OTHER)


@given(st.datetimes(datetime(1890, 1, 1), datetime(2210, 1, 1)), st.booleans())
def test_iso_times(time: datetime, zoned: bool) -> None:
    data = np.frombuffer((time.isoformat() + "Z" * zoned).encode(), np.uint8)
    status, seconds = scan.iso_8601(data, 0, len(data))
    if not 1900 <= time.year < 2200:
        assert status == scan.OTHER
        return
    micros = (time.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
        microseconds=1
    )
    assert (status, seconds) == (scan.ZONED if zoned else scan.LOCAL, micros / 1e6)


@given(st.lists(st.text(max_size=3), max_size=40), st.integers(1, 60))
def test_texts_as_codes(texts: list[str], times: int) -> None:
    """More different texts than the table first has room for, too."""
    texts = [f"{text}{n}" for text in texts for n in range(times)] + texts
    encoded = [text.encode() for text in texts]
    data = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
    length = np.array([len(text) for text in encoded], np.int32)
    start = (np.cumsum(length) - length).astype(np.int32)
    codes, firsts = scan.encode_texts(data, start, length)
    different = [texts[row] for row in firsts]
    assert len(set(different)) == len(different)
    assert [different[code] if code >= 0 else "" for code in codes] == texts
