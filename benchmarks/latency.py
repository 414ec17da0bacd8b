"""How long a first contact takes: commands on small input, beside plain PySpark on the same rows.

    python benchmarks/latency.py [--quick] [--only NAME] [--times N] [--log] [--json FILE]

Each command runs in a process of its own, as a user would run it: cold, with a JVM of its own, and
warm, with the Spark that ``fanplan spark start`` keeps. Printed are wall seconds, processor seconds
and who took them: the driver's Python, the JVM, Python workers. Plain PySpark reads the same tables
and writes them as Parquet, which is the least that any pipeline on Spark takes. On a machine that
others use too, wall seconds say little: ``others`` is the processor time that was not this
command's, and of several ``--times`` the one counts in which it is least. With ``--log`` Spark's
event log tells how many queries, jobs and tasks there were; it takes some time of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.csv

ROOT = Path(__file__).parent.parent
GLANCE = 0.1
FANPLAN = (sys.executable, "-m", "fanplan")
PLAIN = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
for path in Path(sys.argv[1]).glob("*.csv"):
    rows = spark.read.csv(str(path), header=True)
    rows.write.parquet(f"{sys.argv[2]}/{path.stem}")
spark.stop()
"""
ROLES = {
    "pyspark.daemon": "workers",
    "fanplan.data.workers": "workers",
    "SparkSubmit": "JVM",
    "launcher.Main": "JVM",
    "python": "driver",
}


@dataclass
class Spent:
    """Wall seconds of a command, and processor seconds by who took them."""

    wall: float = 0.0
    roles: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    counts: Counter[str] = field(default_factory=Counter)
    others: float = 0.0
    """Processor seconds of all that ran beside it."""

    @property
    def processor(self) -> float:
        return sum(self.roles.values())


def measured(command: Sequence[str | Path], log: Path | None, beside: int | None = None) -> Spent:
    """Run a command and watch its processes, and those of a server ``beside`` it."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    if log:
        shutil.rmtree(log, ignore_errors=True)
        log.mkdir()
        environment["FANPLAN_SPARK_CONF"] = (
            f"spark.eventLog.enabled=true spark.eventLog.dir={log} spark.eventLog.compress=false "
            "spark.eventLog.rolling.enabled=false"
        )
    before, busy = sampled(beside), machine_seconds()
    begun = time.perf_counter()
    process = psutil.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=-1)
    taken: dict[int, tuple[str, float]] = {}
    while process.poll() is None:
        taken |= sampled(process.pid) | sampled(beside)
        time.sleep(GLANCE)
    spent = Spent(time.perf_counter() - begun)
    if process.returncode:
        raise SystemExit(f"{command}: {process.stderr.read().decode()}")
    for pid, (role, seconds) in taken.items():
        spent.roles[role] += seconds - before.get(pid, ("", 0.0))[1]
    spent.others = machine_seconds() - busy - spent.processor
    spent.counts = counted(log) if log else Counter()
    return spent


def machine_seconds() -> float:
    """Processor seconds of everybody so far."""
    used = psutil.cpu_times()
    return float(used.user + used.nice + used.system)


def sampled(root: int | None) -> dict[int, tuple[str, float]]:
    """Who a process and its descendants are, and the processor seconds they took so far."""
    found: dict[int, tuple[str, float]] = {}
    try:
        first = psutil.Process(root) if root else None
        processes = [first, *first.children(recursive=True)] if first else []
    except psutil.Error:
        return found
    for process in processes:
        try:
            words, used = " ".join(process.cmdline()), process.cpu_times()
        except psutil.Error:
            continue
        # A process that has ended and is not yet missed has no words; it was seen before.
        if not words:
            continue
        role = next((role for sign, role in ROLES.items() if sign in words), "workers")
        found[process.pid] = role, used.user + used.system
    return found


def counted(log: Path) -> Counter[str]:
    """Queries, jobs and tasks in Spark's event log."""
    names = {"SQLExecutionStart": "queries", "JobStart": "jobs", "TaskEnd": "tasks"}
    found: Counter[str] = Counter()
    for file in log.iterdir():
        for line in file.read_text().splitlines():
            event = json.loads(line)["Event"]
            found.update(name for sign, name in names.items() if event.endswith(sign))
    return found


# ---- workloads


def tutorial(folder: Path) -> None:
    """The tables of the tutorial, as its page has them."""
    text = (ROOT / "docs" / "tutorial.md").read_text()
    for name, content in re.findall(r"`((?:desk|firm)/[\w.]+)`[^`]*?```\w+\n(.*?)```", text, re.S):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    brokers = re.search(r"```csv\n(broker,site\n.*?)```", text, re.S)
    assert brokers is not None
    (folder / "firm" / "brokers.csv").write_text(brokers[1])


