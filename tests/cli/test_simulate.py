"""`fanplan simulate` as a user runs it, with stages that Spark makes from publications."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forging import seal
from overlays import broker_columns, problem_of, routes_of, write_manifest, write_plan, write_stage
from pyspark.sql import SparkSession

from fanplan.cli.app import main
from fanplan.core.progress import quiet
from fanplan.data.ingest.derived import Derived
from fanplan.data.reader import read_stage
from fanplan.layers.overlay.stages.routes import stage_client_sendings
from fanplan.network.trees import trees_of

BROKERS = 3
TOPICS = ("alerts", "quotes")
"""The first is plain, the second has one attribute from 0 to 100, in cells of 10."""

DRAW = Random(3)
SUBSCRIPTIONS = [
    # Who, where, topic, and the range in cells.
    (DRAW.randrange(4), DRAW.randrange(BROKERS), DRAW.randrange(2), low, low + DRAW.randrange(1, 5))
    for low in (0, 1, 2, 3, 5, 6, 0, 2)
]
PUBLICATIONS = [
    # When, by whom (a broker's name), topic, and the value.
    (DRAW.randrange(100) / 10, DRAW.randrange(BROKERS), DRAW.randrange(2), DRAW.uniform(0, 100))
    for _ in range(60)
]

Times = dict[tuple[int, tuple[int, ...]], list[float]]


def expected(to: int) -> Times:
    """Times by source and destinations; ``to`` is 0 for subscribers, 1 for brokers."""
    found: Times = defaultdict(list)
    for time, publisher, topic, value in PUBLICATIONS:
        reached = {
            one[to]
            for one in SUBSCRIPTIONS
            if one[2] == topic and (topic == 0 or one[3] * 10 <= value < one[4] * 10)
        }
        found[publisher, tuple(sorted(reached))].append(time)
    return {ends: sorted(times) for ends, times in found.items()}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ingest would leave, without the stages that a simulation needs."""
    folder = tmp_path_factory.mktemp("simulate") / "dataset"
    folder.mkdir()
    stages = {
        name: write_stage(folder, name, columns)
        for name, columns in (tables() | interest_tables()).items()
    }
    write_manifest(folder, 10.0, stages, dimensions=1)
    return folder


def tables() -> dict[str, dict[str, Any]]:
    time, publisher, topic, value = zip(*PUBLICATIONS, strict=True)
    plain = problem_of(routes_of({}), [5.0] * BROKERS, 10.0)
    return {
        "brokers": broker_columns(plain),
        "publications": {
            "time": time,
            "publisher": [f"b{i}" for i in publisher],
            "topic": [TOPICS[i] for i in topic],
            "bytes": [10] * len(time),
            "x0": [v if t else np.nan for v, t in zip(value, topic, strict=True)],
        },
        "topics": {"topic": TOPICS, "topic_id": ints(range(2)), "space": ints(range(2))},
        "grid": {
            "topic_id": ints([1]),
            "axis": ints([0]),
            "edges": [[10.0 * i for i in range(10)] + [np.nextafter(100.0, 101.0)]],
        },
    }


def interest_tables() -> dict[str, dict[str, Any]]:
    subscriber, broker, topic, low, high = zip(*SUBSCRIPTIONS, strict=True)
    number = list(range(len(SUBSCRIPTIONS)))
    boxes = {"topic_id": ints(topic), "subscription": number, "subscriber_id": ints(subscriber)}
    ends = [
        {"lo": within(topic, low, size), "hi": within(topic, high, size)} for size in (10.0, 1.0)
    ]
    return {
        "subscriptions": {
            "subscription": number,
            "subscriber": [f"s{i}" for i in subscriber],
            "subscriber_id": ints(subscriber),
            "topic": [TOPICS[i] for i in topic],
            "broker": [f"b{i}" for i in broker],
        },
        "regions": boxes | ends[0],
        "cover": boxes | ends[1],
    }


def within(topic: tuple[int, ...], cell: tuple[int, ...], size: float) -> pa.Array:
    """An end of a box; a plain topic has no axis."""
    lists = [[size * c] if t else [] for t, c in zip(topic, cell, strict=True)]
    return pa.array(lists, pa.list_(pa.float64()))


