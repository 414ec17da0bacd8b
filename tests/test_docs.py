"""The pages that show commands and Python, run as they stand, and what those print."""

from __future__ import annotations

import doctest
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from fanplan.cli.main import main
from fanplan.evaluation.marking_cost import descriptor_counts, pub_everywhere, sub_everywhere
from fanplan.planners.marking.marking import exact_marking
from fanplan.problem.marking import Network
from fanplan.problem.marking_trees import source_problem
from fanplan.problem.overlay import Links
from fanplan.workload.generators.transit_stub import TransitStubParams, draw

DOCS = Path(__file__).parent.parent / "docs"
FILE = re.compile(r"`((?:desk|firm)/[\w.]+)`(?:(?!```).)*```\w+\n(.*?)```", re.DOTALL)
BLOCK = re.compile(r"```(console|python)\n(.*?)```", re.DOTALL)
USES_SPARK = ("ingest", "replay", "design", "report")


def squeezed(text: str) -> list[str]:
    """Lines without the spaces that only align columns."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def run(command: str) -> None:
    words = shlex.split(command)[1:]
    if words[0] in USES_SPARK:
        words += ["--master", "local[2]"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["fanplan", *words])
        with pytest.raises(SystemExit) as exit_:
            main()
    assert not exit_.value.code


def run_console(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Run each command; where the page shows an answer, it must be the answer."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        capsys.readouterr()
        run(command)
        told = capsys.readouterr()
        if expected.strip():
            assert squeezed(told.out + told.err) == squeezed(expected)


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
    text += (DOCS / "changes.md").read_text()
    for kind, block in BLOCK.findall(text):
        run_console(block, capsys) if kind == "console" else run_python(block)


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
