"""A small part of every attack, and controls: an attack must be able to fail."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from clusters import QUICK_CONF, QUICK_JVM
from pyspark.sql import SparkSession

import fanplan
from chaos import kills, same, soak
from chaos.corruptions import attack_corruptions
from chaos.count import Part, as_markdown, told
from chaos.rows import attack_rows
from chaos.runs import Run, digest
from chaos.selectors import attack_selectors, matches, sqlite

HERE = fanplan.Engine("local[2]")
SIZE: dict[str, Any] = {"sites": 2, "users": 16, "flows": 12, "publications": 600}


@pytest.fixture(scope="module")
def workload(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chaos")
    return fanplan.generate("enterprise", folder / "workload", seed=3, engine=HERE, **SIZE)


def test_selectors(spark: SparkSession, tmp_path: Path) -> None:
    part = attack_selectors(tmp_path, 600, 1, HERE)
    assert part.failures == []
    assert part.notes["compared with SQLite"] > 100
    assert part.notes["quarantined"] > 100


def test_rows(spark: SparkSession, tmp_path: Path) -> None:
    parts = attack_rows(tmp_path, 1500, 1, HERE)
    assert [part.failures for part in parts] == [[], [], []]
    assert all(part.notes["quarantined"] > 100 < part.notes["kept"] for part in parts)


def test_corruptions(tmp_path: Path) -> None:
    """Of few plans: `test_forged` forges them all."""
    parts = attack_corruptions(tmp_path, 30, 1, ("channels", "marking", "design"))
    assert [part.failures for part in parts] == [[] for _ in parts]
    assert all(part.tried > 5 for part in parts)


def test_one_kill_of_each_kind(spark: SparkSession, workload: Path, tmp_path: Path) -> None:
    conf = {"FANPLAN_SPARK_CONF": " ".join(f"'{k}={v}'" for k, v in QUICK_CONF.items())}
    (tmp_path / "here").mkdir()
    cases = [kills.spark_cases(("--master", "local[2]"))[0], kills.plan_cases(())[1]]
    kills.prepare(tmp_path / "here", HERE, {case.name for case in cases})
    for case, count in zip(cases, (3, 2), strict=True):
        (part,) = kills.attack(tmp_path / "here", [case], count, 5, conf)
        assert part.failures == []


def test_determinism(workload: Path, tmp_path: Path) -> None:
    found = [quickly(world) for world in same.worlds()]
    part = same.attack_same(tmp_path, workload, [found[1], found[-1]], ("channels", "design"))
    assert part.failures == []


def quickly(world: same.World) -> same.World:
    """The same circumstances, with a JVM that starts sooner."""
    name = "spark.driver.extraJavaOptions"
    java = {name: f"{QUICK_JVM} {world.conf.get(name, '')}"}
    return replace(world, conf=world.conf | java)


def test_soak(spark: SparkSession, workload: Path, tmp_path: Path) -> None:
    dataset = fanplan.ingest(workload, tmp_path / "dataset", engine=HERE)
    part = soak.attack_soak(tmp_path, dataset, 8, HERE)
    assert [text for text in part.failures if "memory" not in text] == []


def test_attacks_can_fail(tmp_path: Path) -> None:
    """The judges tell a wrong answer from a right one."""
    base = sqlite([(5.0, 0.0, 0.5, "N"), (50.0, 0.0, 0.5, "o'neill")])
    assert matches(base, "price > 10") == 1
    assert matches(base, "venue = 'o''neill' OR \"bid size\" < .5") == 1
    assert matches(base, "price >") is None
    part = Part("attack")
    part.hold(True, "")
    part.hold(False, "something broke")
    assert (part.tried, part.survived) == (2, 1)
    assert "something broke" in told(part)
    assert "| attack | 2 | 1 | 1 |" in as_markdown([part])
    (tmp_path / "a").mkdir()
    assert digest(tmp_path / "none") is None
    before = digest(tmp_path / "a")
    (tmp_path / "a" / "file").write_text("x")
    assert digest(tmp_path / "a") not in (before, None)


def test_a_process_left_running_is_found(tmp_path: Path) -> None:
    """A command that does not end when it is asked to is a failure."""
    run = Run(("--version",), tmp_path)
    run.start()
    assert run.ended() == 0
    assert run.await_alone(1) == []
    wrong = kills.struck(Run(("no-such-command",), tmp_path), ("driver", signal.SIGINT), 300, int)
    assert wrong == ["it ended with 2"]
