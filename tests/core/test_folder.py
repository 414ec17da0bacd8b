"""Folders and files appear whole or not at all, and never in place of something else."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fanplan.core import folder
from fanplan.core.errors import InputError, MachineError
from fanplan.core.folder import (
    PLAN,
    aside,
    claimed,
    in_bytes,
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


# ---- killed at any moment


KILLED = """
import json, os, signal, sys
from collections import Counter
from pathlib import Path
from fanplan.core import folder
from fanplan.core.folder import PLAN, claimed, whole_folder

home, place = Path(sys.argv[1]), sys.argv[2]
if place == "two steps":
    folder.rename_by = lambda *_: False

def write(plan, text):
    with whole_folder(plan, PLAN, replace=True) as written:
        for name in ("plan.json", "deep/table"):
            (written / name).parent.mkdir(exist_ok=True)
            (written / name).write_text(text)

def die_at(step):
    left = [step]
    def count(event, _):
        if event != "os.kill" and event.startswith(("os.", "open", "shutil.", "ctypes.")):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(count)

def found(plan):
    names = {"plan.json", "deep/table"}
    texts = {(plan / name).read_text() for name in names if (plan / name).exists()}
    there = {str(p.relative_to(plan)) for p in plan.rglob("*") if p.is_file()}
    return "".join(texts) if names == there else "half" if there else "nothing"

seen, after = Counter(), Counter()
for step in range(10_000):
    plan = home / str(step) / "plan"
    write(plan, "old")
    child = os.fork()
    if not child:
        die_at(step)
        write(plan, "new")
        os._exit(0)
    killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    seen[found(plan)] += 1
    with claimed(plan, PLAN, replace=True):
        after[found(plan)] += 1
    assert os.listdir(plan.parent) == ["plan"], os.listdir(plan.parent)
    if not killed:
        break
