"""One row cannot end or corrupt an ingest: what is out of bounds is set apart, and sums hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import fanplan
from fanplan.api import Dataset, Engine
from fanplan.data.reader import read_manifest, read_stage

ENGINE = Engine("local[2]")
SPACE = """
seconds = 1.0
{grid}
[attributes]
price = {{ type = "number", min = 0.0, max = 100.0 }}
[topics.t]
attributes = ["price"]
"""
SUBSCRIPTIONS = "subscriber,topic\na,t\nb,t\n"
BEYOND = {
    "publications": [f"0,t,1,{size}" for size in (2**63 - 1, 2**63, 10**400, 1e13)]
    + [f"{time},t,1,1" for time in (1e308, -1e308, 2e11, -2e11)],
    "advertisements": [f"p{i},t,{rate}" for i, rate in enumerate((1.7e308, 1e16, 4e-16, 1e-320))],
    "brokers": ["w,1e300,1", "x,1,1e300"],
    "links": ["a,b,1e300,1,1", "b,c,1,1e300,1", "c,d,1,1,1e300"],
}
FINE = {
    "publications": ["0,t,1,7", "2,t,1,1000000000000", *["2,t,1,0"] * 8],
    "advertisements": [f"q{i},t,{rate}" for i, rate in enumerate((0, 4e-13, 1e12, 1))],
    "brokers": ["a,1,1", "b,1e15,0", "c,1e-9,1", "d,1,1"],
    "links": ["a,b,1,1,1", "b,c,1e15,1e15,0", "c,d,1,1,1"],
}
HEADERS = {
    "publications": "time,topic,price,bytes",
    "advertisements": "publisher,topic,rate",
    "brokers": "broker,capacity,cost",
    "links": "a,b,latency_ms,bandwidth,cost",
}


def ingested(folder: Path, toml: str, **tables: str) -> Dataset:
    """The dataset of these tables, each a text."""
    folder.mkdir(parents=True)
    (folder / "workload.toml").write_text(toml)
    for name, text in {"subscriptions": SUBSCRIPTIONS, **tables}.items():
        (folder / f"{name}.csv").write_text(text)
    return fanplan.ingest(folder, folder.with_suffix(".dataset"), engine=ENGINE)


def lines(name: str, *rows: str) -> str:
    return "".join(f"{row}\n" for row in (HEADERS[name], *rows))


@pytest.mark.parametrize("grid", ["", "grid = 'uniform'"])
@pytest.mark.parametrize("table", BEYOND)
def test_a_row_beyond_its_bounds_is_set_apart_and_the_others_stay(
    spark: SparkSession, tmp_path: Path, table: str, grid: str
) -> None:
    told = {"brokers": lines("brokers", *FINE["brokers"])} if table == "links" else {}
    told[table] = lines(table, *FINE[table], *BEYOND[table])
    dataset = ingested(tmp_path / "world", SPACE.format(grid=grid), **told)
    found = fanplan.quarantine(dataset.path, table=table, rows=100).json()["rows"]
    assert [row["raw"] for row in found] == BEYOND[table]
    counted = next(t for t in read_manifest(dataset.path).tables if t.name == table)
    assert counted.kept == len(FINE[table])


@pytest.mark.parametrize("grid", ["", "grid = 'uniform'"])
@pytest.mark.parametrize("toml", [SPACE, "seconds = 1.0\n{grid}"])
def test_the_largest_sizes_add_up(
    spark: SparkSession, tmp_path: Path, toml: str, grid: str
) -> None:
    """Their sum is beyond what a double counts one by one, and what decimals held before."""
    rows = [f"{at},t,1,1000000000000" for at in range(20_000)]
    sent = lines("publications", *rows, "0,t,1,1000")
    dataset = ingested(tmp_path / "world", toml.format(grid=grid), publications=sent)
    for stage in ("classes", "flows"):
        assert read_stage(dataset.path, stage)["bytes"].to_pylist() == [2e16 + 1000]


def test_small_and_large_rates_add_up(spark: SparkSession, tmp_path: Path) -> None:
    sent = lines("advertisements", "p,t,4e-13", "q,u,1e12", "r,u,1e-3")
    dataset = ingested(
        tmp_path / "world", "", advertisements=sent, subscriptions="subscriber,topic\na,t\nb,u\n"
    )
    assert read_stage(dataset.path, "flows")["messages"].to_pylist() == [4e-13, 1e12 + 1e-3]


@pytest.mark.parametrize("times", [("0", "1e-320"), ("-99999999999", "99999999999"), ("5", "5")])
def test_what_is_written_can_be_read(
    spark: SparkSession, tmp_path: Path, times: tuple[str, str]
) -> None:
    sent = lines("publications", *(f"{time},t,1,1" for time in times))
    dataset = ingested(tmp_path / "world", "", publications=sent)
    plan = fanplan.channels(dataset, 1).save(tmp_path / "plan")
    assert fanplan.check(plan, dataset).ok
