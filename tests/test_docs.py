"""The pages that show commands and Python, run as they stand, and what those print."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import run
from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FILE = re.compile(r"`((?:mine|desk|firm)/[\w.]+)`(?:(?!```).)*```\w+\n(.*?)```", re.DOTALL)
BLOCK = re.compile(r"```(console|python)\n(.*?)```", re.DOTALL)
REFUSED = re.compile(r"^(fanplan: |The plan is refused)", re.MULTILINE)
NO_SPARK = ("compare", "quarantine", "ask")


def run_console(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Run each command; where the page shows an answer, it must be the answer.

    A page may leave out the notes on the traffic.
    """
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        program, *words = shlex.split(command)
        if program == "pip":
            install(Path("installed"), *words)
            continue
        capsys.readouterr()
        code = run(*words, *(() if words[0] in NO_SPARK else ("--master", "local[2]")))
        told = capsys.readouterr()
        notes = re.sub(r"^Note: .*\n", "", told.err, flags=re.MULTILINE)
        assert (code != 0) == (REFUSED.search(expected) is not None), told
        if expected.strip():
            shown = pattern(expected)
            assert any(
                shown.fullmatch(squeezed(told.out + err))
                or shown.fullmatch(squeezed(err + told.out))
                for err in (told.err, notes)
            ), told


def install(into: Path, *words: str) -> None:
    """As on the page, but apart: what else is needed is there already, and is left as it is."""
    assert words == ("install", ".")
    source = into.parent / "source"
    shutil.copytree(
        ROOT / "fanplan", source / "fanplan", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    quiet = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    pip = (
        sys.executable,
        "-m",
        "pip",
        "install",
        *quiet,
        "--target",
        str(into),
        str(source.absolute()),
    )
    subprocess.run(pip, check=True)
    answered = subprocess.run(
        (sys.executable, "-P", "-m", "fanplan", "--version"),
        env=os.environ | {"PYTHONPATH": str(into.absolute())},
        cwd=source.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert answered.stdout.startswith("fanplan ")
    assert (into / "fanplan" / "api.pyi").is_file()
    assert list((into / "fanplan" / "page" / "templates").iterdir())


def squeezed(text: str) -> str:
    """Without spaces that only align columns, empty lines, and how long it took."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("seconds "))


def pattern(shown: str) -> re.Pattern[str]:
    """A page may leave lines out, and says so by a line of its own; or the end of a line."""
    lines = squeezed(shown).splitlines()
    return re.compile(
        "".join(
            "(.*\n)*" if line == "…" else re.escape(line).replace("…", ".*") + "\n"
            for line in lines
        )
    )


def run_python(block: str) -> None:
    test = doctest.DocTestParser().get_doctest(block, {}, "tutorial", None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test)
    assert runner.summarize().failed == 0


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_tutorial_says_what_happens(
    spark: SparkSession, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (DOCS / "tutorial.md").read_text()
    files = dict(FILE.findall(text))
    assert len(files) == 2 + 3 + 5
    for name, content in files.items():
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(content)
    others = ("channels", "genetic", "changes", "report")
    text += "".join((DOCS / f"{name}.md").read_text() for name in others)
    for kind, block in BLOCK.findall(text):
        run_console(block, capsys) if kind == "console" else run_python(block)


@pytest.mark.parametrize("pages", ["overlay simulation", "allocation", "groups", "marking", "mesh"])
def test_commands_on_the_pages_of_layers_say_what_they_show(
    pages: str, spark: SparkSession, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A page may go on with what the page before it made."""
    for page in pages.split():
        for kind, block in BLOCK.findall((DOCS / f"{page}.md").read_text()):
            if kind == "console":
                run_console(block, capsys)


def test_the_matcher_on_the_page_of_systems_answers_so(here: Path) -> None:
    files = dict(FILE.findall((DOCS / "tutorial.md").read_text()))
    (here / "desk").mkdir()
    (here / "desk" / "workload.toml").write_text(files["desk/workload.toml"])
    blocks = [block for kind, block in BLOCK.findall((DOCS / "systems.md").read_text())
              if kind == "python"]  # fmt: skip
    assert len(blocks) == 1
    run_python(*blocks)


@pytest.mark.parametrize("page", ["groups", "marking"])
def test_python_on_a_page_runs_as_it_stands(page: str) -> None:
    """One block goes on where the one before it ended; those that open a dataset are left out."""
    names: dict[str, object] = {}
    blocks = [block for kind, block in BLOCK.findall((DOCS / f"{page}.md").read_text())
              if kind == "python" and "dataset" not in block]  # fmt: skip
    assert len(blocks) > 1
    for block in blocks:
        exec(block, names)