print(json.dumps([step, seen, after]))
"""


def kills(home: Path, place: str) -> tuple[int, dict[str, int], dict[str, int]]:
    """A replacement killed at each of its steps: how many, what is there, and after recovery."""
    words = [sys.executable, "-c", KILLED, str(home), place]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    steps, seen, after = json.loads(done.stdout)
    return steps, seen, after


@pytest.mark.skipif(sys.platform != "linux", reason="renameat2 is of Linux")
def test_killed_at_any_step_the_old_or_the_new_one_is_there(tmp_path: Path) -> None:
    steps, seen, after = kills(tmp_path, "one step")
    assert steps > 20
    assert seen.keys() == {"old", "new"} == after.keys()


def test_where_two_steps_are_needed_the_next_run_restores_the_name(tmp_path: Path) -> None:
    steps, seen, after = kills(tmp_path, "two steps")
    assert steps > 20
    assert seen.keys() == {"old", "nothing", "new"}
    assert after.keys() == {"old", "new"}


def test_what_dead_runs_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    kept = [
        "plan.partial",
        "plan.partial-notes",
        "plan2.partial-0123abcd",
        "xplan.partial-0123abcd",
    ]
    for name in (*kept, "plan.partial-0123abcd", "plan.partial-89abcdef"):
        (tmp_path / name).mkdir()
    write_plan(tmp_path / "plan", "new")
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, "plan"])


def test_all_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, rename = folder.sync, folder.rename_by

    def synced(path: Path) -> None:
        sync(path)
        done.append(str(path.relative_to(tmp_path)).partition("partial-")[2][8:] or path.name)

    def renamed(*words: Any) -> bool:
        done.append("renamed")
        return rename(*words)

    monkeypatch.setattr(folder, "sync", synced)
    monkeypatch.setattr(folder, "rename_by", renamed)
    with whole_folder(tmp_path / "plan", PLAN) as written:
        (written / "plan.json").touch()
        (written / "deep").mkdir()
        (written / "deep" / "table").touch()
    *before, name, last = done
    assert {"/plan.json", "/deep", "/deep/table"} <= {*before}
    assert len(before) == 4, "and the folder itself"
    assert (name, last) == ("renamed", tmp_path.name)


# ---- what comes there in the meantime


def write_while(plan: Path, meanwhile: Callable[[], object]) -> None:
    """Write a plan while somebody does something else."""
    with whole_folder(plan, PLAN, replace=True) as written:
        (written / "plan.json").write_text("new")
        plan.mkdir(exist_ok=True)
        meanwhile()


def test_what_appears_while_a_plan_is_written_is_not_deleted(tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    with (
        pytest.raises(InputError, match=r"left alone; the result is in .*plan\.kept-"),
        claimed(plan, PLAN),
    ):
        write_while(plan, lambda: write_whole(plan / "thesis", "years of work"))
    assert (plan / "thesis").read_text() == "years of work"
    (kept,) = tmp_path.glob("plan.kept-*")
    assert (kept / "plan.json").read_text() == "new"
    assert len(os.listdir(tmp_path)) == 2


@pytest.mark.parametrize("one_step", [True, False])
def test_what_was_changed_since_the_run_began_is_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_step: bool
) -> None:
    if not one_step:
        monkeypatch.setattr(folder, "rename_by", lambda *_: False)
    plan = tmp_path / "plan"
    write_plan(plan, "old")
    with pytest.raises(InputError, match="left alone"), claimed(plan, PLAN, replace=True):
        write_while(plan, lambda: (plan / "thesis").write_text("years of work"))
    assert (plan / "plan.json").read_text() == "old"
    assert (plan / "thesis").read_text() == "years of work"


def test_what_is_changed_at_the_last_moment_gets_its_name_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, rename = tmp_path / "plan", folder.rename_by
    write_plan(plan, "old")

    def late(*words: Any) -> bool:
        (plan / "thesis").touch()
        monkeypatch.setattr(folder, "rename_by", rename)
        return rename(*words)

    monkeypatch.setattr(folder, "rename_by", late)
    with pytest.raises(InputError, match="left alone"):
        write_plan(plan, "new", replace=True)
    assert (plan / "plan.json").read_text() == "old"
    assert (plan / "thesis").exists()


def test_what_was_removed_in_the_meantime_is_no_reason_to_stop(tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    write_plan(plan, "old")
    with claimed(plan, PLAN, replace=True):
        shutil.rmtree(plan)
        write_plan(plan, "new", replace=True)
        write_plan(plan, "newer", replace=True)
    assert (plan / "plan.json").read_text() == "newer"
    assert os.listdir(tmp_path) == ["plan"]


# ---- one run at a time


HOLDS = """
import sys
from pathlib import Path
from fanplan.core.folder import PLAN, claimed
with claimed(Path(sys.argv[1]), PLAN):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_is_told_at_once_who_writes_there(tmp_path: Path) -> None:
    plan = tmp_path / "deep" / "plan"
    words = [sys.executable, "-c", HOLDS, str(plan)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        who = rf"another run \(process {other.pid} on {re.escape(socket.gethostname())}\)"
        with pytest.raises(InputError, match=who):
            write_plan(plan, "new")
        other.kill()
    write_plan(plan, "new")
    assert os.listdir(plan.parent) == ["plan"], "the lock of the dead run does not count"


RACES = """
import os, sys
from pathlib import Path
from fanplan.core.errors import InputError
from fanplan.core.folder import PLAN, whole_folder

plan, replace = Path(sys.argv[1]), sys.argv[2] == "replace"

def write(text):
    with whole_folder(plan, PLAN, replace) as written:
        (written / "plan.json").write_text(text)

def child(number):
    try:
        for _ in range(50 if replace else 1):
            write(str(number))
    except InputError:
        os._exit(2)
    os._exit(0)

if replace:
    write("first")
children = {}
for number in range(1 if replace else 8):
    children[os.fork() or child(number)] = str(number)
while replace and os.waitpid(-1, os.WNOHANG) == (0, 0):
    assert (plan / "plan.json").read_text() in ("first", "0")
if not replace:
    codes = {children[pid]: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children}
    (winner,) = (number for number, code in codes.items() if code == 0)
    assert (plan / "plan.json").read_text() == winner, codes
    assert sorted(codes.values()) == [0, *[2] * 7], codes
assert os.listdir(plan.parent) == ["plan"], os.listdir(plan.parent)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="renameat2 is of Linux")
@pytest.mark.parametrize("kind", ["one wins", "replace"])
def test_of_many_runs_one_wins_and_no_reader_finds_nothing(tmp_path: Path, kind: str) -> None:
    words = [sys.executable, "-c", RACES, str(tmp_path / "out" / "plan"), kind]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_a_claim_is_of_one_thread_and_holds_for_all_it_writes(tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    with claimed(plan, PLAN), ThreadPoolExecutor() as pool:
        with pytest.raises(InputError, match=rf"process {os.getpid()} on"):
            pool.submit(write_plan, plan, "theirs").result()
        write_plan(plan, "mine")
    assert (plan / "plan.json").read_text() == "mine"
    with claimed(None, PLAN):
        assert os.listdir(tmp_path) == ["plan"]


# ---- what is in the way is said before the work


def test_a_folder_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(InputError, match=r"cannot be written \(Not a directory\)"),
        claimed(tmp_path / "file" / "deep" / "plan", PLAN),
    ):
        pass


def test_a_place_that_takes_no_files_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(folder, "Lock", refuse)
    with (
        pytest.raises(InputError, match=r"new/plan: cannot be written \(Read-only file system\)"),
        claimed(tmp_path / "new" / "plan", PLAN),
    ):
        pass
    assert list(tmp_path.iterdir()) == [], "asking leaves nothing behind"


def test_room_is_asked_for_where_the_folder_will_be(tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free
    require_room(tmp_path / "new" / "plan", 1)
    with pytest.raises(MachineError, match=r"are free there, but about .* are needed"):
        require_room(tmp_path / "new" / "plan", 2 * free)
    with claimed(tmp_path / "new" / "plan", PLAN):
        pass
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
