from __future__ import annotations

import pytest

from fanplan.cli.show import show_part, show_table
from fanplan.plan.made import Lines, Note


def test_names_are_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    evil = "[red]a[/blue]\x1b[2Jb"
    show_table("Flows", ("flow", "rate"), [[evil, 1]])
    show_part(Lines((evil,)))
    show_part(Note(evil))
    told = capsys.readouterr()
    for text in (told.out, told.err):
        assert "[red]a[/blue]" in text
        assert "\x1b" not in text
