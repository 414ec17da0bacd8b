"""The stream of `fanplan watch` beside the batch pipeline, on the same publications.

    python benchmarks/stream.py [--flows N …] [--publications N] [--files N]

Publications of one number each are matched with subscriptions from some value on, so that every
value is an exact flow. `ingest` reads, checks and matches them into flows, classes and hits; the
stream reads, checks and matches them into flows of one window, which stays open: what planning
costs is not in it. Then one row of the next window comes, which closes the first: by the clock, how
long it takes until that window is decided, with a fresh plan and the bound. Rates are rows per
processor second, of this process and all below it; Spark is warm. Kept is the size on the disk of
what stands after a batch.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fanplan
from fanplan.data.engine import Engine

VALUES = 50
"""Different values on a topic, and so flows."""
USERS = 500
ENGINE = Engine("local[2]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flows", type=int, nargs="*", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--publications", type=int, default=2_000_000)
    parser.add_argument("--files", type=int, default=4)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:  # So that Spark and kernels are warm.
        measure(Path(folder), 1_000, 10_000, 1)
    print("| flows | batch rows/s | stream rows/s | of batch | a batch s | a window s | kept MB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for flows in asked.flows:
        with tempfile.TemporaryDirectory() as folder:
            print(measure(Path(folder), flows, asked.publications, asked.files), flush=True)


def measure(folder: Path, flows: int, publications: int, files: int) -> str:
    desk = write_desk(folder / "desk", flows, publications, files)
    began = spent()
    dataset = fanplan.ingest(desk, folder / "dataset", engine=ENGINE)
    batch = spent() - began
    fanplan.channels(dataset, 8, engine=ENGINE, options={"swaps": 0}).save(folder / "plan")
    options: dict[str, Any] = {
        "once": True,
        "window": 1e6,
        "ahead": 1e7,
        "files": 1,
        "engine": ENGINE,
    }
    empty = write_desk(folder / "empty", flows, 0, 0)
    fanplan.watch(folder / "plan", empty, folder / "state", **options)
    for path in (desk / "publications").iterdir():
        os.link(path, empty / "publications" / path.name)
    began, clock = spent(), time.monotonic()
    fanplan.watch(folder / "plan", empty, folder / "state", **options)
    stream, took = spent() - began, time.monotonic() - clock
    tables = max((folder / "state" / "batches").iterdir(), key=lambda path: int(path.name))
    kept = sum(path.stat().st_size for path in tables.iterdir())
    found = len(pq.read_table(tables / "open.parquet"))
    clock = time.monotonic()
    next_row = pa.table({"time": [1.5e6], "topic": ["q.0"], "bytes": [1], "price": [0.0]})
    pq.write_table(next_row, empty / "publications" / "next.parquet")
    closed = fanplan.watch(folder / "plan", empty, folder / "state", **options)
    assert closed.windows == 1
    window = time.monotonic() - clock
    rates = [publications / batch, publications / stream]
    shown = f"{rates[0]:,.0f} | {rates[1]:,.0f} | {rates[1] / rates[0]:.2f}"
    return f"| {found:,} | {shown} | {took / files:.1f} | {window:.1f} | {kept / 1e6:.1f} |"


def write_desk(folder: Path, flows: int, publications: int, files: int) -> Path:
    """Subscriptions from each value of each topic on, by users drawn, and publications."""
    topics = max(1, flows // VALUES)
    draw = np.random.default_rng(0)
    (folder / "publications").mkdir(parents=True)
    (folder / "workload.toml").write_text(
        'name = "desk"\ntopic_syntax = "nats"\n[attributes]\n'
        f'price = {{ type = "number", min = 0.0, max = {VALUES}.0 }}\n'
        '[topics."q.*"]\nattributes = ["price"]\n'
    )
    users = np.concatenate([draw.choice(USERS, VALUES, replace=False) for _ in range(topics)])
    rows = {
        "subscriber": [f"u{user}" for user in users.tolist()],
        "topic": np.repeat([f"q.{i}" for i in range(topics)], VALUES),
        "filter": [f"price >= {value}" for value in range(VALUES)] * topics,
    }
    pq.write_table(pa.table(rows), folder / "subscriptions.parquet")
    for number in range(files):
        size = publications // files
        topic = draw.integers(0, topics, size)
        columns = {
            "time": draw.random(size) * 1000,
            "topic": pa.array([f"q.{i}" for i in range(topics)]).take(pa.array(topic)),
            "bytes": draw.integers(50, 500, size),
            "price": draw.integers(0, VALUES, size).astype(np.float64),
        }
        pq.write_table(pa.table(columns), folder / "publications" / f"{number}.parquet")
    return folder


def spent() -> float:
    """Processor seconds of this process and of all below it."""
    below, todo = {os.getpid()}, [os.getpid()]
    while todo:
        pid = todo.pop()
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            found = {int(child) for child in task.read_text().split()} - below
            below |= found
            todo += found
    ticks = 0
    for pid in below:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, words[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
