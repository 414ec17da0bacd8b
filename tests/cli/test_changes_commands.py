"""`fanplan compare`, `diff` and `apply-check` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commands import answer, run
from datasets import Flow, World, plan_dataset, save_plan, write_dataset, write_manifest
from meanings import as_markdown

from fanplan.cli.changes_shown import meanings
from fanplan.plan.changes import CHANGES

WORLD = World(
    (Flow(frozenset({0, 1}), 4.0), Flow(frozenset({1, 2}), 6.0), Flow(frozenset({2}), 1.0)), 3
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("changes")
    dataset = write_dataset(folder / "dataset", WORLD)
    for method in ("broadcast", "unicast"):
        save_plan(plan_dataset(dataset, method), dataset, folder / method)
    return folder


@pytest.fixture(autouse=True)
def _in_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def test_compare(capsys: pytest.CaptureFixture[str]) -> None:
    code, told = answer(capsys, "compare", "broadcast", "unicast")
    assert (code, told["plans"]) == (0, ["broadcast", "unicast"])
    assert run("compare", "broadcast", "unicast") == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split() for row in rows if row.startswith("cost")] == [["cost", "44", "42", "*"]]
    assert run("compare", "broadcast") == 2
    assert "PLAN: 1 is too few. Name two or more" in capsys.readouterr().err


def test_diff_tells_steps_and_writes_them(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    words = ("diff", "broadcast", "unicast", "dataset", "--steps-of", 3, "--out", "steps")
    code, told = answer(capsys, *words)
    assert (code, told["ok"], told["steps_of"]) == (0, True, 3)
    assert told["layers"]["channels"]["changes"] == {"unicast": 5, "drop": 3, "leave": 3}
    assert [step["changes"] for step in told["steps"]] == [3, 3, 3, 2]
    costs = [step["after"]["cost"] for step in told["steps"]]
    assert (costs[-1], told["layers"]["channels"]["before"]["cost"]) == (42.0, 44.0)
    assert json.loads((folder / "steps" / "changes.json").read_text()) == told
    rows = pq.read_table(folder / "steps" / "changes.parquet").to_pylist()
    assert [row["step"] for row in rows] == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4]
    assert (rows[0]["action"], rows[0]["flow"], rows[0]["subscriber"]) == ("unicast", "t0", "s0")
    assert run(*words) == 2
    assert "is a list of changes already" in capsys.readouterr().err
    assert run(*words, "--replace") == 0
    told_to_a_person = capsys.readouterr().out
    assert "leave 3 a subscriber leaves a channel" in " ".join(told_to_a_person.split())
    assert "Every step holds." in told_to_a_person


def test_diff_of_a_plan_with_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("diff", "broadcast", "broadcast") == 0
    assert "Nothing changes." in capsys.readouterr().out


def test_many_steps_are_shortened(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fanplan.cli.changes_shown.SHOWN", 4)
    assert run("diff", "broadcast", "unicast", "--steps-of", 1) == 0
    assert "7 more steps in between" in capsys.readouterr().out


WRONG = {
    "no plan": (("diff", "nowhere", "unicast"), "nowhere: no plan.json here"),
    "no step": (("diff", "broadcast", "unicast", "--steps-of", 0), "--steps-of: 0 is too few"),
    "other input": (("diff", "broadcast", "unicast", "later"), "was planned for other input"),
}


@pytest.mark.parametrize(("words", "named"), WRONG.values(), ids=WRONG.keys())
def test_wrong_use_is_named(
    words: Any, named: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later(folder)
    assert run(*words) == 2
    assert named in capsys.readouterr().err


def later(folder: Path) -> Path:
    """The dataset, with one subscriber more."""
    if not (folder / "later").exists():
        more = World((*WORLD.flows[:2], Flow(frozenset({2, 3}), 1.0)), 4, key="key-2")
        write_dataset(folder / "later", more)
    return folder / "later"


def test_apply_check(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("apply-check", "broadcast", "dataset") == 0
    assert "the workload is the one it was made for" in capsys.readouterr().out
    later(folder)
    code, told = answer(capsys, "apply-check", "broadcast", "later")
    assert (code, told["ok"], told["reached"]) == (1, False, False)
    assert told["layers"]["channels"]["missed"] == 1
    assert run("apply-check", "broadcast", "later") == 1
    said = capsys.readouterr().out
    assert "Drifted: the input has the key key-2, not key-1" in said
    assert "pairs of a flow and a subscriber who wants it (1)" in said
    assert "Plan again, starting from this plan" in said
    assert run("apply-check", "broadcast", "later", "--allow-drift", "s3 is a test") == 0
    assert "Allowed: s3 is a test" in capsys.readouterr().out


def test_apply_check_refuses_an_edited_plan(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = folder / "dataset"
    plan = save_plan(plan_dataset(dataset, "broadcast"), dataset, tmp_path / "plan").folder
    rows = pq.read_table(plan / "channel_subscribers.parquet")
    pq.write_table(rows.slice(1), plan / "channel_subscribers.parquet")
    assert run("apply-check", plan, dataset, "--allow-drift", "I know") == 1
    assert "Refused: edited since it was written: channel_subscribers" in capsys.readouterr().out


def test_a_dataset_of_another_window_is_drift(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = write_dataset(tmp_path / "dataset", WORLD)
    plan = save_plan(plan_dataset(dataset, "unicast"), dataset, tmp_path / "plan").folder
    write_manifest(dataset, World(WORLD.flows, 3, seconds=8.0, key="key-2"))
    assert run("apply-check", plan, dataset) == 1
    assert "Drifted: seconds was 2 and is 8" in capsys.readouterr().out


def test_documentation_has_the_table_and_every_action() -> None:
    text = (Path(__file__).parents[2] / "docs" / "changes.md").read_text(encoding="utf-8")
    assert as_markdown(CHANGES) in text
    for action, meaning in meanings().items():
        assert f"| `{action}` | {meaning} |" in text
