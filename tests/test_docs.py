"""The pages that show commands and Python, run as they stand, and what those print."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from commands import run
from pyspark.sql import SparkSession

from fanplan.evaluation.marking_cost import descriptor_counts, pub_everywhere, sub_everywhere
from fanplan.planners.marking.marking import exact_marking
from fanplan.problem.marking import Network
from fanplan.problem.marking_trees import source_problem
from fanplan.problem.overlay import Links
from fanplan.workload.generators.transit_stub import TransitStubParams, draw

DOCS = Path(__file__).parent.parent / "docs"
FILE = re.compile(r"`((?:desk|firm)/[\w.]+)`(?:(?!```).)*```\w+\n(.*?)```", re.DOTALL)
BLOCK = re.compile(r"```(console|python)\n(.*?)```", re.DOTALL)
REFUSED = re.compile(r"^(fanplan: |The plan is refused)", re.MULTILINE)
NO_SPARK = ("compare",)


def run_console(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Run each command; where the page shows an answer, it must be the answer."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        words = shlex.split(command)[1:]
        capsys.readouterr()
        code = run(*words, *(() if words[0] in NO_SPARK else ("--master", "local[2]")))
        told = capsys.readouterr()
        assert (code != 0) == (REFUSED.search(expected) is not None), told
        if expected.strip():
            shown = pattern(expected)
            assert any(
                shown.fullmatch(squeezed(t)) for t in (told.out + told.err, told.err + told.out)
            ), told


def squeezed(text: str) -> str:
    """Without spaces that only align columns, empty lines, and how long it took."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("seconds "))


def pattern(shown: str) -> re.Pattern[str]:
    """A page may leave lines out, and says so by a line of its own."""
    lines = squeezed(shown).splitlines()
    return re.compile(
        "".join("(.*\n)*" if line == "…" else re.escape(line) + "\n" for line in lines)
    )


def run_python(block: str) -> None:
    test = doctest.DocTestParser().get_doctest(block, {}, "tutorial", None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test)
    assert runner.summarize().failed == 0


def test_the_tutorial_says_what_happens(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "tutorial.md").read_text()
    files = dict(FILE.findall(text))
    assert len(files) == 3 + 5
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    text += "".join((DOCS / f"{name}.md").read_text() for name in ("changes", "report"))
    for kind, block in BLOCK.findall(text):
        run_console(block, capsys) if kind == "console" else run_python(block)


@pytest.mark.parametrize("pages", ["overlay simulation", "allocation", "groups", "marking"])
def test_commands_on_the_pages_of_layers_say_what_they_show(
    pages: str,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A page may go on with what the page before it made."""
    monkeypatch.chdir(tmp_path)
    for page in pages.split():
        for kind, block in BLOCK.findall((DOCS / f"{page}.md").read_text()):
            if kind == "console":
                run_console(block, capsys)


@pytest.mark.parametrize("page", ["groups", "marking"])
def test_python_on_a_page_runs_as_it_stands(page: str) -> None:
    """One block goes on where the one before it ended; those that open a dataset are left out."""
    names: dict[str, object] = {}
    blocks = [block for kind, block in BLOCK.findall((DOCS / f"{page}.md").read_text())
              if kind == "python" and "dataset" not in block]  # fmt: skip
    assert len(blocks) > 1
    for block in blocks:
        exec(block, names)


def test_costs_on_the_page_on_marking_are_those_of_its_network() -> None:
    """Without Spark."""
    text = (DOCS / "marking.md").read_text()
    world = draw(TransitStubParams(), seed=4)
    ones = np.ones(len(world.a))
    links = Links(world.a, world.b, world.latency_ms, ones, ones)
    problem = source_problem(Network(world.nodes, world.published, world.subscribed, links))
    counts = descriptor_counts(problem)
    told = re.findall(r"^(\w[\w ]*?) +([\d.]+) +[\d.]+ +[\d.]+$", text, re.MULTILINE)
    costs = {
        "publications everywhere": pub_everywhere(problem, counts),
        "subscriptions everywhere": sub_everywhere(problem, counts),
        "best": exact_marking(problem).cost,
    }
    assert {name: float(cost) for name, cost in told} == costs
