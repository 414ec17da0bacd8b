"""`fanplan mark` as a user runs it, on a dataset with its stage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commands import answer, run
from marking_datasets import write_marking_dataset
from marking_worlds import figure_2, network, tree_table
from overlays import write_stage
from ready import stages_are_there
from sealing import amend


@pytest.fixture(autouse=True)
def _stages_are_there() -> Iterator[None]:
    """The datasets here come with the stages that Spark would make."""
    with stages_are_there():
        yield


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_marking_dataset(tmp_path / "dataset", figure_2(), tree_table(A="AB BC BD"))


@pytest.mark.parametrize("trees", ["shared:B", "per-source", "given", "given-shared"])
def test_mark_writes_a_plan_that_holds(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], trees: str
) -> None:
    out = tmp_path / "plan"
    code, told = answer(capsys, "mark", dataset, "--trees", trees, "--out", out)
    assert (code, told["cost"], told["params"]["trees"]) == (0, 5.0, trees)
    assert [row["cost"] for row in told["compared"]] == [8.0, 6.0, 5.0]
    assert pq.read_table(out / "marks.parquet").num_rows == told["links"] == 3
    assert run("check", out, dataset) == 0
    assert "The plan holds." in capsys.readouterr().out


def test_mark_shows_it_beside_broadcasting(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--trees", "per-source", "--control-by", "latency", "--price", "stored=1", "--raw")
    assert run("mark", dataset, "--out", tmp_path / "plan", *words) == 0
    shown = capsys.readouterr().out
    for said in ("Marking, checked", "publications everywhere", "best", "20", "p-links"):
        assert said in shown


def test_merged_costs_are_shown_beside_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    covers = [(False, "D", ["C"], 1)]
    dataset = write_marking_dataset(tmp_path / "d", figure_2(), covers=covers)
    words = ("--trees", "per-source", "--merge")
    assert run("mark", dataset, "--out", tmp_path / "plan", *words) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["cost,", "merged", "5"] in shown
    assert ["best", "merged", "5", "5", "1.67", "2"] in shown
    assert ["subscriptions", "everywhere", "8", "7", "2.33", "3"] in shown
    assert run("check", tmp_path / "plan", dataset) == 0


def test_another_layer_is_not_in_the_plan(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("mark", dataset, "--trees", "given", "--out", tmp_path / "plan") == 0
    assert run("simulate", tmp_path / "plan", dataset) == 2
    assert "has no layer delivery, overlay or groups, only marking" in capsys.readouterr().err


WRONG = {
    "trees": (("--trees", "best"), "--trees: 'best' is unknown. Use shared:CORE"),
    "core": (("--trees", "shared:E"), "--trees: there is no node 'E'"),
    "control": (("--trees", "given", "--control-by", "far"), "--control-by: 'far' is unknown"),
    "sending": (("--trees", "given", "--sending", "one"), "--sending: is now --control-by"),
    "merge": (("--trees", "given", "--merge", "--raw"), "--merge: covered regions cannot both"),
    "stored": (("--trees", "given", "--price", "stored=-1"), "--price: stored: -1.0 is out of"),
    "storing": (("--trees", "given", "--storing", "1"), "Write --price stored=VALUE"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_wrong_use_is_answered_and_nothing_is_written(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: Any
) -> None:
    words, said = wrong
    assert run("mark", dataset, "--out", tmp_path / "plan", *words) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "plan").exists()


def test_rows_of_the_network_in_quarantine_are_named(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A loop and a node that is entered twice do not come through ingest."""
    counted = {"rows": 4, "kept": 3, "quarantined": 1}
    amend(dataset, tables={"links": counted, "trees": counted})
    quarantine = {
        "table": ["trees", "links", "links", "subscriptions"],
        "source": ["trees.csv", "links.csv", "empty.csv", "x.csv"],
        "line": [5, 4, None, 1],
        "raw": ["A,D,C", "C,C", None, "x"],
        "reason": ["duplicate", "a link joins a broker to itself", "is empty", "no topic"],
    }
    write_stage(dataset, "quarantine", quarantine)
    for trees, lines in (("given", 2), ("per-source", 1)):
        assert run("mark", dataset, "--trees", trees, "--out", tmp_path / "plan") == 2
        said = capsys.readouterr().err.splitlines()
        what = "links.csv, line 4: 'C,C': a link joins a broker to itself"
        assert said[0] == f"fanplan: {what}. Mend it"
        assert len(said) == lines


def test_replay_tells_whether_marks_still_hold(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Later E, behind D, subscribes too, and C no longer; D wants so little that s-links pay."""
    words = ("mark", dataset, "--trees", "per-source", "--out", tmp_path / "plan")
    assert answer(capsys, *words)[0] == 0
    code, told = answer(capsys, "replay", tmp_path / "plan", dataset)
    assert (code, told["cost"], told["best"], told["changed"]) == (0, 5.0, 5.0, 0)
    world = network("ABCDE", ["AB", "BC", "BD", "DE"], {"A": 2}, {"D": 1, "E": 1})
    later = write_marking_dataset(tmp_path / "later", world)
    code, told = answer(capsys, "replay", tmp_path / "plan", later)
    found = {name: told[name] for name in ("unmarked", "unused", "broken", "repaired", "changed")}
    assert (code, found) == (
        1,
        {"unmarked": 1, "unused": 1, "broken": 0, "repaired": 0, "changed": 2},
    )
    assert (told["planned"], told["cost"], told["best"]) == (5.0, 5.0, 5.0)
    assert run("replay", tmp_path / "plan", later) == 1
    assert "do not hold: mark again" in capsys.readouterr().out
