"""Cost against the number of channels, with the chosen number marked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fanplan.reporting.charts import Frame, Line, chart, dot, level, lines
from fanplan.reporting.content import Picture
from fanplan.reporting.numbers import number, ticks
from fanplan.reporting.svg import line


@dataclass(frozen=True)
class CurvePoint:
    """What a plan with so many channels costs, and what no plan with as many can undercut.

    ``single_bound`` holds for plans with one channel per flow.
    """

    channels: int
    cost: float
    bound: float
    single_bound: float


def curve_picture(
    name: str, points: Sequence[CurvePoint], chosen: CurvePoint, unicast: float, perfect: float
) -> Picture:
    """Costs at each number, from the plans themselves; the numbers stand on a scale of factors."""
    points = sorted({p.channels: p for p in (*points, chosen)}.values(), key=lambda p: p.channels)
    low, high = math.log(points[0].channels), math.log(points[-1].channels)
    frame = Frame(
        x=lambda k: (math.log(k) - low) / (high - low) if high > low else 0.5,
        x_ticks=[point.channels for point in points],
        x_title="number of channels",
        y_ticks=ticks(max(unicast, *(point.cost for point in points))),
        y_title="cost (weighted messages)",
    )
    tips = [f"{p.channels} channels\ncost {number(p.cost)}" for p in points]
    drawn = [
        Line([(p.channels, p.bound) for p in points], "bound"),
        Line([(p.channels, p.single_bound) for p in points], "single bound"),
        Line([(p.channels, p.cost) for p in points], "planned", tips),
    ]
    x, y = frame.at((chosen.channels, chosen.cost))
    _, ground = frame.at((chosen.channels, 0.0))
    tip = f"this plan: {chosen.channels} channels\ncost {number(chosen.cost)}"
    return Picture(
        name=name,
        title="Cost against the number of channels",
        content=chart(
            frame,
            f"Cost against channels; {chosen.channels} are chosen",
            level(frame, unicast, "all by unicast", "right"),
            level(frame, perfect, "perfect multicast", "left"),
            line(x, y, x, ground, "chosen"),
            *lines(frame, drawn),
            dot(frame, (chosen.channels, chosen.cost), tip, "chosen", 7.5),
        ),
        caption="No plan can be below the dashed line, and none with one channel per flow below "
        "the dotted one.",
        legend=[
            ("planned", "plans"),
            ("chosen", "this plan"),
            ("bound", "lower bound"),
            ("single bound", "lower bound, one channel per flow"),
        ],
    )
