"""Ingest at growing sizes: time per stage, and peak memory of driver and executors.

    python benchmarks/ingest.py [--quick] [--only KIND] [--data DIR] [--master URL] [--json FILE]

Market (plain topics) and content (one attribute, atomic grid) workloads with 200,000 subscriptions
at 5 and 20 million publications; and selectors, whose flows are exact: 100,000 subscriptions with
10 predicates on 20 attributes, at 250,000 and a million publications. Spark runs as a driver and
one executor of two cores in a process of its own, so that what the driver holds can be told from
what the executor holds. Two ratios are printed: how time grows with the data, and how the driver's
memory does.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import fanplan
from fanplan.api import Engine

SUBSCRIPTIONS: dict[str, dict[str, Any]] = {
    "market": {"flows": 10_000, "users": 400},
    "content": {"subscribers": 3_400, "shared": False},
}
SIZES = (5_000_000, 20_000_000)
QUICK = (100_000, 400_000)
SELECTORS = (250_000, 1_000_000)
QUICK_SELECTORS = (5_000, 20_000)
SUBSCRIBED = dict.fromkeys(SELECTORS, 100_000) | dict.fromkeys(QUICK_SELECTORS, 2_000)
ATTRIBUTES, PREDICATES = 20, 10
WIDTH = 0.5
"""Part of its domain that a predicate takes: 0.5 ** 10 of all subscriptions want a publication."""
MASTER = "local-cluster[1,2,4096]"
AROUND = {
    "FANPLAN_SPARK_CONF": "spark.driver.memory=2g spark.executor.memory=3g"
    f" spark.authenticate.secret={secrets.token_hex(16)}",
    "SPARK_LOCAL_IP": "127.0.0.1",
}
"""Settings of a driver and an executor that share a secret and talk on this machine alone."""


@dataclass
class Record:
    """A stage's name, seconds and rows. Also what the pipeline reports to."""

    stages: list[dict[str, Any]] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[Record]:
        begun, entry = time.perf_counter(), {"stage": name, "rows": 0}
        self.stages.append(entry)
        yield self
        entry["seconds"] = time.perf_counter() - begun

    def rows(self, count: int) -> None:
        self.stages[-1]["rows"] = count

    def note(self, text: str) -> None:
        pass

    def update(self, *, best: float) -> None:
        pass

    def reused(self) -> None:
        raise SystemExit("a stage was reused: nothing was measured")


class Memory(threading.Thread):
    """Peak resident memory of a process and of Spark's below it, by role, while it runs."""

    def __init__(self, process: int | None = None) -> None:
        super().__init__(daemon=True)
        self.process = psutil.Process(process)
        self.peak: dict[str, int] = {}
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.2):
            for role, size in self.sizes().items():
                self.peak[role] = max(self.peak.get(role, 0), size)

    def sizes(self) -> dict[str, int]:
        found: dict[str, int] = {}
        with suppress(psutil.Error):
            found["driver python"] = self.process.memory_info().rss
            for process in self.process.children(recursive=True):
                with suppress(psutil.Error):
                    role, size = self.role(process.cmdline()), process.memory_info().rss
                    found[role] = found.get(role, 0) + size
        return found

    @staticmethod
    def role(words: list[str]) -> str:
        text = " ".join(words)
        if "CoarseGrainedExecutorBackend" in text:
            return "executor JVM"
        if "pyspark.daemon" in text or "pyspark.worker" in text:
            return "executor python"
        return "driver JVM" if "java" in text else "other"


def measure(kind: str, rows: int, data: Path, master: str) -> dict[str, Any]:
    """Generate (not measured) and ingest one workload."""
    workload, out = data / f"{kind}-{rows}", data / f"{kind}-{rows}.dataset"
    if not workload.exists() and kind == "selectors":
        write_selectors(workload, SUBSCRIBED[rows], rows)
    elif not workload.exists():
        engine = Engine(master="local[2]")
        fanplan.generate(
            kind, workload, publications=rows, seed=1, engine=engine, **SUBSCRIPTIONS[kind]
        )
    shutil.rmtree(out, ignore_errors=True)
    record, memory = Record(), Memory()
    engine = Engine(master=master, progress=record)
    memory.start()
    dataset = fanplan.ingest(workload, out, engine=engine)
    memory.over.set()
    memory.join()
    stages = [s for s in record.stages if s["stage"] != "start Spark"]
    counts = {table.name: table.kept for table in dataset.manifest.tables}
    shutil.rmtree(out)
    return {
        "workload": kind,
        "publications": rows,
        "subscriptions": counts["subscriptions"],
        "audiences": dataset.manifest.stages["classes"],
        "seconds": sum(s["seconds"] for s in stages),
        "stages": stages,
        "peak_mb": {role: size >> 20 for role, size in sorted(memory.peak.items())},
    }