def ints(values: Any) -> pa.Array:
    return pa.array(list(values), pa.int32())


@pytest.fixture
def plan(dataset: Path, tmp_path: Path) -> Path:
    """Two trees: what enters at broker 0 takes the second."""
    routes = routes_of({ends: len(times) for ends, times in expected(to=1).items()})
    links = [np.array(tree, np.int32) for tree in ([(0, 1), (1, 2)], [(0, 1), (0, 2)])]
    trees = trees_of(tuple(links), np.array([1, 0, 0], np.int32))
    problem = problem_of(routes, [5.0] * BROKERS, 10.0)
    return write_plan(tmp_path / "plan", dataset, problem, trees)


def run(*words: object) -> int:
    """Exit code of `fanplan simulate WORDS` in this process, where Spark is running already."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["fanplan", "simulate", *map(str, words)])
        with pytest.raises(SystemExit) as exit_:
            main()
    return int(exit_.value.code or 0)


def timed(dataset: Path, stage: str) -> Times:
    rows = read_stage(dataset, stage).to_pylist()
    return {(row["source"], tuple(row["destinations"])): row["times"] for row in rows}


def test_a_plan_and_a_workload_are_all_it_needs(
    spark: SparkSession,
    dataset: Path,
    plan: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "run"
    words = ("--congestion", "none", "--out", out, "--json", "--master", "local[2]")
    assert run(plan, dataset, *words) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["agrees"], told["times"], told["trees"]) == (True, "measured", 2)
    assert "delay" in told["compared"]
    assert told["publications"] == len(PUBLICATIONS)
    assert told["delay_max_ms"] == pytest.approx(200.0)
    saved = json.loads((out / "summary.json").read_text())
    assert saved.items() <= told.items()
    brokers = pq.read_table(out / "brokers.parquet")
    busiest = max(brokers["processed"].to_pylist())
    assert told["busiest_brokers"][0]["processed"] == told["processed_max"] == busiest
    # Points and cells come to the same routes, each with as many times as messages.
    times = expected(to=1)
    assert timed(dataset, "sendings") == times
    routes = read_stage(dataset, "routes").to_pylist()
    counts = {(r["source"], tuple(r["destinations"])): r["messages"] for r in routes}
    assert counts == {ends: len(own) for ends, own in times.items()}


def test_sendings_of_clients(spark: SparkSession, dataset: Path) -> None:
    stage_client_sendings(Derived(lambda: spark, dataset, quiet()))
    assert timed(dataset, "client_sendings") == expected(to=0)


def test_a_person_reads_figures_and_a_verdict(
    dataset: Path, plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(plan, dataset, "--congestion", "queue", "--speed", 20, "--master", "local[2]") == 0
    told = capsys.readouterr().out
    for words in ("times of messages", "Busiest brokers", "Busiest links", "mean delay, ms"):
        assert words in told
    assert told.endswith("It agrees with the plan's ledger: messages.\n")


def test_disagreement_is_an_error(
    dataset: Path, plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = json.loads((plan / "plan.json").read_text())
    record["overlay"]["ledger"]["arrivals"] += 1
    (plan / "plan.json").write_text(json.dumps(record))
    seal(plan)
    assert run(plan, dataset, "--master", "local[2]") == 1
    assert "does not agree with the plan's ledger:\narrivals: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--speed", "0"), "--speed: 0.0 is out of range"),
        (("--unit-ms", "0"), "--unit-ms: 0.0 is out of range"),
        (("--match-ms", "-1"), "--match-ms"),
        (("--times", "guessed"), "--times: 'guessed' is unknown"),
        (("--congestion", "jam"), "--congestion: 'jam' is unknown"),
    ],
)
def test_bad_options_are_named_and_nothing_is_written(
    dataset: Path,
    plan: Path,
    tmp_path: Path,
    words: tuple[str, str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(plan, dataset, *words, "--out", tmp_path / "run") == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["plan"]
