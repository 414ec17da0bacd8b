"""The same code on a real cluster and through a real Connect server, both on loopback.

From files to a replayed plan, and by tasks that import the package that was shipped to them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fanplan.api import Dataset
from fanplan.data import spark as sparks
from fanplan.data.secret import SECRET_FILE

# A machine that has never run Fanplan compiles the kernels first.
SECONDS = 400

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
WANTED = [
    ("ann", "q.*", "price > 30"),
    ("bob", "q.ibm", "venue = 'N'"),
    ("carol", ">", ""),
    ("ann", "alerts", ""),
]
QUOTES = [(f"q.{'ibm' if i % 3 else 'sun'}", i % 101, "NQ"[i % 2]) for i in range(300)]
ALERTS = 20


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    (folder / "workload.toml").write_text(TOML)
    lines = [",".join(row) for row in [("subscriber", "topic", "filter"), *WANTED]]
    (folder / "subscriptions.csv").write_text("\n".join(lines) + "\n")
    sent = [f"{i},{topic},{price},{venue}" for i, (topic, price, venue) in enumerate(QUOTES)]
    sent += [f"{i},alerts,," for i in range(ALERTS)]
    (folder / "publications.csv").write_text("time,topic,price,venue\n" + "\n".join(sent) + "\n")
    return folder


def expected() -> tuple[Counter[tuple[str, frozenset[str]]], Counter[tuple[str, str]]]:
    """Messages by flow and audience, where a cell is 25 wide; hits by subscription."""
    flows = Counter({("alerts", frozenset({"ann", "carol"})): ALERTS})
    hits = Counter({("ann", "alerts"): ALERTS, ("carol", ">"): ALERTS + len(QUOTES)})
    for topic, price, venue in QUOTES:
        cell = min(price // 25, 3)
        bob = topic == "q.ibm" and venue == "N"
        who = {"carol"} | ({"ann"} if cell >= 1 else set()) | ({"bob"} if bob else set())
        flows[f"{topic}[{cell},{'NQ'.index(venue)}]", frozenset(who)] += 1
        hits["ann", "q.*"] += price > 30
        hits["bob", "q.ibm"] += bob
    return flows, hits


def results(folder: Path) -> tuple[Counter[tuple[str, frozenset[str]]], Counter[tuple[str, str]]]:
    """The same of a dataset."""
    names, classes, flows, owners, hits = (
        Dataset(folder).table(name).to_pylist()
        for name in ("subscribers", "classes", "flows", "subscriptions", "hits")
    )
    name = {row["subscriber_id"]: row["subscriber"] for row in names}
    who = {c["audience_class"]: frozenset(map(name.__getitem__, c["subscribers"])) for c in classes}
    own = {row["subscription"]: (row["subscriber"], row["topic"]) for row in owners}
    return (
        Counter({(row["flow"], who[row["audience_class"]]): row["messages"] for row in flows}),
        Counter({own[row["subscription"]]: row["hits"] for row in hits}),
    )


# Runs in an interpreter of its own: a process is either a classic or a Connect client. Commands
# that name the same Spark share its session: a cluster starts executors once.
COMMANDS = """
import json, sys
from collections.abc import Iterator
from fanplan.cli.app import main
from fanplan.data import spark as sparks

def report(batches: Iterator) -> Iterator:
    import os
    import fanplan.core.kernels
    import numpy as np
    import pyarrow as pa
    from fanplan.layers.channels.search.model.assign import weighted_sum
    numbers = [batch.column(0).to_numpy().astype(float) for batch in batches]
    total = sum(int(weighted_sum(x, np.full(len(x), 2.0))) for x in numbers)
    row = {"folder": [os.getcwd()], "file": [fanplan.core.kernels.__file__], "total": [total]}
    yield pa.RecordBatch.from_pydict(row)

commands, where = map(json.loads, sys.argv[1:])
for words in commands:
    sys.argv = ["fanplan", *words, "--json"]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
