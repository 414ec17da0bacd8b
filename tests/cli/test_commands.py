"""The commands as a user runs them: what they print, what they write, how they fail."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import answer, run
from forging import seal
from pyspark.sql import SparkSession
from sealing import amend

from fanplan.layers.channels.methods import METHODS

TOML = """
topic_syntax = "nats"
seconds = 10.0

[attributes]
price = { type = "number", min = 0.0, max = 100.0 }

[topics."q.*"]
attributes = ["price"]
grid = { price = 4 }

[topics.alerts]
"""
SUBSCRIPTIONS = """subscriber,topic,filter
ann,q.ibm,price > 30
bob,q.*,price BETWEEN 10 AND 60
carol,alerts,
dave,q.sun,prise > 1
eve,nothing,
"""
PUBLICATIONS = """topic,price,bytes
q.ibm,31,10
q.ibm,30,10
q.sun,59.5,10
q.sun,61,10
alerts,,10
alerts,,x
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "desk"
    folder.mkdir()
    (folder / "workload.toml").write_text(TOML)
    (folder / "subscriptions.csv").write_text(SUBSCRIPTIONS)
    (folder / "publications.csv").write_text(PUBLICATIONS)
    return folder


@pytest.fixture(scope="module")
def dataset(spark: SparkSession, desk: Path) -> Path:
    out = desk.parent / "dataset"
    assert run("ingest", desk, "--out", out, "--master", "local[2]") == 0
    return out


def plan(dataset: Path, out: Path, *words: object) -> int:
    """A plan by the simplest method: what it decides does not matter here."""
    chosen = () if "--method" in words else ("--method", "round-robin")
    return run("channels", dataset, "--channels", 2, "--out", out, *chosen, *words)


