"""Pages that need no Spark: commands that exist, links that lead somewhere, a current reference."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest
import typer

import fanplan
from fanplan.cli.app import app

ROOT = Path(__file__).parent.parent
PAGES = [
    page
    for pattern in ("README.md", "docs/*.md", "docs/benchmarks/*.md", "docs/decisions/*.md")
    for page in sorted(ROOT.glob(pattern))
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^(?:\$ )?(fanplan [a-z].*)$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)")
MODULE = re.compile(r"`([\w/]+\.py)`")
FORM = re.compile(r"…|\[--|\b(PLAN|WORKLOAD|KIND|OLD)\b")
"""Lines that show the form of a command, not one to type."""


def shown(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def commands() -> list[tuple[str, str]]:
    return [
        (shown(page), line)
        for page in PAGES
        for kind, block in BLOCK.findall(page.read_text())
        for line in COMMAND.findall(block.replace("\\\n", " "))
        if kind in ("", "console", "sh") and not FORM.search(line)
    ]


@pytest.mark.parametrize("page", [shown(page) for page in PAGES])
def test_every_command_on_a_page_exists_with_its_options(page: str) -> None:
    """Parsed, not run: that some are wrong on purpose does not matter here, but that they exist."""
    group = typer.main.get_command(app)
    for name, line in commands():
        if name != page:
            continue
        words = shlex.split(line, comments=True)[1:]
        command = group.commands[words[0]]  # type: ignore[attr-defined]
        if hasattr(command, "commands"):
            command, words = command.get_command(None, words[1]), words[1:]
        known = {
            option for param in command.params for option in (*param.opts, *param.secondary_opts)
        }
        given = {word.split("=")[0] for word in words[1:] if word.startswith("--")}
        assert given <= known, line


def test_there_are_commands_on_the_pages() -> None:
    assert {name for name, _ in commands()} >= {"README.md", "docs/tutorial.md", "docs/changes.md"}


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_links_lead_to_files(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target


def test_modules_that_pages_name_exist() -> None:
    folders = ("fanplan", "tests", "benchmarks", "docs")
    known = [f"/{shown(path)}" for folder in folders for path in (ROOT / folder).rglob("*.py")]
    named = {
        (shown(page), name)
        for page in PAGES
        for name in MODULE.findall(page.read_text())
        if not any(path.endswith(f"/{name}") for path in known)
    }
    assert not named


def test_the_reference_is_that_of_the_code() -> None:
    module = reference()
    for path, text in module.written().items():
        assert path.read_text() == text, f"{path.name} is behind the code: run `make docs`"
    assert {name for names in module.VERBS.values() for name in names} == set(fanplan.__all__)


def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
