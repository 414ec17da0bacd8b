"""Times: read as Python's datetime reads them, with the zones they were written in."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from fanplan.data.ingest.points import observed_times
from fanplan.data.read.rows import read_rows, reason_text
from fanplan.data.read.sources import find_sources
from fanplan.data.read.times import as_seconds, zone_in
from fanplan.workload.description import Description
from fanplan.workload.tables import PUBLICATIONS
from fanplan.workload.times import Clock, Moment

FORMATS = (
    "%d/%m/%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%Y%m%d%H%M%S",
    "%Y%m%d%H%M%S.%f",
    "%m/%d/%y %I:%M:%S %p",
    "%a, %d %b %Y %H:%M:%S %z",
    "%A %d %B %Y, %H.%M Uhr",
    "%d/%b/%Y:%H:%M:%S %z",
    "%a %b %d %H:%M:%S %z %Y",
    "%Y-%jT%H:%M:%S.%f",
    "at %H o'clock on %Y-%m-%d (100%%)",
    "%Y-%d-%m",
)
BERLIN = "Europe/Berlin"
Moments = st.datetimes(dt.datetime(2000, 1, 1), dt.datetime(2068, 12, 31))
Offsets = st.integers(-14 * 4, 14 * 4).map(lambda n: dt.timezone(n * dt.timedelta(minutes=15)))


@st.composite
def iso_texts(draw: st.DrawFn) -> str:
    """A time in one of the ways of ISO 8601."""
    when = draw(Moments)
    if draw(st.integers(0, 9)) == 0:
        return f"{when:%Y-%m-%d}"
    basic, fraction = draw(st.booleans()), draw(st.sampled_from(["", ".5", ",25", ".123456789"]))
    zone = draw(st.sampled_from(["", "Z", "+02", "-0330", "+05:45"]))
    if basic:
        text = f"{when:%Y%m%dT%H%M%S}{fraction}{zone}"
    elif draw(st.booleans()):
        text = f"{when:%Y-%m-%d}{draw(st.sampled_from('T '))}{when:%H:%M:%S}{fraction}{zone}"
    else:
        text = f"{when:%Y-%m-%d}T{when:%H:%M}{zone}"
    return text.lower() if draw(st.booleans()) else text


def seconds(when: dt.datetime, zone: str) -> float:
    """Of a time that says no zone, in this one."""
    return (when if when.tzinfo else when.replace(tzinfo=ZoneInfo(zone))).timestamp()


@settings(max_examples=8)
@given(texts=st.lists(iso_texts(), min_size=30, max_size=60))
def test_iso_8601_is_read_as_elsewhere(spark: SparkSession, texts: list[str]) -> None:
    text = F.col("text")
    found = spark.createDataFrame([(text,) for text in texts], "text string").select(
        as_seconds(text, "string", Clock()).alias("utc"),
        as_seconds(text, "string", Clock(zone=BERLIN)).alias("berlin"),
        zone_in(text, "string", Clock(zone=BERLIN), None).alias("zone"),
    )
    for row, given_text in zip(found.collect(), texts, strict=True):
        when = dt.datetime.fromisoformat(given_text.upper())
        assert row["utc"] == pytest.approx(seconds(when, "UTC"), abs=1e-6), given_text
        assert row["berlin"] == pytest.approx(seconds(when, BERLIN), abs=1e-6), given_text
        assert (row["zone"] == BERLIN) == (when.tzinfo is None), given_text
        told = Moment(row["berlin"], row["zone"]).told
        assert dt.datetime.fromisoformat(str(told)).timestamp() == pytest.approx(row["berlin"])


@settings(max_examples=8)
@given(times=st.lists(st.tuples(Moments, Offsets), min_size=10, max_size=20))
def test_formats_are_read_as_strptime_reads_them(
    spark: SparkSession, times: list[tuple[dt.datetime, dt.timezone]]
) -> None:
    given_texts = [
        tuple(when.replace(tzinfo=zone).strftime(format) for format in FORMATS)
        for when, zone in times
    ]
    names = [f"f{i}" for i in range(len(FORMATS))]
    clocks = [Clock(format, BERLIN) for format in FORMATS]
    rows = spark.createDataFrame(given_texts, ", ".join(f"{name} string" for name in names))
    read = [as_seconds(F.col(n), "string", c).alias(n) for n, c in zip(names, clocks, strict=True)]
    zones = [zone_in(F.col(n), "string", c, None) for n, c in zip(names, clocks, strict=True)]
    found = rows.select(F.array(*read).alias("seconds"), F.array(*zones).alias("zones")).collect()
    for texts, row in zip(given_texts, found, strict=True):
        for text, format, own, zone in zip(texts, FORMATS, *row, strict=True):
            expected = dt.datetime.strptime(text, format)
            assert own == pytest.approx(seconds(expected, BERLIN), abs=1e-6), (format, text)
            assert zone == (f"{expected:%z}" if expected.tzinfo else BERLIN)


def frame(spark: SparkSession, folder: Path, clock: Clock) -> DataFrame:
    (folder / "subscriptions.csv").write_text("subscriber,topic\ns,t\n")
    source = find_sources(folder)["publications"]
    return read_rows(spark, source, PUBLICATIONS, Description("test", clock=clock))


def read(spark: SparkSession, folder: Path, clock: Clock) -> list[Row]:
    rows = frame(spark, folder, clock).withColumn("_reason", reason_text())
    return rows.orderBy("_source", "_line").collect()


def test_what_is_no_time_says_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    plain = "time: not seconds or ISO 8601 (another way to write times: time_format)"
    late = 'time: too large for seconds (for milliseconds: time_unit = "ms")'
    texts = {
        "1714550400.5": None,
        "-1": None,
        "1714550400000": late,
        "noon": plain,
        "2024-02-30": plain,
        "2024-05-01T25:00": plain,
        "2024-05-01T12:00:00 CET": plain,
        "2024-05-01T12:00:00+2": plain,
        "12:00": plain,
        "9999-12-31": "time: more than 1e+11 seconds from 1970",
        "01/05/2024 12:00:00": plain,
    }
    (tmp_path / "publications.csv").write_text(
        "topic,time\n" + "".join(f"t,{text}\n" for text in texts)
    )
    for row, (text, reason) in zip(read(spark, tmp_path, Clock()), texts.items(), strict=True):
        assert row["_reason"] == (reason and f"{reason}: {text}")
    # With a format nothing else is a time: 2024-05-01 could be in May or in January.
    found = read(spark, tmp_path, Clock("%d/%m/%Y %H:%M:%S"))
    assert [row["time"] for row in found] == [None] * 10 + [1714564800.0]
    assert found[0]["_reason"] == "time: not a time like %d/%m/%Y %H:%M:%S: 1714550400.5"
    found = read(spark, tmp_path, Clock(unit="ms"))
    assert [row["time"] for row in found[:3]] == [1714550.4005, -0.001, 1714550400.0]
    (tmp_path / "publications.csv").write_text("topic,time\nt,1e30\n")
    (far,) = read(spark, tmp_path, Clock(unit="ms"))
    assert far["_reason"] == "time: more than 1e+11 seconds from 1970: 1e30"


def test_times_of_parquet_keep_their_zone(spark: SparkSession, tmp_path: Path) -> None:
    moment = dt.datetime(2024, 5, 1, 12, 0, 0, 250_000)
    folder = tmp_path / "publications"
    folder.mkdir()

    def written(*types: pa.DataType) -> list[tuple[float, str]]:
        for i, type_ in enumerate(types):
            when = moment if pa.types.is_timestamp(type_) else 7
            table = pa.table({"topic": ["t"], "TIME": pa.array([when], type_)})
            pq.write_table(table, folder / f"{i}.parquet")
        return [(row["time"], row["zone"]) for row in read(spark, tmp_path, Clock(zone=BERLIN))]

    utc, berlin = 1714564800.25, 1714557600.25
    assert written(pa.timestamp("ns")) == [(berlin, BERLIN)]
    assert written(pa.timestamp("ms", "Asia/Tokyo")) == [(utc, "Asia/Tokyo")]
    both = (pa.timestamp("ms", "Asia/Tokyo"), pa.timestamp("us", "UTC"))
    assert written(*both) == [(utc, "UTC")] * 2
    mixed = (pa.timestamp("us", "Asia/Tokyo"), pa.timestamp("s"), pa.int64())
    assert written(*mixed) == [(utc, "+0900"), (berlin - 0.25, BERLIN), (7.0, None)]


def test_the_first_and_the_last_keep_their_zones(spark: SparkSession, tmp_path: Path) -> None:
    times = ("2024-05-01T12:00:00-03:00", "2024-05-01 12:00", "2024-05-01T08:00:00.5z", "")
    lines = [f"t,{time}\n" for time in times]
    (tmp_path / "publications.csv").write_text("topic,time\n" + "".join(lines))
    found = observed_times(frame(spark, tmp_path, Clock(zone="Asia/Tokyo")))
    assert found is not None
    assert found.first.told == "2024-05-01T12:00:00+09:00"
    assert found.last.told == "2024-05-01T12:00:00-03:00"
    assert found.seconds == 12 * 3600
    nothing = spark.createDataFrame([(None, None)], "time double, zone string")
    assert observed_times(nothing) is None


def test_a_moment_without_a_zone_is_a_number() -> None:
    assert Moment(7.5).told == 7.5
    assert Moment(0.25, "+0530").told == "1970-01-01T05:30:00.250000+05:30"
    assert Moment(-7e10, "UTC").told == -7e10  # Before the year 1.
