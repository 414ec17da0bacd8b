"""The loop without Spark: windows, decisions, versions, and what stands after a kill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from delivery_datasets import planned, world_of
from followed import Sent, even, first_plan, follower, run, skewed
from ready import stages_are_there

from fanplan.core import folder as folders
from fanplan.core.errors import InputError
from fanplan.data.engine import Engine
from fanplan.layers.registry import load_plan
from fanplan.verbs.check import check_plan
from fanplan.watching.planning import planning_of
from fanplan.watching.state import State


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return first_plan(tmp_path_factory.mktemp("plan"), even())


def windows(numbers: range, sent: Sent) -> list[dict[int, Sent]]:
    return [{number: sent} for number in numbers]


MOVING = {8: 4}
"""From batch 8 on, four of eight users have changed desks: each desk wants everything."""
STREAM = [*windows(range(8), even()), *windows(range(8, 24), skewed(3))]


def decisions(state: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (state / "decisions.jsonl").read_text().splitlines()]


def content(state: Path) -> dict[str, bytes]:
    """All versions and decisions, byte by byte."""
    files = sorted((state / "versions").rglob("*"))
    found = {str(file.relative_to(state)): file.read_bytes() for file in files if file.is_file()}
    return found | {"decisions": (state / "decisions.jsonl").read_bytes()}


def test_a_plan_that_fits_stays(plan: Path, tmp_path: Path) -> None:
    made = run(follower(tmp_path, plan, STREAM[:8]))
    found = decisions(made.state.folder)
    assert [each["window"] for each in found] == list(range(7))
    assert {each["decision"] for each in found} == {"keep"}
    assert made.state.last().version == 0


def test_a_plan_follows_and_every_version_holds(plan: Path, tmp_path: Path) -> None:
    made = run(follower(tmp_path, plan, STREAM, MOVING, churn=6))
    state = made.state
    versions = state.versions()
    assert len(versions) > 2
    for number in range(1, len(versions)):
        version = state.version(number)
        assert check_plan(version / "plan", version / "dataset").ok
        changes = json.loads((version / "changes" / "changes.json").read_text())
        assert changes["ok"]
        assert versions[number]["holds"]
        assert changes["new"] == f"versions/{number}/plan"
        assert versions[number]["changes"] <= 6
        assert versions[number]["reason"]
    found = decisions(state.folder)
    assert found[-1]["missed"] == 0
    assert found[-1]["gap_percent"] < max(each["gap_percent"] for each in found)
    assert all(each["bound"] <= each["fresh"] * (1 + 1e-9) for each in found)


def test_who_is_not_reached_any_more_is_seen_to_at_once(plan: Path, tmp_path: Path) -> None:
    made = run(follower(tmp_path, plan, STREAM[:12], MOVING, gap=1e9))
    assert [v["version"] for v in made.state.versions()] == [0, 1]
    assert "reached again" in made.state.versions()[1]["reason"]
    assert made.state.versions()[1]["changes"] == 0


@pytest.mark.parametrize("size", [2, 3, 24])
def test_batches_may_end_where_they_like(plan: Path, tmp_path: Path, size: int) -> None:
    one = run(follower(tmp_path / "one", plan, STREAM))
    joined = [
        dict(kv for b in STREAM[i : i + size] for kv in b.items()) for i in range(0, 24, size)
    ]
    many = run(follower(tmp_path / "many", plan, joined))

    def told(state: Path) -> list[dict[str, Any]]:
        return [{k: v for k, v in each.items() if k != "batch"} for each in decisions(state)]

    assert told(one.state.folder) == told(many.state.folder)


def test_late_rows_and_rows_far_ahead_are_counted_and_set_apart(plan: Path, tmp_path: Path) -> None:
    late, ahead = {0: {"t00": 7}, 4: even()}, {5: even(), 90_000: {"t01": 3}}
    made = run(follower(tmp_path, plan, [*STREAM[:4], late, ahead, *STREAM[6:8]]))
    last = made.state.last()
    assert (last.counts["late"], last.counts["ahead"]) == (7, 3)
    assert last.latest == 7
    assert [each["window"] for each in decisions(made.state.folder)] == list(range(7))


def test_a_stream_that_moves_on_by_itself_is_followed(plan: Path, tmp_path: Path) -> None:
    later = windows(range(90_000, 90_004), even())
    made = run(follower(tmp_path, plan, [*STREAM[:4], *later]))
    assert made.state.last().latest == 90_003
    assert made.state.last().counts["ahead"] == 0


def test_a_design_is_refused_with_what_to_do_instead(tmp_path: Path) -> None:
    with stages_are_there():
        design, _ = planned(tmp_path, world_of(1))
    with pytest.raises(InputError, match=r"by `fanplan design`.*`fanplan channels`.*apply-check"):
        planning_of(load_plan(design), Engine())


def test_lateness_keeps_windows_open(plan: Path, tmp_path: Path) -> None:
    late = {3: {"t00": 7}, 4: even()}
    made = run(follower(tmp_path, plan, [*STREAM[:4], late, *STREAM[5:8]], lateness=20.0))
    assert made.state.last().counts["late"] == 0
    assert [each["window"] for each in decisions(made.state.folder)] == list(range(5))


def test_where_nothing_can_be_planned_the_last_plan_stays(plan: Path, tmp_path: Path) -> None:
    stream = [*windows(range(2), even()), {2: {"unknown": 5}}, *windows(range(3, 5), even())]
    made = run(follower(tmp_path, plan, stream, half_life=0.05))
    found = decisions(made.state.folder)
    assert [each["window"] for each in found] == list(range(4))
    assert "no other plan can be made" in found[2]["reason"]
    assert {each["decision"] for each in found} == {"keep"}


class Killed(BaseException):
    """As a process that ends in the middle of a write."""


def test_a_kill_at_any_write_changes_nothing(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches, moves = STREAM[6:11], {2: 4}
    whole = content(run(follower(tmp_path / "whole", plan, batches, moves)).state.folder)
    put, writes = folders.put, 0

    def killing(at: int) -> Any:
        def put_or_die(new: Path, path: Path, before: Any) -> None:
            nonlocal writes
            writes += 1
            if writes == at:
                raise Killed
            put(new, path, before)
            if writes == at + 1:
                raise Killed

        return put_or_die

    at, kills = 1, 0
    while True:
        writes = 0
        monkeypatch.setattr(folders, "put", killing(at))
        folder = tmp_path / str(at)
        try:
            run(follower(folder, plan, batches, moves))
            break
        except Killed:
            kills += 1
        monkeypatch.setattr(folders, "put", put)
        assert content(run(follower(folder, plan, batches, moves)).state.folder) == whole
        at += 4
    assert kills >= 5


def test_a_folder_of_another_watch_is_refused(plan: Path, tmp_path: Path) -> None:
    made = run(follower(tmp_path, plan, STREAM[:2]))
    with made.state.held(), pytest.raises(InputError, match="was begun with plan given"):
        made.state.agree({"plan": "other"})


def test_a_folder_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    """A watch sweeps its own folder `work` and what was half written; not that of others."""
    (tmp_path / "mine" / "work").mkdir(parents=True)
    (tmp_path / "mine" / "work" / "thesis").write_text("years")
    with (
        pytest.raises(InputError, match="is not the state of a watch"),
        State(tmp_path / "mine").held(),
    ):
        pass
    assert [path.name for path in (tmp_path / "mine").rglob("*")] == ["work", "thesis"]


def test_a_watch_that_does_not_begin_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), State(tmp_path / "watch").held():
        raise RuntimeError
    assert [*tmp_path.iterdir()] == []
