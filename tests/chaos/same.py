"""The same input gives the same bytes, whatever the cores, hash seed, partitions, locale, zone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from chaos.count import Part
from chaos.runs import SECONDS, digest

# Commands of one process share its Spark.
SCRIPT = """
import json, sys
from fanplan.cli.main import main
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


def commands(workload: Path, master: str) -> list[list[str]]:
    """From files to a plan by every planner, each in a folder of its own."""
    where = ["--master", master]

    def plan(name: str, *words: str) -> list[str]:
        return [name.partition("-")[0], "dataset", *words, "--out", name, *where]

    return [
        ["ingest", str(workload), "--out", "dataset", *where],
        plan("channels", "--channels", "5"),
        plan("channels-restarts", "--channels", "5", "--restarts", "4"),
        plan("channels-tock", "--channels", "5", "--method", "tock"),
        plan("overlay"),
        plan("allocate"),
        plan("groups"),
        plan("mark"),
        plan("design", "--channels", "5"),
    ]


def attack_same(
    folder: Path, workload: Path, found: list[World], planners: tuple[str, ...] = ()
) -> Part:
    """Plan in every world and compare with the first; only some of the ``planners`` if named."""
    part = Part("determinism")
    expected: dict[str, str | None] = {}
    for number, world in enumerate(found):
        here = folder / f"world-{number}"
        here.mkdir(parents=True)
        asked = [
            words
            for words in commands(workload, world.master)
            if not planners or words[0] in ("ingest", *planners)
        ]
        done = run_in(world, here, asked)
        if done.returncode:
            part.hold(False, f"{world.name}: {done.stderr[-400:]}", len(asked))
            continue
        got = {path.name: digest(path) for path in sorted(here.iterdir())}
        expected = expected or got
        other = [name for name in expected if got.get(name) != expected[name]]
        part.hold(not other, f"{world.name}: other bytes in {', '.join(other)}", len(asked))
        part.notes[world.name] = len(asked)
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
