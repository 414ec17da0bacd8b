"""Cost against the number of channels, with the chosen number marked."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from fanplan.core.stop import Watch
from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.layers.channels.command import plan_channels
from fanplan.layers.channels.params import ChannelsParams
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.registry import load_plan
from fanplan.page.charts import ChartLine, Frame, chart, chart_lines, dot, level
from fanplan.page.content import Picture
from fanplan.page.material import CurvePoint
from fanplan.page.numbers import number, ticks
from fanplan.page.svg import line
from fanplan.plan.made import Job
from fanplan.plan.stored import StoredPlan

FACTORS = (0.125, 0.25, 0.5, 2.0)
"""Numbers of channels on a curve, beside that of the plan, relative to it."""


@dataclass(frozen=True)
class Level:
    """A cost that does not depend on channels."""

    value: float
    words: str
    end: Literal["left", "right"]


@dataclass(frozen=True)
class CurveWords:
    """What a curve says: ``beside`` has the class and the meaning of each line beside the plans."""

    x_title: str
    y_title: str
    caption: str
    beside: tuple[tuple[str, str], ...]
    levels: tuple[Level, ...]


def curve_picture(
    name: str, points: Sequence[CurvePoint], chosen: CurvePoint, words: CurveWords
) -> Picture:
    """Costs at each number, from the plans themselves; the numbers stand on a scale of factors."""
    points = sorted({p.channels: p for p in (*points, chosen)}.values(), key=lambda p: p.channels)
    low, high = math.log(points[0].channels), math.log(points[-1].channels)
    highest = [*(one.value for one in words.levels), *(max(p.cost, *p.beside) for p in points)]
    frame = Frame(
        x=lambda k: (math.log(k) - low) / (high - low) if high > low else 0.5,
        x_ticks=[point.channels for point in points],
        x_title=words.x_title,
        y_ticks=ticks(max(highest)),
        y_title=words.y_title,
    )
    tips = [f"{p.channels} channels\ncost {number(p.cost)}" for p in points]
    drawn = [
        ChartLine([(p.channels, p.beside[i]) for p in points], class_)
        for i, (class_, _) in enumerate(words.beside)
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
            *(level(frame, one.value, one.words, one.end) for one in words.levels),
            line(x, y, x, ground, "chosen"),
            *chart_lines(
                frame, [*drawn, ChartLine([(p.channels, p.cost) for p in points], "planned", tips)]
            ),
            dot(frame, (chosen.channels, chosen.cost), tip, "chosen", 7.5),
        ),
        caption=words.caption,
        legend=[("planned", "plans"), ("chosen", "this plan"), *words.beside],
    )


def stored_curve(plan: StoredPlan) -> list[CurvePoint]:
    """The curve that the plan was made in, if its folder still lies in that of the curve."""
    path = plan.folder.absolute().parent / "curve.json"
    if not path.is_file():
        return []
    points = json.loads(path.read_text(encoding="utf-8"))["points"]
    folders = [path.parent / str(point["channels"]) for point in points]
    records = [load_plan(folder).section(ChannelsRecord) for folder in folders]
    return [CurvePoint(r.params.channels, r.cost, (r.bound, r.single_bound)) for r in records]


def has_channels(plan: StoredPlan) -> bool:
    """Whether the plan has channels, whose number can be another."""
    return plan.section(ChannelsRecord).params.channels > 0


def planned_curve(plan: StoredPlan, dataset: Dataset, engine: Engine) -> list[CurvePoint]:
    """Plans for other numbers of channels by the same method, weights and seed, without limits."""
    params = plan.section(ChannelsRecord).params
    job = Job(dataset, plan.record.seed, Watch(None, None), engine)
    asked = ChannelsParams(params.channels, params.method, params.unicast, prices=params.prices)
    points = []
    for many in other_numbers(params.channels, plan.section(ChannelsRecord).flows):
        made = plan_channels(job, replace(asked, channels=many)).section
        points.append(CurvePoint(many, made.cost, (made.bound.cost, made.single_bound.cost)))
    return points


def other_numbers(channels: int, flows: int) -> list[int]:
    """Fewer and more than the plan has, but at least one and no more than flows."""
    wished = {max(1, min(round(channels * factor), flows)) for factor in FACTORS}
    return sorted(wished - {channels})
