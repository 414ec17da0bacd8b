"""Bars: what amounts consist of, and a waterfall from the naive system to the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from fanplan.page.content import Picture
from fanplan.page.numbers import TIMES, number, percent, rate, rate_time
from fanplan.page.saving import Saving
from fanplan.page.svg import drawing, line, tag, text

WIDTH, ROW, BAR = 420.0, 46.0, 20.0
LETTER = 8.0
"""At most so wide is a letter of small text, on average."""
THIN, KNOB = 36.0, 5.5
SPELT = {"s": "second", "min": "minute", "h": "hour", "day": "day"}
MOST_BARS = 16
"""Bars of a picture; the tables have all."""


@dataclass(frozen=True)
class Stack:
    """An amount and its parts, by name."""

    words: str
    parts: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.parts.values())


def stacked(
    name: str, title: str, unit: str, stacks: Sequence[Stack], classes: dict[str, str], caption: str
) -> Picture:
    """A bar for each of the largest amounts; ``classes`` has the colour of each part.

    A part that no bar has is not explained.
    """
    shown = stacks
    if len(stacks) > MOST_BARS:
        shown = sorted(stacks, key=lambda stack: -stack.total)[:MOST_BARS]
        caption = f"The largest {MOST_BARS} of {number(len(stacks))}. {caption}"
    most = max((stack.total for stack in shown), default=0.0) or 1.0
    parts = [
        part for i, s in enumerate(shown) for part in stack_parts(s, i * ROW, most, unit, classes)
    ]
    there = [part for part in classes if any(stack.parts.get(part) for stack in shown)]
    return Picture(
        name,
        title,
        drawing(WIDTH, ROW * len(shown), f"{title}, {unit}", *parts),
        caption,
        [(f"part {classes[part]}", part) for part in there],
    )


def stack_parts(
    stack: Stack, top: float, most: float, unit: str, classes: dict[str, str]
) -> list[Markup]:
    """Words and total above the bar; each part tells its figures on hovering."""
    at, drawings = 0.0, [
        text(0, top + 15, stack.words, "label"),
        text(WIDTH, top + 15, number(stack.total), "figure", "end"),
    ]  # fmt: skip
    for part, class_ in classes.items():
        amount = stack.parts.get(part, 0.0)
        if amount > 0:
            width = amount / most * WIDTH
            tip = f"{stack.words}\n{part}: {number(amount)} {unit}, {percent(amount / stack.total)}"
            place = {"x": at, "y": top + 21, "width": width, "height": BAR}
            drawings.append(tag("rect", **place, class_=f"part {class_}", data_tip=tip))
            at += width
    return drawings


# ---- before and after: a line between two dots


def dumbbells(
    name: str, title: str, rows: Sequence[tuple[str, float, float]], words: tuple[str, str]
) -> Picture:
    """(name, before, after) of what changes most; ``words`` say what before and after are."""
    shown = rows[:MOST_BARS]
    time = rate_time(value for row in shown for value in row[1:])
    most = max((value for row in shown for value in row[1:]), default=0.0) or 1.0
    parts = [
        part for i, row in enumerate(shown) for part in dumbbell(row, i * THIN, most, time, words)
    ]
    caption = f"Messages per {SPELT[time]}: " + (
        f"the {MOST_BARS} that change most of {number(len(rows))}."
        if len(rows) > MOST_BARS
        else "those that change most come first."
    )
    legend = [("naive", words[0]), ("chosen", words[1])]
    height = THIN * len(shown) + 4
    label = f"{title}, {words[0]} and {words[1]}"
    return Picture(name, title, drawing(WIDTH, height, label, *parts), caption, legend)


def dumbbell(
    row: tuple[str, float, float], top: float, most: float, time: str, words: tuple[str, str]
) -> list[Markup]:
    name, before, after = row
    scale, long = (WIDTH - 2 * KNOB) / most, TIMES[time]
    figures = f"{number(before * long)} → {number(after * long)}"
    tip = f"{name}\n{words[0]}: {rate(before)}\n{words[1]}: {rate(after)}"
    room = int((WIDTH - LETTER * len(figures)) / LETTER)
    shown = name if len(name) <= room else f"{name[: room - 1]}…"
    ends = KNOB + before * scale, KNOB + after * scale
    y, kind = top + 26, "less" if after < before else "more" if after > before else ""
    return [
        text(0, top + 15, shown, "label"),
        text(WIDTH, top + 15, figures, "figure", "end"),
        line(ends[0], y, ends[1], y, f"dumb {kind}".strip()),
        tag("circle", cx=ends[0], cy=y, r=KNOB - 1, class_="knob", data_tip=tip),
        tag("circle", cx=ends[1], cy=y, r=KNOB, class_="knob after", data_tip=tip, tabindex=0),
    ]


# ---- a waterfall: the naive cost, what each step saves of it, and what is left


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
    parts = [part for i, bar in enumerate(bars) for part in bar_parts(bar, i * ROW, WIDTH / most)]
    label = f"{saving.layer}: {saving.headline} {saving.against}"
    return Picture(
        name=f"waterfall-{saving.name}",
        title=saving.title,
        content=drawing(WIDTH, height, label, *parts, *floor_line(saving, most, ROW * len(bars))),
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


def bar_parts(bar: Bar, top: float, scale: float) -> list[Markup]:
    width = max((bar.high - bar.low) * scale, 1.5)
    at = min(bar.low * scale, WIDTH - width)
    return [
        text(0, top + 15, bar.words, "label"),
        text(WIDTH, top + 15, bar.figure, "figure", "end"),
        tag("rect", x=at, y=top + 21, width=width, height=BAR, rx=2, class_=f"bar {bar.class_}"),
    ]


def floor_line(saving: Saving, most: float, bottom: float) -> list[Markup]:
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
