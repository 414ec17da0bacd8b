"""A caller who has a Spark session of their own: it is used, and left as it was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from clusters import QUICK_JVM

from fanplan.data.java import java_home

SCRIPT = dedent(
    """
    from pyspark.sql import SparkSession

    import fanplan
    from fanplan.core.errors import InputError

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", "QUICK_JVM")
        .config("spark.sql.session.timeZone", "Asia/Tokyo")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    rows = [("ann", "news"), ("bob", "news")]
    subscriptions = spark.createDataFrame(rows, "subscriber string, topic string")
    publications = [{"time": i, "topic": "news"} for i in range(4)]
    tables = {"subscriptions": subscriptions.coalesce(1), "publications": publications}
    dataset = fanplan.ingest(tables, "dataset")
    assert dataset.table("flows")["messages"].to_pylist() == [4.0]
    assert fanplan.channels(dataset, 1).summary()["flows"] == 1
    try:
        fanplan.ingest(tables, "other", engine=fanplan.Engine("local[3]"))
    except InputError as error:
        assert "made elsewhere" in str(error)
    else:
        raise AssertionError("another master was promised")
    from fanplan.data import spark as ours

    ours.stop()
    assert spark.range(3).count() == 3
    assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    spark.stop()
    print("all well")
    """
).replace("QUICK_JVM", QUICK_JVM)


def test_frames_of_a_session_made_elsewhere_are_taken(tmp_path: Path) -> None:
    here = {"PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(java_home())}
    done = subprocess.run(
        (sys.executable, "-c", SCRIPT),
        cwd=tmp_path,
        env=os.environ | here,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.stdout.endswith("all well\n"), done.stderr[-3000:]
