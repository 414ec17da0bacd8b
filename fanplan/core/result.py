"""What verbs give: a line in Python, a table with a picture in a notebook, JSON for programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape
from itertools import islice
from typing import Any, ClassVar

from fanplan.core.errors import printable, shorten

HEADLINE = 6
"""Figures that stand in a line."""

ROWS = 14
"""Figures that stand in a table."""

WIDE = 220
"""Width of the longest bar, in pixels."""


class Result:
    """What a verb gives: ``summary()`` is what to read first, ``json()`` is all of it."""

    drawn: ClassVar[tuple[str, ...]] = ()
    """Figures of the summary that are drawn as bars, and told first: they have one unit."""

    def json(self) -> dict[str, Any]:
        """All of it, as JSON."""
        return self.summary()

    def summary(self) -> dict[str, Any]:
        """What to read first: all that is one number or one word."""
        return {name: value for name, value in self.json().items() if is_plain(value)}

    def bars(self) -> Mapping[str, float]:
        """What the picture in a notebook shows."""
        told = self.summary()
        return {name: told[name] for name in self.drawn if is_number(told.get(name))}

    def notes_shown(self) -> Iterable[str]:
        """Sentences below the picture."""
        return ()

    def _figures(self) -> dict[str, Any]:
        found = plain_figures(self.summary())
        return {name: found[name] for name in self.drawn if name in found} | found

    def __repr__(self) -> str:
        told = [f"{name}={short_text(value)}" for name, value in self._figures().items()]
        more = ", …" if len(told) > HEADLINE else ""
        return f"{type(self).__name__}({', '.join(told[:HEADLINE])}{more})"

    def _repr_html_(self) -> str:
        """The headline as a table, and a picture of it."""
        rows = "".join(
            f"<tr><td>{safe(name.replace('_', ' '))}</td>"
            f"<td style='text-align:right'>{safe(plain_number(value))}</td></tr>"
            for name, value in islice(self._figures().items(), ROWS)
        )
        notes = "".join(f"<div>{safe(line)}</div>" for line in self.notes_shown())
        title = safe(type(self).__name__)
        return f"<b>{title}</b>{bars_drawn(self.bars())}<table>{rows}</table>{notes}"


def snake(name: str) -> str:
    """A name in words as a key of JSON."""
    return re.sub(r"[^0-9a-z.]+", "_", name.lower()).strip("_")


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def plain_figures(told: Mapping[str, Any]) -> dict[str, Any]:
    """Figures by name; those of a layer or another part after its name."""
    found: dict[str, Any] = {}
    for name, value in told.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{own}": v for own, v in value.items() if is_plain(v)}
        elif is_plain(value):
            found[name] = value
    return {name: value for name, value in found.items() if value is not None}


def short_text(value: Any) -> str:
    return repr(shorten(value)) if isinstance(value, str) else plain_number(value)


def safe(text: str) -> str:
    """A name or word for a page: data, never markup."""
    return escape(printable(text))


def plain_number(value: Any) -> str:
    """A value as a person writes it: whole numbers with separators, others with few digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"


def bars_drawn(bars: Mapping[str, float]) -> str:
    """Bars with their names, in the colour of the text around: for light and dark pages."""
    longest = max((abs(value) for value in bars.values()), default=0.0)
    if not longest:
        return ""
    told = ", ".join(f"{name} {plain_number(value)}" for name, value in bars.items())
    lines = [
        f"<text x='130' y='{20 * at + 14}' text-anchor='end'>{safe(shorten(name, 20))}</text>"
        f"<rect x='138' y='{20 * at + 4}' height='12' width='{WIDE * abs(value) / longest:.1f}'"
        f" opacity='0.6'/><text x='{144 + WIDE * abs(value) / longest:.1f}' y='{20 * at + 14}'>"
        f"{safe(plain_number(value))}</text>"
        for at, (name, value) in enumerate(bars.items())
    ]
    size = f"width='{WIDE + 240}' height='{20 * len(lines) + 6}'"
    style = "font:12px sans-serif;fill:currentColor;display:block"
    return (
        f"<svg role='img' aria-label='{safe(told)}' {size} style='{style}'>{''.join(lines)}</svg>"
    )
