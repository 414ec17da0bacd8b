"""The stream of `fanplan watch` beside the batch pipeline, on the same publications.

    python benchmarks/stream.py [--flows N …] [--files N] [--rows N]

Publications of two numbers each are matched with subscriptions from some value on, so that every
pair of values on a topic is an exact flow. `ingest` reads, checks and matches them into flows,
classes and hits; the stream reads, checks and matches them into flows of one window, which stays
open: what planning costs is not in it. Each of the files is a batch. Both are done with the first
file alone and with all of them: the difference is what further rows cost, without what a run costs
whatever its size. Then one row of the next window comes, which closes the first: by the clock, how
long it takes until that window is decided, with a fresh plan and the bound. Rates are rows per
processor second, of this process and all below it; Spark is warm. Kept is the size on the disk of
what stands after a batch.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fanplan
from fanplan.data.engine import Engine

VALUES = 32
"""Different values of each of two attributes on a topic: VALUES² flows, 2 VALUES subscriptions."""
USERS = 500
ENGINE = Engine("local[2]")
OPTIONS: dict[str, Any] = {"once": True, "window": 1e6, "ahead": 1e7, "files": 1}
HEAD = (
    *("flows", "batch rows/s", "stream rows/s", "of batch", "further rows: batch rows/s"),
    *("stream rows/s", "of batch", "a batch s", "a window s", "kept MB"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flows", type=int, nargs="*", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--files", type=int, default=5)
    parser.add_argument("--rows", type=int, default=500_000, help="of a file")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:  # So that Spark and kernels are warm.
        measure(Path(folder), 1_000, 2, 350_000)
    print(f"| {' | '.join(HEAD)} |\n|{' --- |' * len(HEAD)}")
    for flows in asked.flows:
        with tempfile.TemporaryDirectory() as folder:
            print(measure(Path(folder), flows, asked.files, asked.rows), flush=True)


def measure(folder: Path, flows: int, files: int, rows: int) -> str:
    """A row of the table."""
    desk = write_desk(folder / "desk", flows)
    write_publications(desk, flows, 0, rows)
    batch = [spent(lambda: fanplan.ingest(desk, folder / "first", engine=ENGINE))[0]]
    fanplan.channels(folder / "first", 8, engine=ENGINE, options={"swaps": 0}).save(folder / "plan")
    sent = desk / "publications"
    sent.rename(folder / "first_file")
    sent.mkdir()

    def follow() -> fanplan.Watched:
        return fanplan.watch(folder / "plan", desk, folder / "state", engine=ENGINE, **OPTIONS)

    follow()
    (folder / "first_file" / "0.parquet").rename(sent / "0.parquet")
    first = spent(follow)
    for number in range(1, files):
        write_publications(desk, flows, number, rows)
    more = spent(follow)
    batch.append(spent(lambda: fanplan.ingest(desk, folder / "all", engine=ENGINE))[0])
    tables = max((folder / "state" / "batches").iterdir(), key=lambda path: int(path.name))
    kept = sum(path.stat().st_size for path in tables.iterdir())
    found = len(pq.read_table(tables / "open.parquet"))
    next_row = {"time": [1.5e6], "topic": ["q.0"], "bytes": [1], "price": [0.0], "size": [0.0]}
    pq.write_table(pa.table(next_row), sent / "next.parquet")
    window = spent(follow)[1]
    further = (files - 1) * rows
    rates = [files * rows / batch[1], files * rows / (first[0] + more[0])]
    rates += [further / (batch[1] - batch[0]), further / more[0]]
    shown = [
        *(f"{rate:,.0f}" for rate in rates[:2]),
        f"{rates[1] / rates[0]:.2f}",
        *(f"{rate:,.0f}" for rate in rates[2:]),
        f"{rates[3] / rates[2]:.2f}",
    ]
    times = f"{more[1] / (files - 1):.1f} | {window:.1f} | {kept / 1e6:.1f}"
    return f"| {found:,} | {' | '.join(shown)} | {times} |"


def write_desk(folder: Path, flows: int) -> Path:
    """Subscriptions from each value of each attribute of each topic on, by users drawn."""
    topics, draw = topics_of(flows), np.random.default_rng(0)
    folder.mkdir()
    domain = f'{{ type = "number", min = 0.0, max = {VALUES}.0 }}'
    (folder / "workload.toml").write_text(
        f'name = "desk"\ntopic_syntax = "nats"\n[attributes]\nprice = {domain}\nsize = {domain}\n'
        '[topics."q.*"]\nattributes = ["price", "size"]\n'
    )
    users = np.concatenate([draw.choice(USERS, 2 * VALUES, replace=False) for _ in range(topics)])
    filters = [f"{name} >= {value}" for name in ("price", "size") for value in range(VALUES)]
    rows = {
        "subscriber": [f"u{user}" for user in users.tolist()],
        "topic": np.repeat([f"q.{i}" for i in range(topics)], 2 * VALUES),
        "filter": filters * topics,
    }
    pq.write_table(pa.table(rows), folder / "subscriptions.parquet")
    return folder


def write_publications(folder: Path, flows: int, number: int, rows: int) -> None:
    """Publications of all flows in turn, in an order that is drawn."""
    topics, draw = topics_of(flows), np.random.default_rng(number)
    flow = draw.permutation(np.arange(number * rows, (number + 1) * rows)) % (topics * VALUES**2)
    names = pa.array([f"q.{i}" for i in range(topics)])
    columns = {
        "time": draw.random(rows) * 1000,
        "topic": names.take(pa.array(flow // VALUES**2)),
        "bytes": draw.integers(50, 500, rows),
        "price": (flow // VALUES % VALUES).astype(np.float64),
        "size": (flow % VALUES).astype(np.float64),
    }
    (folder / "publications").mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), folder / "publications" / f"{number}.parquet")


def topics_of(flows: int) -> int:
    return max(1, round(flows / VALUES**2))


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of a piece of work: of processors, and by the clock."""
    began, clock = processor_seconds(), time.monotonic()
    work()
    return processor_seconds() - began, time.monotonic() - clock


def processor_seconds() -> float:
    """Of this process and of all below it."""
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