def many(folder: Path, rows: int) -> None:
    """The desk with more people, symbols and publications."""
    shutil.copytree(folder / "desk", folder / "many")
    draw, users = np.random.default_rng(1), rows // 20
    symbol = [f"quotes.s{i:03d}" for i in range(200)]
    low = draw.integers(0, 900, users)
    wanted = {
        "subscriber": [f"u{i % (users // 4):05d}" for i in range(users)],
        "topic": [symbol[i] for i in draw.integers(0, len(symbol), users)],
        "filter": [f"price BETWEEN {a} AND {a + 100}" for a in low],
    }
    sent = {
        "time": np.arange(rows - users) / 100,
        "topic": [symbol[i] for i in draw.integers(0, len(symbol), rows - users)],
        "venue": draw.choice(["N", "Q", "Z"], rows - users),
        "price": draw.uniform(0, 1000, rows - users).round(2),
        "bytes": draw.integers(50, 200, rows - users),
    }
    for name, columns in (("subscriptions", wanted), ("publications", sent)):
        pa.csv.write_csv(pa.table(columns), folder / "many" / f"{name}.csv")


# ---- what is measured


def commands(folder: Path) -> dict[str, tuple[str | Path, ...]]:
    """Commands by name, in an order in which each finds what it needs."""
    found: dict[str, tuple[str | Path, ...]] = {}
    for name in ("desk", "many"):
        found[f"{name}: plain PySpark"] = (
            sys.executable, "-c", PLAIN, folder / name, folder / f"{name}.plain",
        )  # fmt: skip
        found[f"{name}: ingest"] = (
            *FANPLAN, "ingest", folder / name, "--out", folder / f"{name}.dataset",
        )  # fmt: skip
    firm, plan = folder / "firm.dataset", folder / "firm.plan"
    found["firm: ingest"] = (*FANPLAN, "ingest", folder / "firm", "--out", firm)
    found["firm: design"] = (*FANPLAN, "design", firm, "--channels", "1", "--out", plan)
    found["firm: replay"] = (*FANPLAN, "replay", plan, firm)
    found["firm: all at once"] = (
        *FANPLAN, "design", folder / "firm", "--channels", "1", "--out", folder / "all.plan",
    )  # fmt: skip
    return found


def quietest(
    times: int, folder: Path, log: Path | None, only: str, beside: int | None = None
) -> dict[str, Spent]:
    """Each command in the run in which others took least."""
    runs = [run(folder, log, only, beside) for _ in range(times)]
    return {name: min((r[name] for r in runs), key=lambda spent: spent.others) for name in runs[0]}


def run(folder: Path, log: Path | None, only: str, beside: int | None) -> dict[str, Spent]:
    """All commands once, into places that are empty."""
    for left in (*folder.glob("*.dataset"), *folder.glob("*.plain"), *folder.glob("*.plan")):
        shutil.rmtree(left)
    wanted = {n: c for n, c in commands(folder).items() if only in n}
    plain = "plain PySpark"
    return {
        name: measured(command, None if plain in name else log, beside)
        for name, command in wanted.items()
        if not (beside and plain in name)
    }


def show(title: str, found: dict[str, Spent], plain: dict[str, Spent]) -> None:
    roles = ("driver", "JVM", "workers")
    heads = ("wall", "processor", *roles, "others", "queries", "jobs", "tasks", "of plain")
    print(f"\n{title:<22}" + "".join(f"{head:>10}" for head in heads))
    for name, spent in found.items():
        beside = plain.get(f"{name.partition(':')[0]}: plain PySpark")
        ratio = f"{spent.processor / beside.processor:>9.1f}×" if beside else f"{'':>10}"
        taken = (spent.roles[role] for role in roles)
        seconds = (spent.wall, spent.processor, *taken, spent.others)
        counts = (spent.counts[name] or "" for name in ("queries", "jobs", "tasks"))
        print(f"{name:<22}" + row(seconds) + "".join(f"{n:>10}" for n in counts) + ratio)


def row(seconds: Iterable[float]) -> str:
    return "".join(f"{s:>10.1f}" for s in seconds)


def warm(times: int, folder: Path, only: str) -> dict[str, Spent]:
    """The same with a Spark that was there before: the second time, as it then stays."""
    subprocess.run([*FANPLAN, "spark", "start"], check=True, cwd=ROOT)
    try:
        told = subprocess.check_output([*FANPLAN, "spark", "status", "--json"], cwd=ROOT)
        server = int(json.loads(told)["process"])
        # The event log is a setting of the server, which has none.
        run(folder, None, only, server)
        return quietest(times, folder, None, only, server)
    finally:
        subprocess.run([*FANPLAN, "spark", "stop"], check=True, cwd=ROOT)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows, to see that it runs")
    parser.add_argument("--only", default="", help="commands with this in their name")
    parser.add_argument("--times", type=int, default=1, help="run each so often")
    parser.add_argument("--log", action="store_true", help="count queries, jobs and tasks")
    parser.add_argument("--cold", action="store_true", help="no Spark that stays")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fanplan-latency-") as place:
        folder = Path(place)
        tutorial(folder)
        many(folder, 1_000 if options.quick else 100_000)
        log = folder / "log" if options.log else None
        cold = quietest(options.times, folder, log, options.only)
        show("cold", cold, cold)
        results: dict[str, Any] = {"cold": {n: vars(s) for n, s in cold.items()}}
        if not options.cold:
            kept = warm(options.times, folder, options.only)
            show("warm", kept, cold)
            results["warm"] = {n: vars(s) for n, s in kept.items()}
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
