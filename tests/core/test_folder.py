"""Folders and files appear whole or not at all, and never in place of something else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fanplan.core.errors import InputError
from fanplan.core.folder import PLAN, aside, put, require_free, whole_folder, write_whole


def write_plan(folder: Path, text: str, replace: bool = False) -> None:
    with whole_folder(folder, PLAN, replace) as written:
        (written / "plan.json").write_text(text)


def write_half(path: Path) -> None:
    with aside(path) as written:
        written.mkdir()
        (written / "half").touch()
        raise ZeroDivisionError


def test_what_fails_leaves_nothing_behind_and_what_was_there(tmp_path: Path) -> None:
    write_plan(tmp_path / "plan", "old")
    (tmp_path / "file").write_text("old")
    for path in (tmp_path / "plan", tmp_path / "file", tmp_path / "new"):
        with pytest.raises(ZeroDivisionError):
            write_half(path)
    assert sorted(os.listdir(tmp_path)) == ["file", "plan"]
    assert (tmp_path / "plan/plan.json").read_text() == (tmp_path / "file").read_text() == "old"


def test_a_folder_or_file_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    write_plan(tmp_path / "deep" / "plan", "old")
    write_plan(tmp_path / "deep" / "plan", "new", replace=True)
    write_whole(tmp_path / "deep" / "file", "old")
    write_whole(tmp_path / "deep" / "file", "new")
    assert sorted(os.listdir(tmp_path / "deep")) == ["file", "plan"]
    assert (tmp_path / "deep/plan/plan.json").read_text() == "new"
    assert (tmp_path / "deep/file").read_text() == "new"


def test_only_a_folder_of_the_same_kind_is_replaced_and_only_when_asked(tmp_path: Path) -> None:
    write_plan(tmp_path / "plan", "old")
    with pytest.raises(InputError, match="is a plan already"):
        write_plan(tmp_path / "plan", "new")
    (tmp_path / "thesis").mkdir()
    require_free(tmp_path / "thesis", PLAN, replace=False)
    (tmp_path / "thesis" / "chapter.txt").touch()
    with pytest.raises(InputError, match="is not a plan"):
        write_plan(tmp_path / "thesis", "new", replace=True)


def test_a_replacement_cut_short_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, new = tmp_path / "plan", tmp_path / "new"
    write_plan(plan, "old")
    write_plan(new, "new")
    rename = Path.rename
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", lambda a, b: rename(a, b) if a == plan else killed())
        with pytest.raises(KeyboardInterrupt):
            put(new, plan)
    assert not plan.exists()
    with pytest.raises(InputError, match="is a plan already"):
        require_free(plan, PLAN, replace=False)
    assert (plan / "plan.json").read_text() == "old"
    put(new, plan)
    assert os.listdir(tmp_path) == ["plan"]
    assert (plan / "plan.json").read_text() == "new"


def killed() -> Path:
    raise KeyboardInterrupt
