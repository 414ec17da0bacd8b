"""The same input gives the same bytes, whatever the cores, hash seed, partitions, locale, zone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from chaos.count import Part
from chaos.runs import SECONDS, digest
from fanplan.layers.channels.methods import METHODS

# Commands of one process share its Spark.
SCRIPT = """
import json, sys
from fanplan.cli.app import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["fanplan", *words]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""


@dataclass(frozen=True)
class World:
    """Circumstances that a result must not depend on."""

    name: str
    master: str = "local[2]"
    conf: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


class Lived(NamedTuple):
    """What became of a world: commands, why they failed if they did, and its folders' digests."""

    name: str
    asked: int
    failed: str
    told: dict[str, str | None]


def worlds(cluster: str | None = None, conf: dict[str, str] | None = None) -> list[World]:
    """The usual circumstances first."""
    turkish = {"spark.driver.extraJavaOptions": "-Duser.language=tr -Duser.country=TR"}
    found = [
        World("two cores", environment={"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC"}),
        World("one core", "local[1]", environment={"NUMBA_NUM_THREADS": "1"}),
        World("four cores", "local[4]", environment={"PYTHONHASHSEED": "1"}),
        World("seven partitions", conf={"spark.sql.shuffle.partitions": "7"}),
        World(
            "another locale and zone",
            conf=turkish,
            environment={"LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "77"},
        ),
    ]
    return [*found, World("cluster", cluster, conf or {})] if cluster else found


PLANS = {
    "channels": "--channels 5",
    "channels restarts": "--channels 5 --restarts 4",
    "channels rows": "--channels 5 --on-spark",
    **{
        f"channels {method}": f"--channels 5 --method {method}"
        for method in METHODS
        if method not in ("kmodes", "exact")
    },
    "channels steps": "--channels 5 --method tock --unicast greedy-flow",
    "overlay": "",
    "overlay hybrid": "--metric hybrid",
    "overlay trees": "--trees 2",
    "allocate": "",
    "allocate cram": "--ranking cram --publishers cut",
    "allocate gig": "--ranking gig",
    "groups": "--trees per-publisher",
    "groups budget": "--trees per-publisher --select budget:20",
    "groups cells": "--trees per-publisher --select threshold:0 --cells 3",
    "mark": "--trees per-source",
    "mark merge": "--trees per-source --merge",
    "mesh": "",
    "mesh flat": "--method flat",
    "mesh flows": "--connect flows --aim degree",
    "design": "--channels 5",
}
"""Every planner, with what it is asked for."""
OF_CELLS = "channels genetic"
"""It plans cells, which exact flows do not have."""
COMPARED = ("channels", "overlay", "allocate", "mesh")
"""Commands that set other plans beside their own, unless they are told not to."""


def commands(workload: Path, master: str, planners: Collection[str]) -> list[list[str]]:
    """From files to plans by these planners, each in a folder of its own."""
    where = ["--master", master]

    def plan(name: str) -> list[str]:
        command = name.partition(" ")[0]
        alone = ["--compare", "none"] if command in COMPARED else []
        source = "cells" if name == OF_CELLS else "dataset"
        return [command, source, *PLANS[name].split(), *alone, "--out", name, *where]

    exact = ["ingest", str(workload), "--out", "dataset", *where]
    cells = ["ingest", str(workload), "--out", "cells", "--grid", "atomic", *where]
    return [exact, *([cells] if OF_CELLS in planners else []), *map(plan, planners)]


def attack_same(
    folder: Path, workload: Path, found: list[World], planners: Collection[str] = tuple(PLANS)
) -> Part:
    """Plan in every world and compare with the first.

    Two worlds at a time: much of each is the work of one core.
    """

    def live(number: int, world: World) -> Lived:
        here = folder / f"world-{number}"
        here.mkdir(parents=True)
        asked = commands(workload, world.master, planners)
        done = run_in(world, here, asked)
        told = {path.name: digest(path) for path in sorted(here.iterdir())}
        return Lived(world.name, len(asked), done.stderr if done.returncode else "", told)

    part = Part("determinism")
    with ThreadPoolExecutor(2) as pool:
        lived = [*pool.map(live, range(len(found)), found)]
    for name, asked, failed, told in lived:
        other = [
            f"other bytes in {each}" for each, d in lived[0].told.items() if told.get(each) != d
        ]
        wrong = [failed[-400:]] if failed else other
        part.hold(not wrong, f"{name}: {', '.join(wrong)}", asked)
        part.notes[name] = asked
    return part


def run_in(world: World, here: Path, asked: list[list[str]]) -> subprocess.CompletedProcess[str]:
    conf = " ".join(f"'{name}={value}'" for name, value in world.conf.items())
    return subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT, json.dumps(asked)],
        cwd=here,
        env=os.environ | {"FANPLAN_SPARK_CONF": conf} | world.environment,
        capture_output=True,
        text=True,
        timeout=3 * SECONDS,
        check=False,
    )
