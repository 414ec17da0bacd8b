"""The few errors a caller can meet: each names the item and the remedy, and has an exit code."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: where, what, and what to do about it."""

    where: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}. {self.remedy}"


class FanplanError(Exception):
    """Base of all errors that Fanplan raises on purpose."""

    exit_code = 1
    problems: tuple[Problem, ...] = ()

    def __init__(self, problems: str | Problem | Iterable[Problem] = ()) -> None:
        if isinstance(problems, str):
            super().__init__(problems)
            return
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def json(self) -> dict[str, Any]:
        """What automation reads: the exit code, and all that is wrong."""
        told = self.problems or (Problem("fanplan", str(self), ""),)
        return {"error": {"code": self.exit_code, "problems": [asdict(each) for each in told]}}


class InputError(FanplanError):
    """Input or usage that cannot be understood. Holds every problem found, not just the first."""

    exit_code = 2


class MachineError(FanplanError):
    """The machine failed: its disk or memory is full, Spark ended, a port is taken."""

    exit_code = 3


class InfeasibleError(FanplanError):
    """Limits that no plan was found to meet. Names the limit and a value that would do."""

    def __init__(self, limit: str, value: float, problem: Problem) -> None:
        self.limit, self.value, self.problem = limit, value, problem
        super().__init__(problem)


class CheckError(FanplanError):
    """A plan that does not do what it must."""


class StageError(FanplanError):
    """A pipeline stage that broke its contract: a defect in Fanplan, not in the input."""

    exit_code = 3


NAMED = 3
"""Items that an error names before it only counts the rest."""


def similar(name: str, known: Sequence[str]) -> str:
    """A remedy that names what was probably meant, or nothing."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"Did you mean {close[0]!r}?" if close else ""


def shorten(text: str, limit: int = 40) -> str:
    """At most ``limit`` characters, for use inside a message."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def printable(text: str) -> str:
    """The text with a mark for each character that a terminal would obey instead of showing it."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in text)


def readable(name: str, limit: int = 24) -> str:
    """A name that somebody chose, for use inside a sentence: printable and not too long."""
    return printable(shorten(name, limit))
