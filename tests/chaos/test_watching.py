"""A small part of the attack on watch, and a control: it must be able to fail."""

from __future__ import annotations

from pathlib import Path

from clusters import QUICK_CONF
from pyspark.sql import SparkSession
from streams import decided

import fanplan
from chaos.watching import attack_watch, prepare

CONF = {"FANPLAN_SPARK_CONF": " ".join(f"'{k}={v}'" for k, v in QUICK_CONF.items())}


def test_kills_of_watch(spark: SparkSession, tmp_path: Path) -> None:
    prepare(tmp_path, 8, fanplan.Engine("local[2]"))
    # The first kills of all that are attacked side by side are of one kind.
    part = attack_watch(tmp_path, 1, 1, CONF)
    assert part.failures == []
    assert part.tried > 1
    assert (tmp_path / "killed-0" / "versions" / "1").is_dir()
    log = tmp_path / "killed-0" / "decisions.jsonl"
    log.write_text(log.read_text().replace("keep", "kept", 1))
    assert decided(tmp_path / "killed-0") != decided(tmp_path / "whole")
