"""Watch over Spark Connect: the versions of an embedded Spark, and after a kill as well."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from streams import decided, write_changes, write_window, write_workload

import fanplan
from fanplan.core.errors import InputError
from fanplan.data.engine import Engine

ENGINE = Engine("local[2]")
SECONDS = 900


def test_versions_are_those_of_embedded_spark(
    spark: SparkSession, connect_remote: str, tmp_path: Path
) -> None:
    desk = write_workload(tmp_path / "desk", attributes=True)
    for window in range(3):
        write_window(desk, window, attributes=True)
    dataset = fanplan.ingest(desk, tmp_path / "dataset", engine=ENGINE)
    fanplan.channels(dataset, 2, engine=ENGINE).save(tmp_path / "plan")
    for window in range(3, 9):
        write_window(desk, window, attributes=True, swapped=window > 4)
    change = {"time": 40, "action": "add", "subscriber": "u0", "topic": "t11"}
    write_changes(desk, "new", [change])
    asked: Any = {"window": 10.0, "patience": 2, "half_life": 2.0, "files": 2}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in asked.items()]
    words = ["watch", "plan", "--stream", "desk", "--state", "far", "--remote", connect_remote]
    command = [sys.executable, "-m", "fanplan", *words, *options]

    killed = subprocess.Popen(command, cwd=tmp_path)
    last, deadline = tmp_path / "far" / "batches" / "1", time.monotonic() + SECONDS
    while not last.exists() and killed.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    killed.kill()
    killed.wait()
    assert last.exists()
    subprocess.run([*command, "--once"], cwd=tmp_path, check=True, timeout=SECONDS)

    asked |= {"once": True}
    found = fanplan.watch(tmp_path / "plan", desk, tmp_path / "here", engine=ENGINE, **asked)
    assert found.version > 0
    assert decided(tmp_path / "far") == decided(tmp_path / "here")
    assert not list((tmp_path / "far" / "handed").glob("*.json"))
    with pytest.raises(InputError, match="was begun with over_connect True"):
        fanplan.watch(tmp_path / "plan", desk, tmp_path / "far", engine=ENGINE, **asked)
