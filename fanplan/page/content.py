"""What a page is made of: sections with facts, pictures and tables. The template knows no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any, Literal

from markupsafe import Markup

from fanplan.core.result import is_number
from fanplan.page.numbers import MINUS, TIMES, number, rate_time

MOST_ROWS = 2000
"""Rows of a table on the page; a browser stays quick with so many."""

FEW_ROWS = 15
"""Rows that are found without searching."""

A_SECOND = "messages/s"
"""How the title of a column of rates ends; they are written in a time that fits them."""

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
    ``opens`` has the kind of thing that a column names, which a click opens.
    """

    name: str
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""
    mixed: bool = False
    opens: Mapping[str, str] = field(default_factory=dict)

    @property
    def searched(self) -> bool:
        return len(self.rows) > FEW_ROWS

    @cached_property
    def times(self) -> list[str | None]:
        """In which time columns count messages: those that do in the same, to be compared."""
        counting = [name.endswith(A_SECOND) for name in self.header]
        rows = self.rows[:MOST_ROWS]
        time = rate_time(v for row in rows for v in compress(row, counting) if is_number(v))
        return [time if counts else None for counts in counting]

    @property
    def titles(self) -> list[str]:
        """The header, with the times in which messages are counted."""
        return [
            name if time is None else f"{name[: -len(A_SECOND)]}messages/{time}"
            for name, time in zip(self.header, self.times, strict=True)
        ]

    @property
    def kinds(self) -> list[str]:
        return [self.opens.get(name, "") for name in self.header]

    @property
    def shown(self) -> list[list[tuple[Any, str]]]:
        """Values with how they are written: in one column all numbers have as many digits."""
        rows = self.rows[:MOST_ROWS]
        if self.mixed:
            return [[(value, number(value)) for value in row] for row in rows]
        scales = [TIMES[time or "s"] for time in self.times]
        digits = [
            1 if name.endswith("%") else digits_of([scaled_value(row[i], scale) for row in rows])
            for i, (name, scale) in enumerate(zip(self.header, scales, strict=True))
        ]
        return [
            [
                (v, written_value(scaled_value(v, s), d))
                for v, s, d in zip(row, scales, digits, strict=True)
            ]
            for row in rows
        ]

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
    plan: int = 0
    """The plan that it is about, by its place on the page: whose things open on a click."""

    @property
    def parts(self) -> list[Picture | Listing]:
        return [*self.pictures, *self.listings]


def scaled_value(value: Any, factor: float) -> Any:
    return value * factor if factor != 1 and is_number(value) else value


def digits_of(values: Sequence[Any]) -> int:
    """Digits after the point: none for whole numbers, else fewer the larger the largest is."""
    numbers = [abs(value) for value in values if is_number(value)]
    if all(float(value).is_integer() for value in numbers):
        return 0
    return next(
        (digits for least, digits in ((1000, 0), (100, 1), (10, 2)) if max(numbers) >= least), 3
    )


def written_value(value: Any, digits: int) -> str:
    return f"{value:,.{digits}f}".replace("-", MINUS) if is_number(value) else number(value)
