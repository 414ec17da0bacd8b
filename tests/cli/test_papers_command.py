"""The command `fanplan papers`: its list, its errors."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from fanplan.cli.papers import papers
from fanplan.core.errors import InputError
from fanplan.papers import PAPERS, load_experiment

app = typer.Typer()
app.command()(papers)


def test_without_a_name_the_papers_are_listed() -> None:
    told = CliRunner().invoke(app, ["--json"])
    assert json.loads(told.output) == {"papers": PAPERS}
    assert "hybrid" in CliRunner().invoke(app, []).output


def test_an_unknown_paper_is_named_with_those_there_are() -> None:
    error = CliRunner().invoke(app, ["hybird"]).exception
    assert isinstance(error, InputError)
    assert error.exit_code == 2
    assert "hybird: no such paper. Use one of: hybrid" in str(error)


def test_what_cannot_be_written_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    taken = CliRunner().invoke(app, ["hybrid", "--out", str(tmp_path)]).exception
    assert "is not results of a paper" in str(taken)
    page = ["hybrid", "--out", str(tmp_path / "new"), "--docs", str(tmp_path / "none.md")]
    assert "has no section for hybrid" in str(CliRunner().invoke(app, page).exception)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_what_was_not_measured_cannot_be_judged_again(tmp_path: Path) -> None:
    error = CliRunner().invoke(app, ["hyper", "--again", "--out", str(tmp_path / "x")]).exception
    assert isinstance(error, InputError)
    assert "has no samples.parquet. Measure first" in str(error)


def test_without_matplotlib_it_is_said_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    error = CliRunner().invoke(app, ["hyper", "--out", str(tmp_path / "new")]).exception
    assert isinstance(error, InputError)
    assert str(error).endswith("Install it: pip install 'fanplan[papers]'")
    assert list(tmp_path.iterdir()) == []
    assert CliRunner().invoke(app, []).exit_code == 0


@pytest.mark.parametrize("name", PAPERS)
def test_every_listed_paper_can_be_loaded(name: str) -> None:
    experiment = load_experiment(name)
    assert experiment.name == name
    assert experiment.full.runs >= 5
    assert experiment.full.runs >= experiment.quick.runs >= 1
