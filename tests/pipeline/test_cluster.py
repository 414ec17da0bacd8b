"""The same code on a real cluster and through a real Connect server, both on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fanplan.api import Dataset
from fanplan.pipeline import spark as sparks

# A machine that has never run Fanplan compiles the kernels first.
SECONDS = 400

# Runs in an interpreter of its own: a process is either a classic or a Connect client.
JOB = """
import json, sys
from collections.abc import Iterator
from fanplan.pipeline import spark as sparks

def report(batches: Iterator) -> Iterator:
    import os
    import fanplan.kernels
    import numpy as np
    import pyarrow as pa
    from fanplan.planners.channels.kmodes.assign import weighted_sum
    numbers = [batch.column(0).to_numpy().astype(float) for batch in batches]
    total = sum(int(weighted_sum(x, np.full(len(x), 2.0))) for x in numbers)
    row = {"folder": [os.getcwd()], "file": [fanplan.kernels.__file__], "total": [total]}
    yield pa.RecordBatch.from_pydict(row)

with sparks.running(**json.loads(sys.argv[1])) as spark:
    rows = spark.range(1000, numPartitions=4).mapInArrow(
        report, "folder string, file string, total long"
    )
    batch = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    print(json.dumps({"rows": [row.asDict() for row in rows.collect()], "batch": batch}))
"""


def run_job(folder: Path, **arguments: object) -> list[dict[str, Any]]:
    """What the tasks of the job report. Its stdout holds nothing else, its folder stays empty."""
    result = subprocess.run(
        [sys.executable, "-c", JOB, json.dumps(arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert list(folder.iterdir()) == []
    told = json.loads(result.stdout)
    assert told["batch"] == sparks.QUERIES["spark.sql.execution.arrow.maxRecordsPerBatch"]
    return list(told["rows"])


def check_rows(rows: list[dict[str, Any]]) -> None:
    assert sum(row["total"] for row in rows) == sum(2 * x for x in range(1000))
    assert all("fanplan.zip" in row["file"] for row in rows)


def test_executors_of_a_cluster_import_the_shipped_package(
    cluster_master: str, cluster_conf: dict[str, str], tmp_path: Path
) -> None:
    # The job starts when both workers have an executor, so that both take part.
    together = {"spark.cores.max": "2", "spark.scheduler.minRegisteredResourcesRatio": "1.0"}
    rows = run_job(tmp_path, master=cluster_master, conf=cluster_conf | together)
    check_rows(rows)
    assert len({row["folder"] for row in rows}) == 2


def test_a_connect_server_imports_the_shipped_package(
    connect_remote: str, cluster_conf: dict[str, str], tmp_path: Path
) -> None:
    # Settings of a JVM are the server's own: they are passed over without a warning.
    check_rows(run_job(tmp_path, remote=connect_remote, conf=cluster_conf))


# ---- the whole way, from files to a replayed plan

TOML = """
topic_syntax = "nats"
[attributes]
price = { type = "number", min = 0.0, max = 100.0 }
venue = { type = "category", values = ["N", "Q"] }
[topics."q.*"]
attributes = ["price", "venue"]
grid = { price = 4 }
[topics.alerts]
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    (folder / "workload.toml").write_text(TOML)
    wanted = "ann,q.*,price > 30\nbob,q.ibm,venue = 'N'\ncarol,>,\nann,alerts,\n"
    (folder / "subscriptions.csv").write_text("subscriber,topic,filter\n" + wanted)
    sent = [f"{i},q.{'ibm' if i % 3 else 'sun'},{i % 101},{'NQ'[i % 2]}" for i in range(300)]
    sent += [f"{i},alerts,," for i in range(20)]
    (folder / "publications.csv").write_text("time,topic,price,venue\n" + "\n".join(sent) + "\n")
    return folder


def results(dataset: Path) -> dict[str, Any]:
    """What must not depend on where Spark ran."""
    tables = {
        name: Dataset(dataset).table(name).to_pylist()
        for name in ("topics", "subscribers", "flows", "classes")
    }
    hits = sorted(map(repr, Dataset(dataset).table("hits").to_pylist()))
    return {**tables, "hits": hits, "key": Dataset(dataset).manifest.key}


# Commands that name the same Spark share its session: a cluster starts executors once.
COMMANDS = """
import json, sys
from fanplan.cli.main import main

for words in json.loads(sys.argv[1]):
    sys.argv = ["fanplan", *words, "--json"]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""


def answers(conf: dict[str, str], *commands: tuple[object, ...]) -> list[dict[str, Any]]:
    """What commands say, one after the other in one process."""
    settings = " ".join(f"'{name}={value}'" for name, value in conf.items())
    words = json.dumps([[str(word) for word in command] for command in commands])
    result = subprocess.run(
        [sys.executable, "-c", COMMANDS, words],
        env=os.environ | {sparks.EXTRA: settings},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (result.returncode, result.stderr) == (0, ""), result.stdout
    told, rest = [], result.stdout.strip()
    while rest:
        answer, end = json.JSONDecoder().raw_decode(rest)
        told, rest = [*told, answer], rest[end:].strip()
    return told


@pytest.fixture(scope="module")
def embedded(desk: Path, cluster_conf: dict[str, str]) -> dict[str, Any]:
    out = desk.parent / "embedded"
    answers(cluster_conf, ("ingest", desk, "--out", out))
    return results(out)


@pytest.mark.parametrize("option", ["--master", "--remote"])
def test_files_become_the_same_dataset_and_replay_wherever_spark_runs(
    option: str,
    request: pytest.FixtureRequest,
    desk: Path,
    embedded: dict[str, Any],
    cluster_conf: dict[str, str],
    tmp_path: Path,
) -> None:
    fixture = {"--master": "cluster_master", "--remote": "connect_remote"}[option]
    where = (option, request.getfixturevalue(fixture))
    conf = cluster_conf | {"spark.sql.shuffle.partitions": "3"}
    dataset, plan = tmp_path / "dataset", tmp_path / "plan"
    *_, replayed = answers(
        conf,
        ("ingest", desk, "--out", dataset, *where),
        ("channels", dataset, "--channels", 2, "--out", plan),
        ("replay", plan, dataset, *where),
    )
    assert results(dataset) == embedded
    assert (replayed["ok"], replayed["publications"], replayed["missed"]) == (True, 320, 0)
