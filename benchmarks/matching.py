"""Matching points to boxes: Fanplan on Spark, the limit of its kernels, and peers, in one run.

    python benchmarks/matching.py [--quick] [--attributes 10 20] [--only-many]
        [--data DIR] [--json FILE]

All answer the same question on the same data: how many points lie in each subscription's box.
Peers get a small sample of the points; their rates are extrapolated and marked with ~. With more
than three attributes boxes bound half of them, and Fanplan runs beside its limit alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from fanplan.boxes import matching
from fanplan.data.ingest.joins import (
    CHUNK_ROWS,
    PointFiles,
    _index,
    chunk_points,
    join_hits,
    join_wants,
)
from fanplan.data.spark import session

TOPICS, DIMS, CELLS, SUBSCRIBERS = 20, 3, 10, 10_000
MATCHES = 18.0
SEED = 1
GOALS = {
    "Spark hits, warm, to the limit": 0.6,
    "Spark hits to DuckDB": 50.0,
    "Spark hits to Polars": 50.0,
    "Spark hits to Spark SQL": 500.0,
}
RANGE_JOIN = """
    SELECT subscription, CAST(count(*) AS DOUBLE) AS hits FROM points JOIN boxes
    ON points.topic_id = boxes.topic_id
    AND x0 >= lo0 AND x0 < hi0 AND x1 >= lo1 AND x1 < hi1 AND x2 >= lo2 AND x2 < hi2
    GROUP BY subscription
"""


@dataclass(frozen=True)
class Sizes:
    """Rows of the data, and of the sample that the peers get."""

    boxes: int = 200_000
    points: int = 10_000_000
    many: int = 2_000_000
    """Points with more than three attributes."""
    sample: int = 20_000
    repeats: int = 3


QUICK = Sizes(20_000, 500_000, 100_000, 4_000, 1)


@dataclass(frozen=True)
class Data:
    """Boxes and points in memory and on disk, with the hits that everyone must find."""

    boxes: pa.Table
    points: pa.Table
    boxes_path: str
    points_path: str
    index: matching.BoxIndex
    pairs: float

    @property
    def dims(self) -> int:
        return int(self.index.lo.shape[1])


@dataclass(frozen=True)
class Rate:
    """What one method did: ``pairs`` matches of ``points`` points in ``seconds``."""

    name: str
    points: int
    pairs: float
    seconds: float
    sampled: bool = False
    processor: float = float("nan")
    """Processor seconds of all processes, where they were counted."""

    @property
    def pairs_per_second(self) -> float:
        return self.pairs / self.seconds


def draw_topics(random: np.random.Generator, count: int, skewed: bool) -> np.ndarray:
    """Topics alike, or as popular as Zipf's law has it."""
    popularity = 1.0 / np.arange(1, TOPICS + 1) if skewed else np.ones(TOPICS)
    return random.choice(TOPICS, count, p=popularity / popularity.sum()).astype(np.int32)


def draw_positions(random: np.random.Generator, size: tuple[int, int], skewed: bool) -> np.ndarray:
    """Positions alike, or crowded at one corner."""
    return random.random(size) ** (3.0 if skewed else 1.0)


