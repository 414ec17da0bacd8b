"""The same code on a real cluster and through a real Connect server, both on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from fanplan.pipeline import spark as sparks

SECONDS = 180

# Runs in an interpreter of its own: a process is either a classic or a Connect client.
JOB = """
import json, sys
from collections.abc import Iterator
from fanplan.pipeline import spark as sparks

def report(batches: Iterator) -> Iterator:
    import os
    import fanplan.kernels
    import pyarrow as pa
    double = fanplan.kernels.compiled(lambda x: 2 * x)
    total = sum(double(x) for batch in batches for x in batch.column(0).to_numpy())
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
