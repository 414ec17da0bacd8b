"""How times are written: the user's own format, the unit of numbers, and zones.

A format is that of Python's `strptime`. Spark reads it by a pattern of its own; a regular
expression says which texts have the format at all, and where their zone is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

TimeUnit = Literal["s", "ms", "us", "ns"]
PER_SECOND: dict[TimeUnit, float] = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
MOST_SECONDS = 1e11
"""Year 5138. What is beyond was not counted in seconds."""
LEAST_SECONDS = 1e-9
"""A window that is shorter is none: rates in it would have no bounds."""
OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)?")


@dataclass(frozen=True)
class Clock:
    """How a workload writes times: ``format`` if they are neither seconds nor ISO 8601.

    ``zone`` is that of times that say none, UTC if it is None; ``unit`` that of numbers.
    """

    format: str | None = None
    zone: str | None = None
    unit: TimeUnit = "s"

    @property
    def zone_name(self) -> str:
        return self.zone or "UTC"


# ---- formats


class Directive(NamedTuple):
    """What stands for a part of a time: in Spark's pattern, and which text it is.

    ``digits`` is how many a number has if others touch it; alone it may have fewer.
    """

    means: str
    pattern: str
    text: str
    digits: int = 0


DIRECTIVES = {
    "Y": Directive("year", "yyyy", r"\d{4}"),
    "y": Directive("year", "yy", r"\d{2}"),
    "m": Directive("month", "M", "", 2),
    "b": Directive("month", "MMM", "[A-Za-z]{3}"),
    "B": Directive("month", "MMMM", "[A-Za-z]+"),
    "d": Directive("day", "d", "", 2),
    "j": Directive("day of the year", "D", "", 3),
    # A name of a day says nothing new, and Spark does not read it: it is cut out.
    "a": Directive("name of the day", "", "[A-Za-z]+"),
    "A": Directive("name of the day", "", "[A-Za-z]+"),
    "H": Directive("hour", "H", "", 2),
    "I": Directive("hour", "h", "", 2),
    "p": Directive("half of the day", "a", "[AaPp][Mm]"),
    "M": Directive("minute", "m", "", 2),
    "S": Directive("second", "s", "", 2),
    "f": Directive("fraction", "S" * 9, r"\d{1,9}"),
    "z": Directive("zone", "[XXX][XX]", r"(Z|[+-]\d\d:?\d\d)"),
}
NUMBERS = {letter for letter, own in DIRECTIVES.items() if r"\d" in own.text or own.digits} - {"z"}
DAY_NAME = r"(?i)\b(mon|tue|wed|thu|fri|sat|sun)[a-z]*\b"
PART = re.compile(r"((?:[^%]|%%)+)|%(.?)", re.DOTALL)
"""Text that stands for itself, or the letter of a directive."""


@dataclass(frozen=True)
class TimeFormat:
    """A format as Spark reads it; ``text`` matches all of a time and has the zone as its group."""

    pattern: str
    text: str
    zoned: bool
    named_days: bool


def read_format(format: str) -> TimeFormat:
    """What a format of `strptime` means; `problems_with_format` says whether it can be read."""
    letters = letters_of(format)
    parts = [format_part(match, format) for match in PART.finditer(format)]
    return TimeFormat(
        pattern="".join(pattern for pattern, _ in parts),
        text=f"^{''.join(text for _, text in parts)}$",
        zoned="z" in letters,
        named_days=bool({"a", "A"} & set(letters)),
    )


def letters_of(format: str) -> list[str]:
    return [match[2] for match in PART.finditer(format) if match[2] is not None]


def format_part(match: re.Match[str], format: str) -> tuple[str, str]:
    """A part of a format as pattern and as text."""
    if match[1] is not None:
        literal = match[1].replace("%%", "%")
        return "'{}'".format(literal.replace("'", "''")), re.escape(literal)
    own = DIRECTIVES[match[2]]
    if not own.digits:
        return own.pattern, own.text
    if touched(match, format):
        return own.pattern * own.digits, rf"\d{{{own.digits}}}"
    return own.pattern, rf"\d{{1,{own.digits}}}"


def touched(match: re.Match[str], format: str) -> bool:
    """Whether another number stands right before or after."""
    before, after = format[: match.start()][-2:], format[match.end() :][:2]
    return any(len(two) == 2 and two[0] == "%" and two[1] in NUMBERS for two in (before, after))


def problems_with_format(format: str) -> Iterator[tuple[str, str]]:
    """What is wrong with a format, and the remedy."""
    letters = letters_of(format)
    known = ", ".join(f"%{letter}" for letter in DIRECTIVES)
    for letter in letters:
        if letter not in DIRECTIVES:
            yield f"'%{letter}' is not known", f"Use some of {known}"
    means = Counter(DIRECTIVES[letter].means for letter in letters if letter in DIRECTIVES)
    for name, times in means.items():
        if times > 1:
            yield f"it has the {name} {times} times", "Say it once"
    if not means["year"]:
        yield "it has no year", "Give the time with its year: %Y"
    if not (means["day of the year"] or (means["month"] and means["day"])):
        yield "it has no day", "Give the month and the day: %m and %d"
    if ("I" in letters) != ("p" in letters):
        yield "%I and %p need each other", "Use both, or %H"
    if any(match[2] == "f" and touched(match, format) for match in PART.finditer(format)):
        yield "%f touches another number", "Write times with a sign before the fraction"


# ---- zones


def zone_of(name: str) -> tzinfo | None:
    """The zone of that name or offset, or None if there is none."""
    if name in ("Z", "UTC"):
        return UTC
    if offset := OFFSET.fullmatch(name):
        sign = -1 if offset[1] == "-" else 1
        minutes = int(offset[2]) * 60 + int(offset[3] or 0)
        return timezone(sign * timedelta(minutes=minutes)) if minutes < 24 * 60 else None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


@dataclass(frozen=True)
class Moment:
    """Seconds, since 1970 if there is a ``zone``: the one in which the time was written."""

    seconds: float
    zone: str | None = None

    @property
    def told(self) -> str | float:
        """ISO 8601 in its own zone; seconds if that is all that is known."""
        zone = None if self.zone is None else zone_of(self.zone)
        if zone is None:
            return self.seconds
        try:
            return datetime.fromtimestamp(self.seconds, zone).isoformat()
        except (ValueError, OverflowError):
            return self.seconds


@dataclass(frozen=True)
class Span:
    """The first and the last moment that something was published."""

    first: Moment
    last: Moment

    @property
    def seconds(self) -> float:
        return self.last.seconds - self.first.seconds
