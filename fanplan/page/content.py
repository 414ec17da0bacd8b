"""What a page is made of: sections with facts, pictures and tables. The template knows no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from markupsafe import Markup

from fanplan.page.numbers import MINUS, number

MOST_ROWS = 2000
"""Rows of a table on the page; a browser stays quick with so many."""

SHORT = 12
"""Letters that need no room of their own in a table."""


@dataclass(frozen=True)
class Picture:
    """A drawing with its title, how it is read, and what its colours mean.

    ``kind`` says what it can be saved as; ``zoom`` that one may look closer.
    """

    name: str
    title: str
    content: Markup
    caption: str = ""
    legend: Sequence[tuple[str, str]] = ()
    """(class of the swatch, meaning)"""
    kind: Literal["svg", "png"] = "svg"
    zoom: bool = False
    wide: bool = False


@dataclass(frozen=True)
class Listing:
    """A table that can be sorted and searched. Numbers stand to the right.

    If columns are ``mixed``, their numbers count different things, and each has its own digits.
    """

    name: str
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""
    mixed: bool = False

    @property
    def shown(self) -> list[list[tuple[Any, str]]]:
        """Values with how they are written: in one column all numbers have as many digits."""
        rows = self.rows[:MOST_ROWS]
        if self.mixed:
            return [[(value, number(value)) for value in row] for row in rows]
        digits = [
            1 if name.endswith("%") else digits_of([row[i] for row in rows])
            for i, name in enumerate(self.header)
        ]
        return [[(v, written(v, d)) for v, d in zip(row, digits, strict=True)] for row in rows]

    @property
    def left_out(self) -> int:
        return max(len(self.rows) - MOST_ROWS, 0)

    @property
    def numeric(self) -> list[bool]:
        """Whether each column holds numbers, or nothing."""
        return [
            any(is_number(row[i]) for row in self.rows)
            and all(row[i] is None or is_number(row[i]) for row in self.rows)
            for i in range(len(self.header))
        ]

    @property
    def classes(self) -> list[str]:
        """How each column is set: numbers to the right, words that need room, or just as it is."""
        found = []
        for i, numeric in enumerate(self.numeric):
            longest = max((len(number(row[i])) for row in self.rows[:MOST_ROWS]), default=0)
            found.append("number" if numeric else "words" if longest > SHORT else "")
        return found


@dataclass(frozen=True)
class Section:
    """A part of the page, with a sentence or two that say what it shows."""

    name: str
    title: str
    lead: str = ""
    facts: Sequence[tuple[str, Any]] = ()
    pictures: Sequence[Picture] = ()
    listings: Sequence[Listing] = ()
    notes: Sequence[str] = field(default_factory=tuple)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def digits_of(values: Sequence[Any]) -> int:
    """Digits after the point: none for whole numbers, else fewer the larger the largest is."""
    numbers = [abs(value) for value in values if is_number(value)]
    if all(float(value).is_integer() for value in numbers):
        return 0
    return next(
        (digits for least, digits in ((1000, 0), (100, 1), (10, 2)) if max(numbers) >= least), 3
    )


def written(value: Any, digits: int) -> str:
    return f"{value:,.{digits}f}".replace("-", MINUS) if is_number(value) else number(value)
