"""Folders and files appear whole or not at all, and never in place of something else."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from fanplan.core.errors import InputError, MachineError
from fanplan.core.folder import (
    PLAN,
    aside,
    in_bytes,
    put,
    require_free,
    require_room,
    whole_folder,
    write_whole,
)


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


# ---- what is in the way is said before the work


def test_a_folder_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be written \(Not a directory\)"):
        require_free(tmp_path / "file" / "deep" / "plan", PLAN, replace=False)


def test_a_place_that_takes_no_folders_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with pytest.raises(InputError, match=r"new/plan: cannot be written \(Read-only file system\)"):
        require_free(tmp_path / "new" / "plan", PLAN, replace=False)


def test_room_is_asked_for_where_the_folder_will_be(tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free
    require_room(tmp_path / "new" / "plan", 1)
    with pytest.raises(MachineError, match=r"are free there, but about .* are needed"):
        require_room(tmp_path / "new" / "plan", 2 * free)
    require_free(tmp_path / "new" / "plan", PLAN, replace=False)
    assert list(tmp_path.iterdir()) == [], "asking leaves nothing behind"


def test_a_disk_that_is_full_while_writing_is_no_traceback(tmp_path: Path) -> None:
    with (
        pytest.raises(MachineError, match="No space left on device"),
        whole_folder(tmp_path / "plan", PLAN),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match="other"), whole_folder(tmp_path / "plan", PLAN):
        raise OSError(errno.EBADF, "other")
    assert list(tmp_path.iterdir()) == []


def test_sizes_are_readable() -> None:
    assert [in_bytes(size) for size in (12, 1500, 2.5e9, 3e13)] == [
        *("12 bytes", "1.5 KB", "2.5 GB", "30 TB")
    ]
