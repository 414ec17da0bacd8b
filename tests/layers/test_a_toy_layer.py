"""How to add a layer: the folder tests/toy/census is all there is of one, and every verb knows it.

A layer of the package lies in fanplan/layers and is named in LAYERS there; this one is made known
for the length of a test.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import typer
from commands import run
from overlays import write_manifest, write_stage
from typer.testing import CliRunner

import fanplan
from fanplan import layers
from fanplan.cli.plan import add_planning
from fanplan.data.dataset import Dataset
from fanplan.layers.registry import records
from fanplan.verbs.plan import planner

TOY = Path(__file__).parents[1] / "toy"

WANTED = [("ann", "news"), ("bob", "news"), ("ann", "sport"), ("ann", "news"), ("bob", "music")]
LATER = [*WANTED, ("cat", "music")]


@pytest.fixture(autouse=True)
def _a_layer_more(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(layers, "__path__", [*layers.__path__, str(TOY)])
    monkeypatch.setattr(layers, "LAYERS", (*layers.LAYERS, "census"))
    records.cache_clear()
    yield
    records.cache_clear()


def write_dataset(folder: Path, wanted: list[tuple[str, str]], key: str) -> Dataset:
    folder.mkdir()
    subscribers, topics = map(list, zip(*wanted, strict=True))
    rows = write_stage(folder, "subscriptions", {"subscriber": subscribers, "topic": topics})
    write_manifest(folder, 1.0, {"subscriptions": rows}, key=key)
    return fanplan.open_dataset(folder)


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return write_dataset(tmp_path / "dataset", WANTED, "key-1")


@pytest.fixture
def plans(tmp_path: Path, dataset: Dataset) -> tuple[Path, Path]:
    """Every topic, and those that two want."""
    census = planner("census")
    return census(dataset).save(tmp_path / "all"), census(dataset, 2).save(tmp_path / "two")


def listed(plan: Path) -> dict[str, int]:
    rows = pq.read_table(plan / "census.parquet").to_pylist()
    return {row["topic"]: row["subscribers"] for row in rows}


def test_it_plans_and_passes_its_check(dataset: Dataset, plans: tuple[Path, Path]) -> None:
    assert [listed(plan) for plan in plans] == [{"music": 1, "news": 2, "sport": 1}, {"news": 2}]
    assert all(fanplan.check(plan, dataset).ok for plan in plans)


def test_the_check_names_what_is_wrong(dataset: Dataset, plans: tuple[Path, Path]) -> None:
    table = plans[0] / "census.parquet"
    pq.write_table(pq.read_table(table).slice(1), table)
    edited, wrong = fanplan.check(plans[0], dataset).violations
    assert edited == "edited since it was written, hash differs (1): census.parquet"
    assert wrong == "census: wrong numbers of subscribers (1): music"


def test_plans_are_compared(plans: tuple[Path, Path]) -> None:
    found = fanplan.compare(*plans)
    assert [(line.layer, line.name, line.values) for line in found.lines] == [
        ("census", "topics", (3.0, 1.0))
    ]
    assert found.differing == {"census.least": (1, 2)}


def test_each_topic_that_comes_or_goes_is_a_change(
    plans: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    there = fanplan.diff(*plans, steps_of=1)
    rows = there.changes().select(["step", "layer", "action", "flow"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (1, "census", "unlist", "music"),
        (2, "census", "unlist", "sport"),
    ]
    assert [step["after"]["topics"] for step in there.steps()] == [2, 1]
    back = fanplan.diff(plans[1], plans[0])
    assert back.changes()["action"].to_pylist() == ["list", "list"]
    assert run("diff", *plans) == 0
    assert "unlist 2 a topic leaves the list" in " ".join(capsys.readouterr().out.split())


def test_drift_is_told(tmp_path: Path, dataset: Dataset, plans: tuple[Path, Path]) -> None:
    assert fanplan.apply_check(plans[1], dataset).ok
    later = write_dataset(tmp_path / "later", LATER, "key-2")
    verdict = fanplan.apply_check(plans[1], later)
    assert (verdict.ok, verdict.reached) == (False, False)
    now = verdict.layers["census"]
    assert (now.moved["topics"].came, now.figures["topics"]) == (1, (1, 2))


def test_the_report_has_its_section(tmp_path: Path, plans: tuple[Path, Path]) -> None:
    report = fanplan.report(plans[0], tmp_path / "report")
    page = report.page.read_text()
    assert "How many want each topic." in page
    assert "sport" in page
    assert [saving["layer"] for saving in report.savings] == ["Census"]


def test_it_has_a_command(tmp_path: Path, dataset: Dataset) -> None:
    app = typer.Typer()
    add_planning(app)
    told = CliRunner().invoke(app, ["census", "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert "--least" in told.output
    assert "Leave out topics with fewer subscribers." in told.output
    words = ["census", str(dataset.path), "--out", str(tmp_path / "plan"), "--least", "2"]
    told = CliRunner().invoke(app, words)
    assert (told.exit_code, listed(tmp_path / "plan")) == (0, {"news": 2})
    assert "Census, checked" in told.output
