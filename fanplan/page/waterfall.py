"""A waterfall: the naive system's cost, what each step saves of it, and what is left."""

from __future__ import annotations

from typing import NamedTuple

from markupsafe import Markup

from fanplan.page.content import Picture
from fanplan.page.numbers import number, percent
from fanplan.page.saving import Saving
from fanplan.page.svg import drawing, line, tag, text

WIDTH, ROW, BAR = 420.0, 46.0, 20.0
LETTER = 8.0
"""At most so wide is a letter of small text, on average."""


class Bar(NamedTuple):
    """A bar from one value to another, with words to the left and a figure to the right."""

    words: str
    figure: str
    low: float
    high: float
    class_: str


def waterfall(saving: Saving) -> Picture:
    bars = bars_of(saving)
    most = max(bar.high for bar in bars) or 1.0
    height = ROW * len(bars) + (30 if saving.least else 8)
    parts = [part for i, bar in enumerate(bars) for part in drawn(bar, i * ROW, WIDTH / most)]
    label = f"{saving.layer}: {saving.headline} {saving.against}"
    return Picture(
        name=f"waterfall-{saving.name}",
        title=saving.title,
        content=drawing(WIDTH, height, label, *parts, *floor(saving, most, ROW * len(bars))),
        caption=f"{saving.plan}: {saving.unit}. Green is what a step saves.",
    )


def bars_of(saving: Saving) -> list[Bar]:
    """The naive system, a bar per step, and the plan."""
    first, last = saving.naive, saving.result
    bars = [Bar(first.words, number(first.value), 0.0, first.value, "naive")]
    for before, after, words in zip(saving.steps, saving.steps[1:], saving.gains, strict=False):
        change = after.value - before.value
        share = percent(change / first.value) if first.value else ""
        kind = "saved" if change <= 0 else "added"
        words = f"{kind} by {words}"
        figure = f"{number(change)} ({share})"
        low, high = sorted((before.value, after.value))
        bars.append(Bar(words, figure, low, high, kind))
    return [*bars, Bar(last.words, number(last.value), 0.0, last.value, "planned")]


def drawn(bar: Bar, top: float, scale: float) -> list[Markup]:
    width = max((bar.high - bar.low) * scale, 1.5)
    at = min(bar.low * scale, WIDTH - width)
    return [
        text(0, top + 15, bar.words, "label"),
        text(WIDTH, top + 15, bar.figure, "figure", "end"),
        tag("rect", x=at, y=top + 21, width=width, height=BAR, rx=2, class_=f"bar {bar.class_}"),
    ]


def floor(saving: Saving, most: float, bottom: float) -> list[Markup]:
    """A line that no plan can be below."""
    if saving.least is None:
        return []
    at = saving.least.value / most * WIDTH
    words = f"{saving.least.words}: {number(saving.least.value)}"
    start = max(min(at, WIDTH - LETTER * len(words)), 0.0)
    return [
        line(at, bottom - ROW + 18, at, bottom + 8, "floor"),
        text(start, bottom + 22, words, "note"),
    ]
