"""Reading publications beside DuckDB and Polars: typed, checked, rejects kept, written as Parquet.

    python benchmarks/readers.py [--rows 20000000] [--only csv json parquet] [--data DIR] [--quick]

The same file for all three, with two threads each: seconds, publisher, topic, bytes, a price that
has a domain and a side that is one of two. Some rows cannot be used; they go into a table of their
own, with their text and a reason. All must keep and refuse equally many. Fanplan also hashes what
it reads and writes, and knows the line of every row. The best of a few runs counts, by the clock;
processor seconds are beside it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

os.environ.setdefault("POLARS_MAX_THREADS", "2")

import duckdb
import numpy as np
import polars as pl
import psutil
from pyspark.sql import SparkSession

from fanplan.core.progress import quiet
from fanplan.data.ingest.ingest import publication_stage
from fanplan.data.ingest.run import IngestRun
from fanplan.data.ingest.store import StageStore
from fanplan.data.quarantine import LossRule
from fanplan.data.read.sources import find_sources
from fanplan.data.spark import running
from fanplan.workload.description import load_description

FORMATS = ("csv", "json", "parquet")
ENDINGS = {"csv": ".csv", "json": ".jsonl", "parquet": ".parquet"}
TOPICS, PUBLISHERS, LOST, PART = 2000, 500, 0.001, 1_000_000
NAMES = ("time", "publisher", "topic", "bytes", "price", "side")
PRICE, SIDES = 1000.0, ("buy", "sell")
TOLD = f"""\
topic_syntax = "nats"
[attributes]
price = {{ type = "number", min = 0.0, max = {PRICE} }}
side = {{ type = "category", values = ["buy", "sell"] }}
[topics."stock.*"]
attributes = ["price", "side"]
"""
Counts = tuple[int, int]
"""Rows that are kept, and rows that are refused."""


# ---- what is read


def drawn(rows: int, seed: int) -> pl.DataFrame:
    """Publications as text, of which a thousandth has a value that cannot be used."""
    draw = np.random.default_rng(seed)
    good = pl.DataFrame(
        {
            "time": np.round(1.7e9 + seed * PART / 1000 + np.arange(rows) / 1000, 3),
            "publisher": draw.integers(0, PUBLISHERS, rows),
            "topic": np.minimum(draw.zipf(1.3, rows), TOPICS),
            "bytes": draw.integers(40, 1500, rows),
            "price": np.round(draw.random(rows) * PRICE, 2),
            "side": draw.integers(0, 2, rows),
        }
    ).select(
        pl.col("time").cast(pl.String),
        pl.format("p{}", "publisher").alias("publisher"),
        pl.format("stock.{}", "topic").alias("topic"),
        pl.col("bytes").cast(pl.String),
        pl.col("price").cast(pl.String),
        pl.when(pl.col("side") == 0).then(pl.lit("buy")).otherwise(pl.lit("sell")).alias("side"),
    )
    wrong = {"bytes": "-1", "price": "1000.5", "side": "hold", "topic": ""}
    which = pl.Series(np.where(draw.random(rows) < LOST, draw.integers(0, len(wrong), rows), -1))
    return good.with_columns(
        pl.when(which == n).then(pl.lit(text)).otherwise(pl.col(name)).alias(name)
        for n, (name, text) in enumerate(wrong.items())
    )


def as_numbers(rows: pl.DataFrame) -> pl.DataFrame:
    numbers = {"time": pl.Float64, "bytes": pl.Int64, "price": pl.Float64}
    return rows.with_columns(
        *(pl.col(name).cast(type_) for name, type_ in numbers.items()),
        pl.when(pl.col("topic") != "").then("topic"),
    )


def write_workload(folder: Path, format_: str, rows: int) -> Path:
    """A workload of one file of publications."""
    place = folder / f"{format_}-{rows}"
    if place.exists():
        return place
    unfinished = place.with_suffix(".partial")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    (unfinished / "workload.toml").write_text(TOLD)
    (unfinished / "subscriptions.csv").write_text("subscriber,topic,filter\na,stock.1,\n")
    file = unfinished / f"publications{ENDINGS[format_]}"
    parts = ((drawn(min(PART, rows - at), at // PART)) for at in range(0, rows, PART))
    if format_ == "parquet":
        pl.concat([as_numbers(part).lazy() for part in parts]).sink_parquet(
            file, compression="snappy"
        )
    else:
        with file.open("wb") as stream:
            for n, part in enumerate(parts):
                write_text(part, stream, format_, header=n == 0)
    return unfinished.rename(place)


def write_text(part: pl.DataFrame, stream: IO[bytes], format_: str, header: bool) -> None:
    """Rows as text."""
    if format_ == "json":
        as_numbers(part).write_ndjson(stream)
    else:
        part.write_csv(stream, include_header=header)


# ---- who reads


def with_fanplan(spark: SparkSession, workload: Path, out: Path) -> Counts:
    description = load_description(workload)
    with StageStore(out, quiet()) as store:
        sources = find_sources(workload, description.attributes)
        run = IngestRun(spark, store, description, sources, LossRule(1.0, ""))
        stage = publication_stage(run)["publications"]
        return stage.rows, stage.quarantined


def with_duckdb(workload: Path, out: Path, format_: str) -> Counts:
    """One scan of text, parted as it is written; two of Parquet, where that takes less time."""
    file = next(workload.glob("publications.*"))
    text = ", ".join(f"'{name}': 'VARCHAR'" for name in NAMES)
    source = {
        "csv": f"read_csv('{file}', header = true, columns = {{{text}}}, store_rejects = true)",
        "json": f"read_json('{file}', format = 'newline_delimited', columns = {{{text}}},"
        " ignore_errors = true)",
        "parquet": f"read_parquet('{file}')",
    }[format_]
    whole = f"concat_ws(',', {', '.join(NAMES)})"
    rows = f"""(SELECT *, {DUCKDB_REASON} AS reason,
        CASE WHEN reason IS NOT NULL THEN {whole} END AS raw FROM (SELECT
        TRY_CAST(time AS DOUBLE) AS t, publisher, nullif(topic, '') AS topic,
        TRY_CAST(bytes AS BIGINT) AS size, TRY_CAST(price AS DOUBLE) AS x0,
        CASE side WHEN 'buy' THEN 0.0 WHEN 'sell' THEN 1.0 END AS x1,
        time, bytes, price, side FROM {source}))"""
    good, bad = "t AS time, publisher, topic, size AS bytes, x0, x1", "raw, reason"
    out.mkdir()
    places = [f"{out}/kept.parquet", f"{out}/lost.parquet"]
    parts = [
        f"(SELECT {good} FROM {rows} WHERE reason IS NULL) TO '{places[0]}'",
        f"(SELECT {bad} FROM {rows} WHERE reason IS NOT NULL) TO '{places[1]}'",
    ]
    if format_ != "parquet":
        places = [f"{out}/rows/ok=true/*.parquet", f"{out}/rows/ok=false/*.parquet"]
        every = f"{good}, {bad}, reason IS NULL AS ok"
        parted = f"'{out}/rows' (FORMAT parquet, PARTITION_BY (ok))"
        parts = [f"(SELECT {every} FROM {rows}) TO {parted}"]
    with duckdb.connect(config={"threads": 2, "preserve_insertion_order": False}) as database:
        for part in parts:
            database.execute(f"COPY {part}")
        kept, lost = (
            database.execute(f"SELECT count(*) FROM '{place}'").fetchall()[0][0] for place in places
        )
    return kept, lost


DUCKDB_REASON = f"""CASE
    WHEN time IS NOT NULL AND NOT coalesce(isfinite(t), false) THEN 'time: not seconds'
    WHEN topic IS NULL THEN 'topic: no value'
    WHEN bytes IS NOT NULL AND NOT coalesce(size >= 0, false) THEN 'bytes: not a whole number'
    WHEN NOT coalesce(x0 BETWEEN 0 AND {PRICE}, false) THEN 'price: not in its domain'
    WHEN x1 IS NULL THEN 'side: not one of its values' END"""


def with_polars(workload: Path, out: Path, format_: str) -> Counts:
    """Rows with a reason and the others from one plan, so that what both need is read once."""
    file = next(workload.glob("publications.*"))
    texts = dict.fromkeys(NAMES, pl.String)
    if format_ == "csv":
        rows = pl.scan_csv(file, schema=texts, truncate_ragged_lines=True)
    elif format_ == "json":
        rows = pl.scan_ndjson(file, schema=texts, ignore_errors=True)
    else:
        rows = pl.scan_parquet(file)
    side = pl.col("side")
    typed = rows.with_columns(
        pl.col("time").cast(pl.Float64, strict=False).alias("t"),
        pl.col("bytes").cast(pl.Int64, strict=False).alias("size"),
        pl.col("price").cast(pl.Float64, strict=False).alias("x0"),
        pl.when(side == "buy").then(0.0).when(side == "sell").then(1.0).alias("x1"),
    ).with_columns(polars_reason().alias("reason"))
    out.mkdir()
    kept = typed.filter(pl.col("reason").is_null()).select(
        pl.col("t").alias("time"), "publisher", "topic", pl.col("size").alias("bytes"), "x0", "x1"
    )
    raw = pl.concat_str([pl.col(name).cast(pl.String) for name in NAMES], separator=",",
                        ignore_nulls=True)  # fmt: skip
    lost = typed.filter(pl.col("reason").is_not_null()).select(raw.alias("raw"), "reason")
    files = [out / "kept.parquet", out / "lost.parquet"]
    sinks = [
        part.sink_parquet(to, compression="snappy", lazy=True)
        for part, to in zip((kept, lost), files, strict=True)
    ]
    pl.collect_all(sinks, engine="streaming")
    counts = [pl.scan_parquet(to).select(pl.len()).collect().item() for to in files]
    return counts[0], counts[1]


def polars_reason() -> pl.Expr:
    size, price = pl.col("size"), pl.col("x0")
    return (
        pl.when(pl.col("time").is_not_null() & ~pl.col("t").is_finite().fill_null(False))
        .then(pl.lit("time: not seconds"))
        .when(pl.col("topic").is_null() | (pl.col("topic") == ""))
        .then(pl.lit("topic: no value"))
        .when(pl.col("bytes").is_not_null() & ~(size >= 0).fill_null(False))
        .then(pl.lit("bytes: not a whole number"))
        .when(~price.is_between(0, PRICE).fill_null(False))
        .then(pl.lit("price: not in its domain"))
        .when(pl.col("x1").is_null())
        .then(pl.lit("side: not one of its values"))
    )


# ---- beside each other


def processor_seconds() -> float:
    """Of this process and all that it started."""
    own = psutil.Process()
    spent = 0.0
    for process in (own, *own.children(recursive=True)):
        with suppress(psutil.Error):
            times = process.cpu_times()
            spent += times.user + times.system
    return spent


def measured(
    work: Callable[[Path], Counts], folder: Path, times: int
) -> tuple[float, float, Counts]:
    """The shortest time by the clock, with its processor seconds, and what came of it."""
    found = []
    for _ in range(times):
        out = folder / "out"
        spent, begun = processor_seconds(), time.perf_counter()
        counts = work(out)
        found.append((time.perf_counter() - begun, processor_seconds() - spent, counts))
        for left in (out, out.with_name("out.partial")):
            shutil.rmtree(left, ignore_errors=True)
    return min(found)


def compare(spark: SparkSession, workload: Path, format_: str, folder: Path, times: int) -> None:
    ways: dict[str, Callable[[Path], Counts]] = {
        "Fanplan": lambda out: with_fanplan(spark, workload, out),
        "DuckDB": lambda out: with_duckdb(workload, out, format_),
        "Polars": lambda out: with_polars(workload, out, format_),
    }
    results = {name: measured(way, folder, times) for name, way in ways.items()}
    own = results["Fanplan"]
    assert len({counts for _, _, counts in results.values()}) == 1, results
    for name, (seconds, spent, (kept, lost)) in results.items():
        ratio = f"{seconds / own[0]:.2f} | {spent / own[1]:.2f}" if name != "Fanplan" else "|"
        print(
            f"| {format_} | {name} | {seconds:.1f} | {spent:.1f} | {kept:,} | {lost:,} | {ratio} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--only", nargs="+", choices=FORMATS, default=FORMATS)
    parser.add_argument("--times", type=int, default=2, help="runs of each, after a small one")
    parser.add_argument("--data", type=Path, help="keep the files here and use them again")
    parser.add_argument("--quick", action="store_true", help="a million rows, to see that it runs")
    options = parser.parse_args()
    rows = 1_000_000 if options.quick else options.rows
    with (
        tempfile.TemporaryDirectory(prefix="fanplan-readers-") as scratch,
        running("local[2]") as spark,
    ):
        data = options.data or Path(scratch)
        data.mkdir(exist_ok=True)
        for format_ in options.only:
            small = write_workload(data, format_, 400_000)
            with_fanplan(spark, small, Path(scratch) / "warm")
            workload = write_workload(data, format_, rows)
            print("| from | with | s | processor s | kept | refused | clock | processor |")
            print("| --- | --- | --- | --- | --- | --- | --- | --- |")
            compare(spark, workload, format_, Path(scratch), options.times)


if __name__ == "__main__":
    main()
