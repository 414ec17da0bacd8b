"""`fanplan churn` as a user runs it, on plans of groups and of a marking."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import answer, run
from group_datasets import write_group_dataset
from marking_datasets import write_marking_dataset
from marking_worlds import figure_2, tree_table
from overlays import routes_of
from ready import stages_are_there
from sealing import amend

LINKS = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)]
NAMES = [f"b{i}" for i in range(7)]
SENT = {(0, (3, 5)): 20.0, (0, (3, 4, 5, 6)): 20.0, (0, (6,)): 100.0, (6, (3, 6)): 30.0}


@pytest.fixture(autouse=True)
def _stages_are_there() -> Iterator[None]:
    """The datasets here come with the stages that Spark would make."""
    with stages_are_there():
        yield


@pytest.fixture
def grouped(tmp_path: Path) -> tuple[Path, Path]:
    """A dataset and its plan of groups."""
    dataset = write_group_dataset(tmp_path / "dataset", NAMES, routes_of(SENT), LINKS)
    assert run("groups", dataset, "--select", "top:100%", "--out", tmp_path / "plan") == 0
    return dataset, tmp_path / "plan"


def marked(folder: Path, trees: str) -> tuple[Path, Path]:
    dataset = write_marking_dataset(folder / "dataset", figure_2(), tree_table(A="AB BC BD"))
    assert run("mark", dataset, "--trees", trees, "--out", folder / "plan") == 0
    return dataset, folder / "plan"


def test_groups_are_rebuilt_and_nothing_is_lost(
    grouped: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    dataset, plan = grouped
    words = ("--events", 300, "--updates", 0.5, "--rebuild-every", 5, "--loss", 0.1, "--seed", 2)
    code, told = answer(capsys, "churn", plan, dataset, *words)
    assert (code, told["layer"], told["ok"]) == (0, "groups", True)
    assert told["publications"] + told["updates"] == told["events"] == 300
    assert told["rebuilds"] > 5
    assert told["resent"] > 0
    assert run("churn", plan, dataset, "--events", 50) == 0
    assert "arrivals, each exactly once" in capsys.readouterr().out


@pytest.mark.parametrize("trees", ["shared:B", "per-source", "given-shared"])
def test_a_marking_stays_the_best(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], trees: str
) -> None:
    dataset, plan = marked(tmp_path, trees)
    words = ("--events", 30, "--restarts", 5, "--loss", 0.1)
    code, told = answer(capsys, "churn", plan, dataset, *words)
    assert (code, told["layer"], told["ok"]) == (0, "marking", True)
    assert told["joins"] + told["leaves"] == 30
    best = told["schemes"]["best"]
    assert best["cost"] == best["optimum"]
    assert best["wrong_rests"] == 0
    assert run("churn", plan, dataset, "--events", 5) == 0
    assert "s everywhere" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--restarts", 3), "--restarts: means nothing to groups"),
        (("--layer", "marking"), "has no layer marking"),
        (("--layer", "trees"), "--layer: 'trees' has none. Use groups or marking"),
        (("--loss", 1.5), "--loss"),
        (("--updates", 2), "--updates: 2.0 is not a share"),
        (("--hold", "some"), "--hold"),
        (("--rebuild-every", -1), "--rebuild-every"),
    ],
)
def test_what_means_nothing_is_refused(
    grouped: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    words: tuple[object, ...],
    said: str,
) -> None:
    dataset, plan = grouped
    assert run("churn", plan, dataset, *words) == 2
    assert said in capsys.readouterr().err


def test_a_plan_of_other_input_is_refused(
    grouped: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset, plan = grouped
    amend(dataset, key="other")
    assert run("churn", plan, dataset) == 2
    assert "planned for other input" in capsys.readouterr().err