def test_ingest_counts_and_quarantines(
    desk: Path, dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = answer(capsys, "ingest", desk, "--out", dataset)
    assert code == 0
    counts = {name: [*table.values()][:3] for name, table in told["tables"].items()}
    assert counts == {"publications": [6, 5, 1], "subscriptions": [5, 3, 2]}
    rows = pq.read_table(dataset / "quarantine").to_pylist()
    reasons = {(row["source"], row["line"]): row["reason"] for row in rows}
    assert "unknown attribute prise" in reasons["subscriptions.csv", 5]
    assert "at character 1" in reasons["subscriptions.csv", 5]
    assert "workload.toml: nothing" in reasons["subscriptions.csv", 6]
    assert "bytes" in reasons["publications.csv", 7]
    assert {row["raw"] for row in rows} >= {"dave,q.sun,prise > 1", "alerts,,x"}


@pytest.mark.parametrize("method", [name for name in METHODS if name != "interior-point"])
def test_each_method_holds_and_replays_without_a_miss(
    dataset: Path, method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "plan"
    code, told = answer(
        capsys, "channels", dataset, "--channels", 2, "--method", method, "--out", out
    )
    assert code == 0
    assert told["cost"] >= told["perfect"] > 0
    assert told["flows"] == 3
    code, checked = answer(capsys, "check", out, dataset)
    assert (code, checked["ok"], checked["missed"]) == (0, True, 0)
    if method == "round-robin":
        replayed_is_measured(capsys, out, dataset)


def replayed_is_measured(capsys: pytest.CaptureFixture[str], out: Path, dataset: Path) -> None:
    """Cells are coarser than the filters here, so some of what a cell carries is unwanted."""
    code, told = answer(capsys, "replay", out, dataset, "--master", "local[2]")
    assert (code, told["publications"], told["missed"]) == (0, 5, 0)
    assert told["delivered"] == 5  # ann 1; bob 31, 30 and 59.5; carol 1
    assert told["unwanted"] > 0


def test_a_workload_folder_can_be_planned_without_ingesting_first(
    dataset: Path, spark: SparkSession, desk: Path, tmp_path: Path
) -> None:
    out = tmp_path / "plan"
    assert plan(desk, out, "--master", "local[2]") == 0
    assert run("check", out, dataset) == 0


def test_a_broken_plan_fails_check_and_replay(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "plan"
    assert plan(dataset, out) == 0
    members = pq.read_table(out / "channel_subscribers.parquet")
    keep = [row for row in members.to_pylist() if row["subscriber"] != "carol"]
    pq.write_table(pa.Table.from_pylist(keep, members.schema), out / "channel_subscribers.parquet")
    code, told = answer(capsys, "check", out, dataset)
    assert (code, told["ok"], told["missed"]) == (1, False, 1)
    assert any("carol" in violation for violation in told["violations"])
    assert run("replay", out, dataset) == 2
    assert "channel_subscribers.parquet (hash differs)" in capsys.readouterr().err
    seal(out)
    code, told = answer(capsys, "replay", out, dataset, "--master", "local[2]")
    assert (code, told["missed"]) == (1, 1)


BAD = {
    "no such folder": (("ingest", "nowhere", "--out", "out"), "nowhere"),
    "unknown method": (("channels", "{dataset}", "--channels", 2, "--method", "best"), "'best'"),
    "no channels": (("channels", "{dataset}", "--channels", 0), "0 channels"),
    "too many channels": (
        ("channels", "{dataset}", "--channels", 99, "--method", "round-robin"),
        "3 flows",
    ),
    "more channels than flows": (("channels", "{dataset}", "--channels", 4), "3 flows"),
    "not a number": (("channels", "{dataset}", "--channels", "many"), "'many'"),
    "the same twice": (("channels", "{dataset}", "--channels", "2,2"), "2"),
    "a curve from a plan": (
        ("channels", "{dataset}", "--channels", "1,2", "--from", "p"),
        "one number",
    ),
    "unknown pin": (("channels", "{dataset}", "--channels", 2, "--pin", "alert"), "'alerts'"),
    "contradiction": (
        ("channels", "{dataset}", "--channels", 2, "--pin", "q.ibm", "--off-multicast", "q.ibm"),
        "must go by multicast and must not",
    ),
    "churn of nothing": (("channels", "{dataset}", "--channels", 2, "--churn", 3), "--churn"),
    "nobody to explain": (("channels", "{dataset}", "--channels", 2, "--explain", "zoe"), "'zoe'"),
    "a curve compared": (
        ("channels", "{dataset}", "--channels", "1,2", "--compare", "tock"),
        "one number",
    ),
    "not an option": (("channels", "{dataset}", "--channels", 2, "--option", "luck=7"), "luck"),
    "no value": (("channels", "{dataset}", "--channels", 2, "--option", "starts"), "NAME=VALUE"),
    "comparison": (("channels", "{dataset}", "--channels", 2, "--compare", "luck"), "'luck'"),
    "second step": (("channels", "{dataset}", "--channels", 2, "--unicast", "greedy-flow"), "tock"),
    "limit": (
        ("channels", "{dataset}", "--channels", 2, "--method", "tock", "--unicast-limit", 0.5),
        "--unicast-limit",
    ),
    "weights": (("channels", "{dataset}", "--channels", 2, "--w1", -1), "received: -1.0 is out of"),
    "not a plan": (("check", "{dataset}", "{dataset}"), "plan.json"),
    "unknown grid": (("ingest", "{desk}", "--grid", "round"), "round"),
}


@pytest.mark.parametrize(("words", "named"), BAD.values(), ids=BAD.keys())
def test_bad_usage_is_exit_2_with_the_item_named_and_nothing_written(
    words: tuple[Any, ...],
    named: str,
    desk: Path,
    dataset: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {"dataset": dataset, "desk": desk}
    given = [word.format(**places) if isinstance(word, str) else word for word in words]
    out = tmp_path / "out"
    if "--out" not in given and given[0] != "check":
        given += ["--out", out]
    assert run(*given) == 2
    told = capsys.readouterr()
    assert named in told.err
    assert not told.out
    assert list(tmp_path.iterdir()) == []


def test_all_problems_of_a_description_are_told_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "subscriptions.csv").write_text("subscriber,topic\na,b\n")
    (tmp_path / "workload.toml").write_text(
        'rates = "guessed"\n[attributes]\nx = { type = "number", min = 5.0, max = 1.0 }\n'
    )
    assert run("ingest", tmp_path, "--out", tmp_path / "out") == 2
    told = capsys.readouterr().err
    assert "rates" in told
    assert "attributes.x" in told


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("", "there are no rows"),
        ("subscriber,topic\n", "there are no rows"),
        ("subscriber;topic\na;b\n", "semicolons"),
        ("subscriber\na\n", "'topic'"),
    ],
)
def test_subscriptions_that_say_nothing_stop_the_run(
    content: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "subscriptions.csv").write_text(content)
    assert run("ingest", tmp_path / "desk", "--out", tmp_path / "out") == 2
    assert named in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["desk"]


def test_full_cover_cannot_be_planned_as_channels(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = shutil.copytree(dataset, tmp_path / "full")
    amend(full, cover="full", exact=False)
    assert plan(full, tmp_path / "plan") == 2
    assert "overlap" in capsys.readouterr().err


def test_limits_that_cannot_be_met_are_exit_1_and_leave_nothing(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = ("--unicast-limit", 0, "--max-channels-per-subscriber", 0)
    assert plan(dataset, tmp_path / "plan", "--method", "kmodes", *limits) == 1
    assert "may join no channel" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_curve_has_a_plan_for_each_number(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "curve"
    code, told = answer(capsys, "channels", dataset, "--channels", "2,1", "--out", out)
    assert code == 0
    assert [point["channels"] for point in told["points"]] == [1, 2]
    assert run("check", out / "2", dataset) == 0
    assert run("channels", dataset, "--channels", "1,2", "--out", out, "--replace") == 0
    assert "a channel saves" in capsys.readouterr().out


def test_a_plan_is_replanned_compared_and_explained(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(dataset, tmp_path / "old") == 0
    words = ("channels", dataset, "--channels", 2, "--from", tmp_path / "old", "--churn", 1)
    asked = ("--explain", "ann", "--explain", "alerts", "--compare", "tock+greedy-flow")
    more = ("--option", "starts=2", "--option", "multiple=false")
    code, told = answer(capsys, *words, *asked, *more, "--out", tmp_path / "new")
    assert code == 0
    params = json.loads((tmp_path / "new" / "plan.json").read_text())["channels"]["params"]
    further = params["options"]
    assert (further["starts"], further["multiple"], params["start"]) == (2, False, "given")
    assert told["joins"] + told["leaves"] + told["added"] + told["removed"] <= 1
    assert [row["method"] for row in told["compared"]] == ["tock+greedy-flow"]
    assert [item.get("subscriber", item.get("flow")) for item in told["explained"]] == [
        "ann",
        "alerts",
    ]
    assert run(*words, *asked, "--out", tmp_path / "new", "--replace") == 0
    shown = capsys.readouterr().out
    for said in ("Subscriber ann wants", "Flow alerts", "next best", "cost given up %"):
        assert said in shown


def test_an_existing_plan_is_replaced_only_when_asked(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "plan"
    assert plan(dataset, out) == 0
    assert plan(dataset, out) == 2
    assert plan(dataset, out, "--replace", "--method", "random") == 0
    assert json.loads((out / "plan.json").read_text())["channels"]["params"]["method"] == "random"
