"""Similarity of brokers: Fanplan on Spark, a DuckDB self join and a dense numpy loop, in one run.

    python benchmarks/overlay_similarity.py [--sizes 10000 30000 …] [--brokers N] [--cover MOST]

Subscriptions as in Tajuddin (2011), section 5.4.2: 4 classes, 4 attributes from 0 to 1000, ranges
of at least 10 from a Zipf law. Overlap by pairs of brokers is what all compute. Peers run up to the
sizes that they can do; covering runs on Spark up to ``--cover`` subscriptions. The first rows, for
1,000 subscriptions, warm up the session and the kernels.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from fanplan.pipeline.extents import Chunks, write_chunks
from fanplan.pipeline.similarity import covers, overlaps
from fanplan.pipeline.spark import running

CLASSES, AXES, RANGE, LEAST, SKEW = 4, 4, 1000.0, 10.0, 0.8
NUMPY_MOST, DUCKDB_MOST = 10_000, 10_000
LOW = [f"lo{axis}" for axis in range(AXES)]
HIGH = [f"hi{axis}" for axis in range(AXES)]


def subscriptions(count: int, brokers: int, seed: int) -> pa.Table:
    """Boxes around a mean of each class; half of the attributes do not matter."""
    draw = np.random.default_rng(seed)
    topic = draw.integers(0, CLASSES, count)
    centre = draw.normal(draw.uniform(0, RANGE, (CLASSES, AXES))[topic], 3.0)
    steps = np.arange(1, RANGE / LEAST)
    width = LEAST * draw.choice(steps, (count, AXES), p=steps**-SKEW / (steps**-SKEW).sum())
    asked = draw.random((count, AXES)) < 0.5
    asked[np.arange(count), draw.integers(0, AXES, count)] = True
    lo = np.where(asked, np.clip(centre - width / 2, 0, RANGE - LEAST), 0.0)
    hi = np.where(asked, np.clip(centre + width / 2, lo + LEAST, RANGE), RANGE)
    return pa.table(
        {"subscription": np.arange(count), "topic_id": topic.astype(np.int32)}
        | {"owner": draw.integers(0, brokers, count).astype(np.int32)}
        | {name: lo[:, axis] for axis, name in enumerate(LOW)}
        | {name: hi[:, axis] for axis, name in enumerate(HIGH)}
    )


def chunks(spark: SparkSession, table: pa.Table, folder: Path) -> Chunks:
    pq.write_table(table, folder / "subscriptions.parquet", row_group_size=100_000)
    rows = spark.read.parquet(str(folder / "subscriptions.parquet"))
    owned = rows.selectExpr("subscription", "owner", "1.0D AS weight")
    ends = f"array({', '.join(LOW)}) AS lo", f"array({', '.join(HIGH)}) AS hi"
    boxes = rows.selectExpr("subscription", "topic_id", *ends)
    return write_chunks(owned, boxes, AXES, folder / "chunks")


def with_numpy(table: pa.Table, brokers: int) -> np.ndarray:
    """Row by row against all others."""
    lo, hi = (np.column_stack([table[name] for name in names]) for names in (LOW, HIGH))
    topic, owner = table["topic_id"].to_numpy(), table["owner"].to_numpy()
    volume = np.prod(hi - lo, axis=1)
    found = np.zeros((brokers, brokers))
    for x in range(len(table)):
        sides = np.minimum(hi, hi[x]) - np.maximum(lo, lo[x])
        shared = np.prod(np.maximum(sides, 0.0), axis=1) * (topic == topic[x])
        found[owner[x]] += np.bincount(owner, shared**2 / (volume * volume[x]), brokers)
    return found


def with_duckdb(table: pa.Table, brokers: int) -> np.ndarray:
    sides = " * ".join(
        f"(least(x.{high}, y.{high}) - greatest(x.{low}, y.{low}))"
        for low, high in zip(LOW, HIGH, strict=True)
    )
    meet = " AND ".join(
        f"x.{low} < y.{high} AND y.{low} < x.{high}" for low, high in zip(LOW, HIGH, strict=True)
    )
    volume = " * ".join(f"({high} - {low})" for low, high in zip(LOW, HIGH, strict=True))
    with duckdb.connect(config={"threads": 2}) as connection:
        connection.register("rows", table)
        rows = connection.sql(
            f"WITH s AS (SELECT *, {volume} AS volume FROM rows) "
            f"SELECT x.owner, y.owner, sum(({sides})**2 / (x.volume * y.volume)) "
            f"FROM s x JOIN s y ON x.topic_id = y.topic_id AND {meet} GROUP BY ALL"
        ).fetchnumpy()
    i, j, value = rows.values()
    found = np.zeros((brokers, brokers))
    found[i, j] = value
    return found


def gathered(pairs: DataFrame, brokers: int) -> np.ndarray:
    """Sums by pairs of brokers, which are few; without the diagonal."""
    rows = pairs.filter("i != j").toArrow()
    found = np.zeros((brokers, brokers))
    found[rows["i"].to_numpy(), rows["j"].to_numpy()] = rows["value"].to_numpy()
    return found


def timed(name: str, count: int, work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    start = time.perf_counter()
    found = work()
    seconds = time.perf_counter() - start
    print(f"| {name} | {count:,} | {seconds:.1f} |", flush=True)
    return seconds, found * (1 - np.eye(len(found)))


def measure(spark: SparkSession, count: int, brokers: int, most_covered: int) -> None:
    table = subscriptions(count, brokers, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        made = chunks(spark, table, Path(folder))
        ours, found = timed(
            "Spark, overlap", count, lambda: gathered(overlaps(spark, made), brokers)
        )
        if count <= most_covered:
            timed("Spark, cover", count, lambda: gathered(covers(spark, made), brokers))
    for name, peer, most in (
        ("DuckDB self join", with_duckdb, DUCKDB_MOST),
        ("numpy loop", with_numpy, NUMPY_MOST),
    ):
        if count <= most:
            seconds, wanted = timed(name, count, lambda peer=peer: peer(table, brokers))  # type: ignore[misc]
            assert np.allclose(found, wanted), f"{name} differs"
            print(f"  Spark is {seconds / ours:.1f} times as fast as the {name}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 30_000, 100_000])
    parser.add_argument("--brokers", type=int, default=1000)
    parser.add_argument("--cover", type=int, default=10_000)
    options = parser.parse_args()
    print("| method | subscriptions | seconds |\n| --- | --- | --- |")
    with running() as spark:
        measure(spark, 1000, 10, 1000)
        for count in options.sizes:
            measure(spark, count, options.brokers, options.cover)


if __name__ == "__main__":
    main()
