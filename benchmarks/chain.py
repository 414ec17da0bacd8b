"""The whole chain at growing sizes: generate, ingest, design, check and replay, as commands.

    python benchmarks/chain.py [--sizes 10000000 100000000] [--quick] [--data DIR] [--master URL]

An enterprise of brokers, topics with attributes and filters, whose publications are Parquet. Each
step is a command in a process of its own, with embedded Spark on two cores: one JVM, whose heap is
the same at all sizes, and Python workers. Beside the seconds are peak resident memory and the peak
of all files on the disk: workload, dataset, plan, and what Spark and a command put aside. Nothing
may be missed by a replay.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from ingest import Memory

SIZES, QUICK = (10_000_000, 100_000_000), (100_000, 400_000)
CHANNELS, SECONDS = 20, 30
"""Of a design: multicast groups of each site, and how long it may search."""
ROLES = ("driver python", "driver JVM", "executor python")
MASTER, HEAP = "local[2]", {"FANPLAN_SPARK_CONF": "spark.driver.memory=3g"}


class Disk(threading.Thread):
    """The most bytes that files in a folder took, sampled while it runs."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder, self.peak = folder, 0
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(1.0):
            self.peak = max(self.peak, used(self.folder))


def used(folder: Path) -> int:
    """Bytes of all files in a folder, some of which may go while it looks."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
    return total


def command(words: list[str], folder: Path, master: str) -> dict[str, Any]:
    """Run one command: what it said, its seconds, and peaks of memory and of disk."""
    (folder / "tmp").mkdir(exist_ok=True)
    put_aside = {"TMPDIR": str(folder / "tmp")}
    begun = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "fanplan", *words, "--json", "--master", master],
        env=HEAP | os.environ | put_aside,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        watching = Memory(process.pid), Disk(folder)
        for watch in watching:
            watch.start()
        said, _ = process.communicate()
        for watch in watching:
            watch.over.set()
            watch.join()
    if process.returncode:
        raise SystemExit(f"fanplan {' '.join(words)} ended with {process.returncode}: {said}")
    peaks = {role: size >> 20 for role, size in watching[0].peak.items()}
    seconds = time.perf_counter() - begun
    disk, left = max(watching[1].peak, used(folder)), used(folder)
    return {"seconds": seconds, "mb": peaks, "disk": disk, "left": left, "said": json.loads(said)}


def chain(rows: int, folder: Path, master: str) -> dict[str, dict[str, Any]]:
    """Every step at one size."""
    folder.mkdir()
    workload, dataset, plan = (str(folder / name) for name in ("workload", "dataset", "plan"))
    made = ["generate", "enterprise", "--publications", str(rows), "--seed", "1"]
    searched = ["design", dataset, "--time", str(SECONDS)]
    steps = {
        "generate": [*made, "--out", workload],
        "ingest": ["ingest", workload, "--out", dataset],
        "design": [*searched, "--channels", str(CHANNELS), "--out", plan],
        "check": ["check", plan, dataset],
        "replay": ["replay", plan, dataset],
    }
    done = {}
    for name, words in steps.items():
        done[name] = command(words, folder, master)
        show(name, rows, done[name])
    said = done["replay"]["said"]
    if (said["missed"], said["publications"]) != (0, rows):
        raise SystemExit(f"replay: {said['publications']} sent, {said['missed']} missed")
    return done


def show(name: str, rows: int, step: dict[str, Any]) -> None:
    memory = " | ".join(f"{step['mb'].get(role, 0):,}" for role in ROLES)
    rate = f"{rows / step['seconds']:,.0f}"
    disk = " | ".join(f"{step[what] / 1e9:.2f}" for what in ("disk", "left"))
    print(f"| {name} | {rows:,} | {step['seconds']:.1f} | {rate} | {memory} | {disk} |", flush=True)


def beside(small: dict[str, dict[str, Any]], large: dict[str, dict[str, Any]]) -> None:
    """How much more the larger size took, step by step."""
    for name, one in small.items():
        taken = [
            (step["seconds"], *(step["mb"].get(role, 0) for role in ROLES[:2]), step["disk"])
            for step in (large[name], one)
        ]
        ratios = [f"{a / b:.2f}" if b else "" for a, b in zip(*taken, strict=True)]
        print(f"| {name} | {' | '.join(ratios)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--data", type=Path, help="where to work; kept")
    parser.add_argument("--master", default=MASTER)
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    sizes = QUICK if options.quick else options.sizes
    heads = "step", "publications", "s", "rows/s", "driver's Python, MB"
    more = "JVM, MB", "Python workers, MB", "disk at most, GB", "disk then, GB"
    print("| " + " | ".join(heads + more) + " |\n" + "| --- " * 9 + "|", flush=True)
    with tempfile.TemporaryDirectory(prefix="fanplan-chain-") as scratch:
        data = options.data or Path(scratch)
        data.mkdir(exist_ok=True)
        results = [chain(rows, data / str(rows), options.master) for rows in sizes]
    print(
        "\n| step | time × | driver's Python × | JVM × | disk × |\n| --- | --- | --- | --- | --- |"
    )
    for small, large in pairwise(results):
        beside(small, large)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
