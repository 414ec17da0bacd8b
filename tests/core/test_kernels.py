"""Kernels are compiled once: their machine code is kept, and found by all who need it."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from numba.core.dispatcher import Dispatcher

from fanplan import data as pipeline
from fanplan import papers

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
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
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
