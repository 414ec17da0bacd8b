"""Stacked bars: what each of several amounts consists of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from fanplan.page.content import Picture
from fanplan.page.numbers import number, percent
from fanplan.page.svg import drawing, tag, text

WIDTH, ROW, BAR = 420.0, 46.0, 20.0
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
    parts = [part for i, s in enumerate(shown) for part in drawn(s, i * ROW, most, unit, classes)]
    there = [part for part in classes if any(stack.parts.get(part) for stack in shown)]
    return Picture(
        name,
        title,
        drawing(WIDTH, ROW * len(shown), f"{title}, {unit}", *parts),
        caption,
        [(f"part {classes[part]}", part) for part in there],
    )


def drawn(
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