spark = sparks.session(**where)
batch = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
columns = "folder string, file string, total long"
rows = spark.range(1000, numPartitions=4).mapInArrow(report, columns).collect()
print(json.dumps({"batch": batch, "rows": [row.asDict() for row in rows]}))
"""


def answers(
    conf: dict[str, str], folder: Path, where: dict[str, str], *commands: tuple[object, ...]
) -> list[dict[str, Any]]:
    """What commands say, one after the other in one process, and then tasks of a job.

    Their stdout holds nothing else, and their folder stays empty.
    """
    settings = " ".join(f"'{name}={value}'" for name, value in conf.items())
    words = json.dumps([[str(word) for word in command] for command in commands])
    result = subprocess.run(
        [sys.executable, "-c", COMMANDS, words, json.dumps(where)],
        cwd=folder,
        env=os.environ | {sparks.EXTRA: settings},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    # Nothing but what a person should know of the traffic.
    assert all(line.startswith("Note: ") for line in result.stderr.splitlines()), result.stderr
    assert list(folder.iterdir()) == []
    told: list[Any] = []
    rest = result.stdout.strip()
    while rest:
        answer, end = json.JSONDecoder().raw_decode(rest)
        told, rest = [*told, answer], rest[end:].strip()
    return told


@pytest.mark.parametrize("option", ["master", "remote"])
def test_from_files_to_a_replayed_plan_wherever_spark_runs(
    option: str,
    request: pytest.FixtureRequest,
    desk: Path,
    cluster_conf: dict[str, str],
    tmp_path: Path,
) -> None:
    address = request.getfixturevalue(
        {"master": "cluster_master", "remote": "connect_remote"}[option]
    )
    where = (f"--{option}", address)
    # A job starts when both workers have an executor, so that both take part. A Connect server has
    # settings of its own: these are passed over without a warning.
    together = {
        "spark.cores.max": "2",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{SECONDS}s",
    }
    conf = cluster_conf | together | {"spark.sql.shuffle.partitions": "3"}
    dataset, plan, here = (tmp_path / name for name in ("dataset", "plan", "here"))
    here.mkdir()
    *_, replayed, job = answers(
        conf,
        here,
        {option: address},
        ("ingest", desk, "--out", dataset, *where),
        ("channels", dataset, "--channels", 2, "--out", plan),
        ("replay", plan, dataset, *where),
    )
    assert results(dataset) == expected()
    assert (replayed["ok"], replayed["publications"], replayed["missed"]) == (True, 320, 0)
    assert job["batch"] == sparks.QUERIES["spark.sql.execution.arrow.maxRecordsPerBatch"]
    assert sum(row["total"] for row in job["rows"]) == sum(2 * x for x in range(1000))
    assert all("fanplan.zip" in row["file"] for row in job["rows"])
    workers = {row["folder"] for row in job["rows"]}
    assert len(workers) == 2 or option == "remote"


REFUSED = """
import os, sys
from pathlib import Path
from fanplan.core.errors import InputError
from fanplan.data import secret, spark
other = Path("secret")
other.touch(0o600)
other.write_text("another-secret-" * 3)
for named in (str(other), ""):
    os.environ[secret.SECRET_FILE] = named
    try:
        spark.session(master=sys.argv[1])
    except InputError as error:
        print(error)
"""


def test_who_does_not_know_the_secret_of_a_cluster_is_refused(
    cluster_master: str, cluster_conf: dict[str, str], tmp_path: Path
) -> None:
    settings = " ".join(f"'{name}={value}'" for name, value in cluster_conf.items())
    result = subprocess.run(
        [sys.executable, "-c", REFUSED, cluster_master],
        cwd=tmp_path,
        env=os.environ | {sparks.EXTRA: settings},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    told = result.stdout.splitlines()
    assert len(told) == 2
    assert all("it knows another secret" in line and SECRET_FILE in line for line in told)
