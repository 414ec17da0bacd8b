"""Habits of the command line: where to begin, help by task, completion, messages, JSON keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from commands import answer, run
from ready import stages_are_there
from report_worlds import ReportWorld, write_design, write_report_dataset, write_report_world

import fanplan
from fanplan.cli.app import app
from fanplan.cli.grouped import TASKS
from fanplan.core.result import snake
from fanplan.verbs.ask import QUESTIONS
from fanplan.workload.generators import KINDS

PAGE = Path(__file__).parent.parent.parent / "docs" / "json.md"
SECTION = re.compile(r"^## `fanplan (\S+)`.*?\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
ROW = re.compile(r"^\| `(\w+)` \| ([\w ,]+) \|", re.MULTILINE)
NAMED_BY_USERS = {"params", "tables", "stages", "files", "rows", "running"}
"""What has names of the user's, of files or of tables as keys."""


# ---- where to begin


def test_alone_it_says_what_to_do_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    told = capsys.readouterr().out
    assert "fanplan demo" in told
    assert "fanplan ingest DESK" in told
    assert "╭" not in told


def all_commands() -> Iterator[tuple[str, Any]]:
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        yield name, command
        if name == "generate":
            yield from ((f"generate {kind}", command.get_command(None, kind)) for kind in KINDS)


def test_every_command_belongs_to_a_task() -> None:
    listed = {name for names in TASKS.values() for name in names}
    for name, command in all_commands():
        assert name.split()[0] in listed
        if " " not in name:
            assert command.rich_help_panel in TASKS


def test_help_shows_tasks_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    told = capsys.readouterr().out
    places = [told.index(f"─ {task} ─") for task in TASKS]
    assert places == sorted(places)
    assert "--install-completion" in told


@pytest.mark.parametrize("name", [name for name, _ in all_commands()])
def test_flags_have_no_type_and_lists_no_odd_default(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*name.split(), "--help") == 0
    told = capsys.readouterr().out
    for odd in ("<bool>", "<list[", "default: ()", "default: ([])"):
        assert odd not in told


def test_words_are_completed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_FANPLAN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "fanplan ch")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert run() == 0
    assert capsys.readouterr().out.split() == ["channels", "check", "churn"]


def test_completion_is_installed_where_the_shell_looks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    assert run("--install-completion", "bash") == 0
    assert "bash completion installed" in capsys.readouterr().out
    assert "fanplan" in (tmp_path / ".bashrc").read_text()


# ---- messages and JSON


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> ReportWorld:
    return write_report_world(tmp_path_factory.mktemp("habits"))


@pytest.fixture(scope="module")
def firm(tmp_path_factory: pytest.TempPathFactory) -> ReportWorld:
    folder = tmp_path_factory.mktemp("firm")
    sites = ("north", "north", "north", "south", "south", "south", None)
    dataset = write_report_dataset(folder / "dataset", sites)
    return ReportWorld(dataset, (write_design(dataset, folder / "plan", channels=2),))


def test_what_is_there_already_is_replaced_by_a_flag_that_is_named(
    world: ReportWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("diff", world.plans[0], world.plans[0], "--out", tmp_path / "changes")
    assert run(*words) == 0
    assert run(*words) == 2
    assert "add --replace (in Python: replace=True)" in capsys.readouterr().err
    assert run(*words, "--replace") == 0


def calls(world: ReportWorld, firm: ReportWorld, out: Path) -> dict[str, tuple[object, ...]]:
    data, (channels, _, _, marking) = world.dataset, world.plans
    plan = firm.plans[0]
    return {
        "channels": ("channels", data, "--channels", 3, "--out", out / "c"),
        "overlay": ("overlay", data, "--out", out / "o"),
        "allocate": ("allocate", data, "--out", out / "a"),
        "groups": ("groups", data, "--trees", "per-publisher", "--out", out / "g"),
        "mark": ("mark", data, "--trees", "per-source", "--out", out / "m"),
        "design": ("design", firm.dataset, "--channels", 2, "--out", out / "d"),
        "check": ("check", marking, data),
        "compare": ("compare", channels, channels),
        "diff": ("diff", channels, channels),
        "apply-check": ("apply-check", channels, data),
        "quarantine": ("quarantine", data),
        "simulate": ("simulate", plan, firm.dataset),
        "report": ("report", channels, "--out", out / "r"),
        "ask": ("ask", channels, "why", "x"),
    }


def test_json_is_what_its_page_says(
    world: ReportWorld, firm: ReportWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {name: dict(ROW.findall(text)) for name, text in SECTION.findall(PAGE.read_text())}
    with stages_are_there():
        for name, words in calls(world, firm, tmp_path).items():
            if name == "ask":
                continue
            code, told = answer(capsys, *words)
            assert code == 0, (name, told)
            assert set(told) <= set(said[name]), (name, set(told) - set(said[name]))
            for key, value in told.items():
                assert kind_of(value) in said[name][key].split(" or "), (name, key, value)
            for key in keys_of(told):
                assert key == snake(key), (name, key)
    missing = {"ask", "ingest", "replay", "trial", "export", "churn"} - said.keys()
    assert not missing


def test_json_of_ingest_is_what_its_page_says(world: ReportWorld) -> None:
    said = {name: dict(ROW.findall(text)) for name, text in SECTION.findall(PAGE.read_text())}
    assert set(fanplan.open_dataset(world.dataset).summary()) == set(said["ingest"])


def kind_of(value: Any) -> str:
    kinds = {bool: "boolean", int: "number", float: "number", str: "text", list: "list"}
    return "null" if value is None else kinds.get(type(value), "object")


def keys_of(value: Any) -> Iterator[str]:
    """All keys, but those that users or files gave their names."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key not in NAMED_BY_USERS:
                yield from keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


def test_questions_can_be_listed(world: ReportWorld, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ask", world.plans[0]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in QUESTIONS)
    assert run("ask", world.plans[0], "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"questions": QUESTIONS}