def write_selectors(folder: Path, subscriptions: int, publications: int) -> None:
    """Boxes and points that lie anywhere: the hardest case, as few audiences come again."""
    draw = np.random.default_rng(1)
    folder.mkdir()
    names = [f"a{i}" for i in range(ATTRIBUTES)]
    axes = "".join(f'{name} = {{ type = "number", min = 0.0, max = 1.0 }}\n' for name in names)
    listed = ", ".join(f'"{name}"' for name in names)
    told = f"[attributes]\n{axes}\n[topics.events]\nattributes = [{listed}]\n"
    (folder / "workload.toml").write_text(told)
    axis = draw.random((subscriptions, ATTRIBUTES)).argsort(axis=1)[:, :PREDICATES]
    low = draw.random(axis.shape) * (1 - WIDTH)
    filters = [
        " AND ".join(f"a{a} BETWEEN {x:.6f} AND {x + WIDTH:.6f}" for a, x in zip(*row, strict=True))
        for row in zip(axis.tolist(), low.tolist(), strict=True)
    ]
    who = [f"s{i:06d}" for i in range(subscriptions)]
    wanted = {"subscriber": who, "topic": ["events"] * subscriptions, "filter": filters}
    pq.write_table(pa.table(wanted), folder / "subscriptions.parquet")
    sent = {name: draw.random(publications) for name in names}
    topic = pa.array(["events"] * publications).dictionary_encode()
    time = np.arange(publications) / 1000
    pq.write_table(pa.table({"time": time, "topic": topic} | sent), folder / "publications.parquet")


def show(small: dict[str, Any], large: dict[str, Any]) -> None:
    """Two sizes side by side, stage by stage."""
    for one in (small, large):
        people, audiences = f"{one['subscriptions']:,}", f"{one['audiences']:,}"
        print(
            f"\n{one['workload']}: {people} subscriptions, {audiences} distinct audiences", end=""
        )
    print()
    print(f"{'stage':<24}{small['publications']:>14,}{large['publications']:>14,}   seconds")
    for a, b in zip(small["stages"], large["stages"], strict=True):
        print(f"{a['stage']:<24}{a['seconds']:>14.1f}{b['seconds']:>14.1f}")
    print(f"{'all':<24}{small['seconds']:>14.1f}{large['seconds']:>14.1f}")
    for role in small["peak_mb"]:
        print(f"{role:<24}{small['peak_mb'][role]:>14,}{large['peak_mb'].get(role, 0):>14,}   MB")
    data = large["publications"] / small["publications"]
    print(f"data × {data:.1f}: time × {large['seconds'] / small['seconds']:.2f}", end=", ")
    driver = [sum(v for k, v in r["peak_mb"].items() if "driver" in k) for r in (small, large)]
    print(f"driver memory × {driver[1] / driver[0]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--data", type=Path, help="keep the workloads here and use them again")
    parser.add_argument("--only", choices=[*SUBSCRIPTIONS, "selectors"], help="one workload alone")
    parser.add_argument("--master", default=MASTER, help="local[2]: all in the driver's process")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    os.environ |= AROUND | os.environ
    with tempfile.TemporaryDirectory(prefix="fanplan-ingest-") as folder:
        data = options.data or Path(folder)
        sizes = QUICK if options.quick else SIZES
        runs = dict.fromkeys(SUBSCRIPTIONS, sizes)
        runs["selectors"] = QUICK_SELECTORS if options.quick else SELECTORS
        kinds = [options.only] if options.only else list(runs)
        results = [[measure(kind, n, data, options.master) for n in runs[kind]] for kind in kinds]
    for pair in results:
        show(*pair)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
