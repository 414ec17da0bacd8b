"""Imports point one way, as docs/architecture.md says, and the command line loads little."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fanplan

ROOT = Path(next(iter(fanplan.__path__)))

# From the bottom up: a part imports from lower rows and from itself.
ROWS = (
    ("errors", "folder", "kernels", "progress"),
    ("workload",),
    ("problem",),
    ("plan", "evaluation"),
    ("planners", "simulation", "changes"),
    ("pipeline",),
    ("papers", "reporting"),
    ("api", "cli"),
)
ROW = {part: row for row, parts in enumerate(ROWS) for part in parts}

# Within a row: the command line calls the interface; nodes of a simulated protocol plan; of plan
# and evaluation one may import the other, and the test for cycles sees to it that it is only one.
BESIDE = {
    ("folder", "errors"),
    ("cli", "api"),
    ("plan", "evaluation"),
    ("evaluation", "plan"),
    ("simulation", "planners"),
}

# The package itself and its `python -m` entry belong to no row.
TOP = {"__init__", "__main__"}

HEAVY = ("pyspark", "numba", "pandas", "scipy", "pyarrow")


def part_of(module: str) -> str:
    """The part of Fanplan that a dotted module name below it belongs to."""
    return module.split(".")[0]


def modules() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(ROOT.rglob("*.py")):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        yield name, ast.parse(file.read_text(), str(file))


def imports(tree: ast.Module) -> Iterator[str]:
    """Full names of all that a module imports, anywhere in it; names in a package count too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def edges() -> set[tuple[str, str, str]]:
    """(module, its part, part it imports) for imports inside Fanplan."""
    return {
        (name, part_of(name), part_of(target.removeprefix("fanplan.")))
        for name, tree in modules()
        for target in imports(tree)
        if target.startswith("fanplan.")
    }


def allowed(importer: str, imported: str) -> bool:
    if importer == imported or imported.startswith("__") or (importer, imported) in BESIDE:
        return True
    return ROW[imported] < ROW[importer]


def test_every_part_has_a_row() -> None:
    assert {part_of(name) for name, _ in modules()} - TOP == set(ROW)


def test_imports_point_one_way() -> None:
    wrong = [edge for edge in edges() if edge[1] not in TOP and not allowed(*edge[1:])]
    assert wrong == []


def test_parts_form_no_cycle() -> None:
    pairs = {(a, b) for _, a, b in edges() if a != b and a not in TOP and b not in TOP}
    while pairs:
        # Peel off parts that import nothing that is left; a cycle would never peel off.
        leaves = {b for _, b in pairs} - {a for a, _ in pairs}
        assert leaves, f"cycle among {sorted(pairs)}"
        pairs = {(a, b) for a, b in pairs if b not in leaves}


def test_only_the_pipeline_imports_spark() -> None:
    users = {
        part_of(name)
        for name, tree in modules()
        if any(target.split(".")[0] in ("pyspark", "py4j") for target in imports(tree))
    }
    assert users == {"pipeline"}


def test_plan_and_evaluation_never_import_planners() -> None:
    assert not {a for _, a, b in edges() if b == "planners"} & {"plan", "evaluation"}


HELP = "sys.argv[1:] = ['--help']; runpy.run_module('fanplan', run_name='__main__')"


@pytest.mark.parametrize("start", ["import fanplan", HELP])
def test_the_package_and_its_help_load_nothing_heavy(start: str) -> None:
    loaded = f"print(sorted(set({HEAVY}) & set(sys.modules)), file=sys.stderr)"
    code = f"import atexit, runpy, sys; atexit.register(lambda: {loaded}); {start}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stderr.strip()) == (0, "[]")
