"""What long work says while it runs: stages with rows, notes, best cost and time, on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol

from fanplan.core.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


class StageProgress(Protocol):
    """One step of the work, as told by the code that does it."""

    def rows(self, count: int) -> None:
        """Say how many rows came out."""

    def note(self, text: str) -> None:
        """Say a few words about it."""

    def update(self, *, best: float) -> None:
        """Say the best cost found so far."""

    def reused(self) -> None:
        """Say that a finished result was found and nothing was computed."""


class Progress(Protocol):
    """Where work reports to."""

    def stage(self, name: str) -> AbstractContextManager[StageProgress]:
        """Begin a stage; it is over when the block ends."""


def progress(quiet: bool = False) -> Progress:
    """Progress on stderr if that is a terminal and nobody asked for quiet; else none."""
    return Quiet() if quiet or not sys.stderr.isatty() else shown_progress()


def quiet() -> Progress:
    """Progress that says nothing."""
    return Quiet()


def shown_progress(console: Console | None = None) -> Progress:
    """Progress for a person: one line a stage, finished stages stay visible."""
    if console is None:
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
    return Shown(console)


class Quiet:
    """Says nothing. Also its own stage."""

    def stage(self, _name: str) -> AbstractContextManager[StageProgress]:
        return nullcontext(self)

    def rows(self, count: int) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def update(self, *, best: float) -> None:
        pass

    def reused(self) -> None:
        pass


class Shown:
    """A live line for the stages under way, and a lasting one for each that is over."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.depth = 0

    @contextmanager
    def stage(self, name: str) -> Iterator[StageProgress]:
        from rich.live import Live

        line = ProgressLine(name, self.depth)
        self.depth += 1
        try:
            with Live(line, console=self.console, refresh_per_second=4, transient=True):
                yield line
            line.end("✓")
        except BaseException:
            line.end("✗")
            raise
        finally:
            self.depth -= 1
            self.console.print(line)


class ProgressLine:
    """The text of one stage."""

    def __init__(self, name: str, depth: int) -> None:
        self.name = name
        self.indent = "  " * depth
        self.mark = "…"
        self.began = time.monotonic()
        self.ended: float | None = None
        self.facts: dict[str, str] = {}

    def rows(self, count: int) -> None:
        self.facts["rows"] = f"{count:,} rows"

    def note(self, text: str) -> None:
        self.facts["note"] = text

    def update(self, *, best: float) -> None:
        self.facts["best"] = f"best {best:,.2f}"

    def reused(self) -> None:
        self.facts["reused"] = "reused"

    def end(self, mark: str) -> None:
        if self.ended is None:
            self.mark, self.ended = mark, time.monotonic()

    @property
    def seconds(self) -> float:
        return (self.ended or time.monotonic()) - self.began

    def __rich__(self) -> Text:
        from rich.text import Text

        facts = "   ".join(self.facts.values())
        return Text(
            printable(f"{self.indent}{self.mark} {self.name:<28} {self.seconds:>7.1f} s   {facts}")
        )
