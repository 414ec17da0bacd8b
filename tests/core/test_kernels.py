"""Kernels are compiled once: their machine code is kept, and found by all who need it."""

from __future__ import annotations

import fcntl
import importlib
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, SimpleNamespace

import pytest
from numba.core.dispatcher import Dispatcher

from fanplan import data as pipeline
from fanplan import papers
from fanplan.core import kernels
from fanplan.core.kernels import lock_held

PROCESS = """
import sys
from kernel import double, half
print("ready", flush=True)
sys.stdin.readline()
# The form of half for kernels is kept first. Python would crash if it were given that one.
assert double(1) == 2 * half(2)
print(sum(double.stats.cache_misses.values()))
"""

KERNEL = """
from fanplan.core.kernels import compiled

@compiled
def half(x):
    return x / 2

@compiled
def double(x):
    return half(x) * 4
"""


def test_processes_that_come_together_compile_once(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cached")}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    ready = [process.stdout.readline() for process in processes if process.stdout]
    assert ready == ["ready\n"] * 3
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    assert sorted(process.communicate()[0] for process in processes) == ["0\n", "0\n", "1\n"]


COUNT = """
from kernel import double
assert double(1) == 2
print(double.stats.cache_path, sum(double.stats.cache_misses.values()))
"""


def compiled_in(folder: Path, process: str = COUNT, **environment: str) -> list[str]:
    """What a process prints that uses the kernel in a folder."""
    none = {"NUMBA_CACHE_DIR", "XDG_CACHE_HOME"}
    known = {name: value for name, value in os.environ.items() if name not in none}
    found = subprocess.run(
        [sys.executable, "-c", process],
        cwd=folder,
        env=known | environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return found.stdout.split()


def package(folder: Path, kernel: str = KERNEL, read_only: bool = True) -> Path:
    """A folder with a kernel. Nothing can be kept in it, by root either, if read-only."""
    folder.mkdir()
    (folder / "kernel.py").write_text(kernel)
    if read_only:
        (folder / "__pycache__").touch()
    return folder


def test_beside_a_read_only_package_code_is_kept_in_the_cache_of_the_user(tmp_path: Path) -> None:
    folder, home = package(tmp_path / "package"), tmp_path / "home"
    first, second = (compiled_in(folder, HOME=str(home)) for _ in range(2))
    assert Path(first[0]).is_relative_to(home)
    assert (first[1], second[1]) == ("1", "0")


def test_where_nothing_can_be_written_kernels_work_all_the_same(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.touch()
    assert compiled_in(package(tmp_path / "package"), HOME=str(home)) == ["None", "1"]


TYPED = """
from typing import NamedTuple
import numpy as np
from fanplan.core.kernels import compiled

class {name}(NamedTuple):
    value: np.ndarray

@compiled
def double(pair):
    return pair.value[0] * 2
"""

USE = """
import numpy as np
import kernel
value = kernel.double(kernel.{name}(np.ones(1)))
print(value, sum(kernel.double.stats.cache_misses.values()))
"""


def test_code_that_was_kept_for_a_type_which_is_gone_is_compiled_anew(tmp_path: Path) -> None:
    folder = package(tmp_path / "package", TYPED.format(name="Old"), read_only=False)
    assert compiled_in(folder, USE.format(name="Old")) == ["2.0", "1"]
    (folder / "kernel.py").write_text(TYPED.format(name="New"))
    assert compiled_in(folder, USE.format(name="New")) == ["2.0", "1"]
    assert compiled_in(folder, USE.format(name="New")) == ["2.0", "0"]


def test_a_function_within_a_function_names_no_kernel() -> None:
    """Spark sends such a function by value, and with it the kernels it names, without their code.

    A function of a module is sent by its name: the worker imports it, and finds the code.
    """
    found = [
        f"{module.__name__}.{function.__name__}: {name}"
        for module in modules()
        for function in functions(module)
        for code in nested(function.__code__)
        for name in code.co_names
        if isinstance(module.__dict__.get(name), Dispatcher)
    ]
    assert not found


def modules() -> Iterator[ModuleType]:
    """All that gives functions to Spark."""
    for package in (pipeline, papers):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(module.name)


def functions(module: ModuleType) -> Iterator[FunctionType]:
    for value in vars(module).values():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            yield value


def nested(code: CodeType) -> Iterator[CodeType]:
    """Functions within a function; not what a comprehension or a generator is compiled to."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_name == "<lambda>" or not constant.co_name.startswith("<"):
                yield constant
            yield from nested(constant)


def stand_in(folder: Path) -> SimpleNamespace:
    """What a lock looks at of a kernel."""
    return SimpleNamespace(py_func=stand_in, stats=SimpleNamespace(cache_path=str(folder)))


def test_a_lock_ends_with_the_work_though_a_fork_has_it_open(tmp_path: Path) -> None:
    until, end = os.pipe()
    with lock_held(stand_in(tmp_path)):
        if (child := os.fork()) == 0:
            os.close(end)
            os.read(until, 1)
            os._exit(0)
    (lock,) = tmp_path.glob("*.lock")
    with lock.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(end)
    os.waitpid(child, 0)


def test_who_holds_a_lock_for_ever_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "PATIENCE", 0.1)
    with lock_held(stand_in(tmp_path)):
        pass
    (lock,) = tmp_path.glob("*.lock")
    with lock.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with lock_held(stand_in(tmp_path)):
            pass
