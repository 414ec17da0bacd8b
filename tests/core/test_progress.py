"""Progress: finished stages stay visible with what was told about them; quiet means silent."""

from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

from fanplan.core.progress import Quiet, Shown, progress, quiet, shown_progress


def lines_of(console: Console) -> list[str]:
    """What stays on the screen, without elapsed times; live lines are redrawn with a return."""
    assert isinstance(console.file, io.StringIO)
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines() if line]


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=120)


def test_a_finished_stage_shows_what_it_was_told(console: Console) -> None:
    with shown_progress(console).stage("plan") as stage:
        stage.rows(1234567)
        stage.update(best=2000)
        stage.update(best=1000.5)
        stage.note("stopped in time")
    assert lines_of(console) == ["✓ plan 0.0 s 1,234,567 rows best 1,000.50 stopped in time"]


def test_reused_stages_are_marked(console: Console) -> None:
    with shown_progress(console).stage("grid") as stage:
        stage.reused()
    assert lines_of(console) == ["✓ grid 0.0 s reused"]


def test_inner_stages_come_before_the_stage_around_them(console: Console) -> None:
    work = shown_progress(console)
    with work.stage("regions"), work.stage("start Spark"):
        pass
    assert [line.split(" 0.0")[0] for line in lines_of(console)] == ["✓ start Spark", "✓ regions"]


def test_a_failed_stage_is_marked_and_the_error_goes_on(console: Console) -> None:
    with pytest.raises(KeyError), shown_progress(console).stage("cover"):
        raise KeyError
    assert lines_of(console) == ["✗ cover 0.0 s"]


def test_quiet_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet().stage("grid") as stage:
        stage.rows(1)
        stage.update(best=1.0)
        stage.note("words")
        stage.reused()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("terminal", "asked_quiet", "kind"),
    [(True, False, Shown), (True, True, Quiet), (False, False, Quiet)],
)
def test_progress_is_shown_only_on_a_terminal_that_did_not_ask_for_quiet(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, asked_quiet: bool, kind: type
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    assert isinstance(progress(asked_quiet), kind)
