"""What commands print: names in it are data, whatever a terminal would make of them."""

from __future__ import annotations

import ast
import io
from pathlib import Path

import pytest
from rich.console import Console

import fanplan.cli
from fanplan.cli.changes_shown import say_notes
from fanplan.cli.show import say, show_facts, show_part, show_table
from fanplan.core.progress import shown_progress
from fanplan.plan.made import Caution, Facts, Grid, Lines, Note

EVIL = "[red]a[/blue]\x1b[2J\x1b]0;b\x07:smile:"
SHOWN = "[red]a[/blue]\ufffd[2J\ufffd]0;b\ufffd:smile:"
MAY_PRINT = {"show.py"}


def test_names_are_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(EVIL, (EVIL, "rate"), [[EVIL, 1]])
    show_facts(EVIL, {EVIL: EVIL})
    for part in (Lines((EVIL,)), Note(EVIL), Caution(EVIL), Facts(EVIL, {EVIL: EVIL})):
        show_part(part)
    show_part(Grid(EVIL, (EVIL,), [[EVIL]]))
    say(EVIL)
    say_notes([EVIL])
    told = capsys.readouterr()
    for text, times in ((told.out, 14), (told.err, 3)):
        assert text.count(SHOWN) == times, text
        assert "\x1b" not in text


def test_names_are_shown_by_progress() -> None:
    out = io.StringIO()
    with shown_progress(Console(file=out)).stage(EVIL) as stage:
        stage.note(EVIL)
    assert out.getvalue().count(SHOWN) == 2
    assert "\x1b" not in out.getvalue()


@pytest.mark.parametrize(
    "path", sorted(Path(next(iter(fanplan.cli.__path__))).glob("*.py")), ids=lambda path: path.name
)
def test_all_that_is_printed_goes_through_one_place(path: Path) -> None:
    calls = (
        node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
    )
    found = {
        f.id if isinstance(f, ast.Name) else f.attr
        for f in calls
        if isinstance(f, ast.Name | ast.Attribute)
    }
    assert path.name in MAY_PRINT or not found & {"echo", "secho", "print"}
