"""Charts of lines: cost against a number, and how much lies below a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from fanplan.page.numbers import short
from fanplan.page.svg import drawing, line, polyline, tag, text

WIDTH, HEIGHT = 420.0, 290.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 18.0, 28.0, 44.0
MOST_POINTS = 200
"""Points of a line of shares; more are not seen."""

ChartPoint = tuple[float, float]


@dataclass(frozen=True)
class ChartLine:
    """A line through points; with ``tips`` it has a dot at each that tells its figures."""

    points: Sequence[ChartPoint]
    class_: str
    tips: Sequence[str] = ()


@dataclass(frozen=True)
class Frame:
    """What a chart's axes say, and where values lie on them.

    ``x`` maps values to 0 … 1; y begins at 0. Titles say the unit.
    """

    x: Callable[[float], float]
    x_ticks: Sequence[float]
    x_title: str
    y_ticks: Sequence[float]
    y_title: str

    def at(self, point: ChartPoint) -> ChartPoint:
        across = LEFT + self.x(point[0]) * (WIDTH - LEFT - RIGHT)
        return across, HEIGHT - BOTTOM - point[1] / self.y_ticks[-1] * (HEIGHT - TOP - BOTTOM)


def chart(frame: Frame, label: str, *parts: Markup) -> Markup:
    return drawing(WIDTH, HEIGHT, label, *axes(frame), *parts)


def axes(frame: Frame) -> list[Markup]:
    parts = []
    for value in frame.y_ticks:
        x, y = frame.at((frame.x_ticks[0], value))
        parts += [line(LEFT, y, WIDTH - RIGHT, y, "grid")]
        parts += [text(LEFT - 6, y + 4, short(value), "tick", "end")]
    bottom = HEIGHT - BOTTOM
    for value in frame.x_ticks:
        x, _ = frame.at((value, 0))
        parts += [line(x, bottom, x, bottom + 4, "axis")]
        parts += [text(x, bottom + 17, short(value), "tick", "middle")]
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts += [text(middle, HEIGHT - 6, frame.x_title, "title", "middle")]
    parts += [text(0, 12, frame.y_title, "title")]
    return parts


def chart_lines(frame: Frame, drawn: Sequence[ChartLine]) -> list[Markup]:
    parts = [
        polyline([frame.at(point) for point in one.points], f"line {one.class_}") for one in drawn
    ]
    return parts + [dot(frame, p, tip, one.class_) for one in drawn for p, tip in dots(one)]


def dots(one: ChartLine) -> list[tuple[ChartPoint, str]]:
    return list(zip(one.points, one.tips, strict=True)) if one.tips else []


def dot(frame: Frame, point: ChartPoint, tip: str, class_: str, radius: float = 4.5) -> Markup:
    x, y = frame.at(point)
    name = f"dot {class_}"
    return tag("circle", cx=x, cy=y, r=radius, class_=name, data_tip=tip, tabindex=0)


def level(frame: Frame, value: float, words: str, end: Literal["left", "right"]) -> Markup:
    """A line across the chart at a height, with words at one of its ends.

    On the left curves come from above, so the words are below the line if there is room.
    """
    y = frame.at((frame.x_ticks[0], value))[1]
    place = (LEFT + 4, "start") if end == "left" else (WIDTH - RIGHT - 4, "end")
    below = end == "left" and y + 20 < HEIGHT - BOTTOM
    told = text(place[0], y + 14 if below else y - 5, words, "note", place[1])
    return tag("g", line(LEFT, y, WIDTH - RIGHT, y, "level"), told)


def share_steps(values: NDArray[np.float64], weights: NDArray[np.float64]) -> list[ChartPoint]:
    """Which share of the weight has at most each value, as the corners of steps.

    Beyond ``MOST_POINTS`` different values some are left out, but never the largest.
    """
    different, where = np.unique(values, return_inverse=True)
    total = float(weights.sum())
    if not total:
        return []
    below = np.cumsum(np.bincount(where, weights)) / total
    kept = np.unique(np.linspace(0, len(different) - 1, MOST_POINTS).astype(int))
    points: list[ChartPoint] = [(0.0, 0.0)]
    for value, share in zip(different[kept].tolist(), below[kept].tolist(), strict=True):
        points += [(value, points[-1][1]), (value, share)]
    return points