def draw_shapes(random: np.random.Generator, count: int, dims: int) -> np.ndarray:
    """Widths of boxes as shares of the side; of more than three attributes half are left open."""
    shape = random.lognormal(0.0, 0.4, (count, dims))
    if dims > DIMS:
        left_open = random.permuted(np.tile(np.arange(dims) < dims // 2, (count, 1)), axis=1)
        shape[left_open] = np.inf
    return shape


def draw_boxes(topic: np.ndarray, centre: np.ndarray, shape: np.ndarray, side: float) -> pa.Table:
    lo, hi = np.clip(centre - side * shape / 2, 0, 1), np.clip(centre + side * shape / 2, 0, 1)
    dims = lo.shape[1]
    offsets = np.arange(0, lo.size + 1, dims, dtype=np.int32)
    ends = {f"{name}{a}": end[:, a] for name, end in (("lo", lo), ("hi", hi)) for a in range(dims)}
    return pa.table(
        {
            "topic_id": topic,
            "subscription": np.arange(len(topic)),
            "subscriber_id": (np.arange(len(topic)) % SUBSCRIBERS).astype(np.int32),
            "lo": pa.ListArray.from_arrays(offsets, lo.ravel()),
            "hi": pa.ListArray.from_arrays(offsets, hi.ravel()),
            **ends,
        }
    )


def draw_points(random: np.random.Generator, count: int, skewed: bool, dims: int) -> pa.Table:
    x = draw_positions(random, (count, dims), skewed)
    cell = (x[:, :DIMS] * CELLS).astype(np.int32) @ np.array([CELLS**2, CELLS, 1], np.int32)
    columns = {f"x{axis}": x[:, axis] for axis in range(dims)}
    return pa.table({"topic_id": draw_topics(random, count, skewed), "cell": cell, **columns})


def build(boxes: pa.Table) -> matching.BoxIndex:
    dims = len(boxes["lo"][0])
    return _index(boxes, boxes["topic_id"].to_numpy().astype(np.int64), dims)


def kernel_hits(index: matching.BoxIndex, points: pa.Table) -> np.ndarray:
    """Hits per box, by two threads that share out the points; no Spark, all in memory."""
    half = len(points) // 2 + 1
    with ThreadPoolExecutor(2) as pool:
        parts = pool.map(lambda at: part_hits(index, points.slice(at, half)), (0, half))
        hits: np.ndarray = np.sum(list(parts), axis=0)
    return hits


def part_hits(index: matching.BoxIndex, points: pa.Table) -> np.ndarray:
    hits = np.zeros(len(index.owner))
    for at in range(0, len(points), CHUNK_ROWS):
        chunk = points.slice(at, CHUNK_ROWS)
        matching.count_hits(index, *chunk_points(chunk, index.lo.shape[1]), hits)
    return hits


def make_data(folder: Path, sizes: Sizes, skewed: bool, dims: int = DIMS) -> Data:
    """Draw the data; the size of the boxes is set so that a point has about MATCHES matches."""
    random = np.random.default_rng(SEED)
    topic = draw_topics(random, sizes.boxes, skewed)
    centre = draw_positions(random, (sizes.boxes, dims), skewed)
    shape, bounded = draw_shapes(random, sizes.boxes, dims), dims if dims <= DIMS else dims // 2
    points = draw_points(random, sizes.points if dims <= DIMS else sizes.many, skewed, dims)
    side, probe = 0.1 if dims <= DIMS else 0.5, points.slice(0, 20_000)
    for _ in range(4):
        found = kernel_hits(build(draw_boxes(topic, centre, shape, side)), probe).sum()
        side *= (MATCHES * len(probe) / found) ** (1 / bounded)
    boxes = draw_boxes(topic, centre, shape, side)
    own = folder / f"{'skewed' if skewed else 'uniform'}-{dims}"
    paths = [own / name for name in ("boxes", "points")]
    for path, table in zip(paths, (boxes, points), strict=True):
        path.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path / "part-0.parquet", row_group_size=500_000, compression="lz4")
    index = build(boxes)
    return Data(
        boxes, points, str(paths[0]), str(paths[1]), index, kernel_hits(index, points).sum()
    )


def timed(run: Callable[[], object]) -> float:
    """Seconds that a run took."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def processes() -> dict[int, float]:
    """Processor seconds so far of this process and all below it: Spark's JVM and its workers."""
    own = psutil.Process()
    every = (own, *own.children(recursive=True))
    return {process.pid: sum(process.cpu_times()[:2]) for process in every}


def spent(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds that a run took, and processor seconds of all processes."""
    before, seconds = processes(), timed(run)
    return seconds, sum(used - before.get(pid, 0.0) for pid, used in processes().items())


def write_nowhere(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def measure_fanplan(spark: SparkSession, data: Data, repeats: int, label: str) -> list[Rate]:
    """Fanplan beside the limit, turn by turn so that noise hits both; the quickest turn counts."""
    files, frame = PointFiles(spark, data.points_path), spark.read.parquet(data.points_path)
    jobs: dict[str, Callable[[], object]] = {
        "two threads, no Spark": lambda: kernel_hits(data.index, data.points),
        "Spark hits": lambda: write_nowhere(join_hits(files, data.boxes_path, data.dims)),
        "Spark hits, points through the JVM": lambda: write_nowhere(
            join_hits(frame, data.boxes_path, data.dims)
        ),
        "Spark distinct (cell, subscriber)": lambda: write_nowhere(
            join_wants(files, data.boxes_path, data.dims, ["topic_id", "cell"])
        ),
    }
    if data.dims > DIMS:
        jobs = {name: jobs[name] for name in ("two threads, no Spark", "Spark hits")}
    cold = timed(jobs["Spark hits"])
    rates = [Rate(f"{label}: Spark hits, cold", len(data.points), data.pairs, cold)]
    best = dict.fromkeys(jobs, (float("inf"), float("inf")))
    for _ in range(repeats):
        for name, job in jobs.items():
            turn = spent(job)
            best[name] = (min(best[name][0], turn[0]), min(best[name][1], turn[1]))
            print(f"{label}: {name}: {turn[0]:.2f} s, processor {turn[1]:.2f} s", file=sys.stderr)
    return rates + [
        Rate(f"{label}: {name}", len(data.points), data.pairs, seconds, processor=used)
        for name, (seconds, used) in best.items()
    ]


def by_polars(points: pa.Table, boxes: pa.Table) -> pa.Table:
    joined = pl.DataFrame(points).lazy().join_where(
        pl.DataFrame(boxes).lazy().drop("lo", "hi"),
        pl.col("topic_id") == pl.col("topic_id_right"),
        *(pl.col(f"x{axis}") >= pl.col(f"lo{axis}") for axis in range(DIMS)),
        *(pl.col(f"x{axis}") < pl.col(f"hi{axis}") for axis in range(DIMS)),
    )  # fmt: skip
    return joined.group_by("subscription").agg(hits=pl.len().cast(pl.Float64)).collect().to_arrow()


def by_duckdb(points: pa.Table, boxes: pa.Table) -> pa.Table:
    with duckdb.connect() as database:
        database.execute("SET threads = 2")
        database.register("points", points)
        database.register("boxes", boxes)
        return database.sql(RANGE_JOIN).to_arrow_table()


def by_spark_sql(spark: SparkSession, points: pa.Table, data: Data) -> pa.Table:
    return spark.sql(
        RANGE_JOIN.replace("FROM points", "FROM {points} AS points").replace(
            "JOIN boxes", "JOIN {boxes} AS boxes"
        ),
        points=spark.createDataFrame(points.to_pandas()),
        boxes=spark.read.parquet(data.boxes_path),
    ).toArrow()


def by_fanplan(spark: SparkSession, points: pa.Table, data: Data) -> pa.Table:
    frame = spark.createDataFrame(points.to_pandas())
    return join_hits(frame, data.boxes_path, data.dims).toArrow()


def check(name: str, found: pa.Table, index: matching.BoxIndex, points: pa.Table) -> None:
    """Stop if a method's hits differ from the kernels'."""
    hits = np.zeros(int(index.subscriptions[-1]) + 1)
    hits[found["subscription"].to_numpy()] = found["hits"].to_numpy()
    expected = np.zeros_like(hits)
    expected[index.subscriptions[index.subscription]] = kernel_hits(index, points)
    if not np.array_equal(hits, expected):
        raise SystemExit(f"{name} disagrees on {np.sum(hits != expected)} subscriptions")


def measure_peers(spark: SparkSession, data: Data, sample: int) -> list[Rate]:
    """Peers on a sample, each warmed up by a run whose result is checked.

    Without that, most of what Spark SQL takes for so few points is its start.
    """
    points = data.points.slice(0, sample)
    check("Fanplan", by_fanplan(spark, points, data), data.index, points)
    peers: dict[str, Callable[[], pa.Table]] = {
        "Polars": lambda: by_polars(points, data.boxes),
        "DuckDB": lambda: by_duckdb(points, data.boxes),
        "Spark SQL": lambda: by_spark_sql(spark, points, data),
    }
    pairs = kernel_hits(data.index, points).sum()
    rates = []
    for name, run in peers.items():
        check(name, run(), data.index, points)
        rates.append(Rate(name, sample, pairs, timed(run), sampled=True))
        print(f"{name}: {rates[-1].seconds:.2f} s", file=sys.stderr)
    return rates


def measure_many(
    spark: SparkSession, folder: Path, sizes: Sizes, attributes: list[int]
) -> tuple[list[Rate], dict[str, float]]:
    """Fanplan and its limit with more attributes."""
    rates: list[Rate] = []
    found: dict[str, float] = {}
    for dims in attributes:
        label = f"{dims} attributes"
        some = measure_fanplan(spark, make_data(folder, sizes, False, dims), sizes.repeats, label)
        rates += some
        found |= to_the_limit(some, label)
    return rates, found


def to_the_limit(rates: list[Rate], label: str) -> dict[str, float]:
    """Of the rate without Spark, on the clock and by processor seconds, which other work spares."""
    one = {rate.name: rate for rate in rates}
    limit, warm = one[f"{label}: two threads, no Spark"], one[f"{label}: Spark hits"]
    name = f"{label}: Spark hits, warm, to the limit"
    return {
        name: limit.seconds / warm.seconds,
        f"{name}, processor seconds": limit.processor / warm.processor,
    }


def ratios(rates: list[Rate]) -> dict[str, float]:
    speed = {rate.name: rate.pairs_per_second for rate in rates}
    warm = speed["uniform: Spark hits"]
    limit = speed["uniform: two threads, no Spark"]
    return to_the_limit(rates, "uniform") | {
        "Spark hits, points through the JVM, to the limit": (
            speed["uniform: Spark hits, points through the JVM"] / limit
        ),
        "Spark distinct (cell, subscriber) to the limit": (
            speed["uniform: Spark distinct (cell, subscriber)"] / limit
        ),
        "Spark hits to DuckDB": warm / speed["DuckDB"],
        "Spark hits to Polars": warm / speed["Polars"],
        "Spark hits to Spark SQL": warm / speed["Spark SQL"],
        "uniform to skewed (goal: at most 1.5)": warm / speed["skewed: Spark hits"],
    }


def show(rates: list[Rate], found: dict[str, float]) -> None:
    print(f"{'method':<48} {'points':>11} {'seconds':>8} {'M pairs/s':>10} {'M points/s':>10} "
          f"{'processor':>9}")  # fmt: skip
    for rate in rates:
        mark = "~" if rate.sampled else " "
        pairs, points = rate.pairs_per_second / 1e6, rate.points / rate.seconds / 1e6
        print(f"{rate.name:<48} {rate.points:>11,} {rate.seconds:>8.2f} {mark}{pairs:>9.3f} "
              f"{mark}{points:>9.4f} {rate.processor:>9.2f}")  # fmt: skip
    print("\nratio (pairs/s)")
    for name, ratio in found.items():
        wanted = GOALS.get(name.split(": ")[-1])
        goal = f"  goal: at least {wanted:g}" if wanted else ""
        print(f"{name:<52} {ratio:>10.2f}{goal}")


def run(
    folder: Path, sizes: Sizes, attributes: list[int], only_many: bool
) -> tuple[list[Rate], dict[str, float]]:
    spark = session(master="local[2]")
    try:
        many, found = measure_many(spark, folder, sizes, attributes)
        if only_many:
            return many, found
        uniform = make_data(folder, sizes, skewed=False)
        rates = measure_fanplan(spark, uniform, sizes.repeats, "uniform")
        rates += measure_peers(spark, uniform, sizes.sample)
        rates += measure_fanplan(
            spark, make_data(folder, sizes, skewed=True), sizes.repeats, "skewed"
        )
    finally:
        spark.stop()
    return rates + many, ratios(rates) | found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small data: shows that it runs")
    parser.add_argument("--attributes", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--only-many", action="store_true", help="not three attributes")
    parser.add_argument("--data", type=Path, help="keep the data in this folder")
    parser.add_argument("--json", type=Path, help="write rates and ratios to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fanplan-matching-") as scratch:
        folder, sizes = options.data or Path(scratch), QUICK if options.quick else Sizes()
        rates, found = run(folder, sizes, options.attributes, options.only_many)
    show(rates, found)
    if options.json:
        records = [vars(rate) | {"pairs_per_second": rate.pairs_per_second} for rate in rates]
        options.json.write_text(json.dumps({"rates": records, "ratios": found}, indent=2))


if __name__ == "__main__":
    main()
