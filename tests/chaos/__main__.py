"""`make chaos`: all attacks at full size; the table goes to docs/chaos.md if none failed."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clusters import QUICK_CONF, cluster

import fanplan
from chaos import kills, same, soak, watching
from chaos.corruptions import attack_corruptions
from chaos.count import Part, as_markdown, told
from chaos.rows import attack_rows
from chaos.runs import MARK, marked
from chaos.selectors import attack_selectors

SELECTORS, ROWS, KILLS, CORRUPTIONS, DESIGNS = 20_000, 210_000, 10, 1_000, 200
MARKS = ("<!-- chaos: begin -->", "<!-- chaos: end -->")


def main() -> None:
    words = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--only", action="append", choices=sorted(ATTACKS), default=[])
    words.add_argument("--docs", type=Path, help="page whose table is written anew")
    asked = words.parse_args()
    began, parts = time.monotonic(), list[Part]()
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        for name in asked.only or ATTACKS:
            start = time.monotonic()
            (Path(folder) / name).mkdir()
            for part in ATTACKS[name](Path(folder) / name, asked.seed):
                print(told(part), flush=True)
                parts.append(part)
            print(f"  {name}: {time.monotonic() - start:.0f} s", flush=True)
    minutes, cores = (time.monotonic() - began) / 60, os.cpu_count()
    told_all = f"Seed {asked.seed}, {minutes:.1f} minutes, {cores} cores.\n\n{as_markdown(parts)}"
    print(told_all)
    if any(part.failures for part in parts):
        sys.exit(1)
    if asked.docs:
        write_docs(asked.docs, told_all)


def write_docs(page: Path, table: str) -> None:
    before, rest = page.read_text(encoding="utf-8").split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    page.write_text(f"{before}{MARKS[0]}\n{table}{MARKS[1]}{after}", encoding="utf-8")


def selectors(folder: Path, seed: int) -> Iterator[Part]:
    yield attack_selectors(folder, SELECTORS, seed, fanplan.Engine())


def rows(folder: Path, seed: int) -> Iterator[Part]:
    yield from attack_rows(folder, ROWS, seed, fanplan.Engine())


def corruptions(folder: Path, seed: int) -> Iterator[Part]:
    yield from attack_corruptions(folder, CORRUPTIONS, seed)


def killed(folder: Path, seed: int) -> Iterator[Part]:
    """Embedded first, then on a cluster whose executors are killed."""
    here = folder / "here"
    here.mkdir()
    kills.prepare(here, fanplan.Engine())
    conf = {"FANPLAN_SPARK_CONF": " ".join(f"'{k}={v}'" for k, v in QUICK_CONF.items())}
    where = ("--master", "local[2]")
    found = [*kills.spark_cases(where), *kills.plan_cases(where)]
    yield from kills.attack(here, found, KILLS, seed, conf)
    os.environ[MARK] = "cluster"
    with cluster(folder / "cluster") as master:
        del os.environ[MARK]
        found = kills.spark_cases(("--master", master), ("executor",))
        yield from kills.attack(here, found, KILLS // 2, seed, conf, executor)


def executor() -> int | None:
    sign = "CoarseGrainedExecutorBackend"
    return next((pid for pid, words in marked("cluster") if sign in words), None)


def determinism(folder: Path, seed: int) -> Iterator[Part]:
    workload = folder / "workload"
    size: dict[str, Any] = {"sites": 2, "users": 24, "flows": 16, "publications": 2000}
    fanplan.generate("enterprise", workload, seed=seed, engine=fanplan.Engine(), **size)
    with cluster(folder / "cluster") as master:
        yield same.attack_same(folder, workload, same.worlds(master, QUICK_CONF))


def soaked(folder: Path, seed: int) -> Iterator[Part]:
    size: dict[str, Any] = {"sites": 2, "users": 20, "flows": 12, "publications": 1000}
    fanplan.generate("enterprise", folder / "workload", seed=seed, **size)
    dataset = fanplan.ingest(folder / "workload", folder / "dataset")
    yield soak.attack_soak(folder, dataset, DESIGNS, fanplan.Engine())


ATTACKS = {
    "selectors": selectors,
    "rows": rows,
    "corruptions": corruptions,
    "kills": killed,
    "watch": watching.attack,
    "determinism": determinism,
    "soak": soaked,
}

if __name__ == "__main__":
    main()
