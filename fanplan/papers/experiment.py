"""What an experiment is: settings that are sampled, and the paper's items that samples fill in.

A *setting* is a dict for ``sample``, with a ``name`` of its own. A sample of it is one Spark task
and gives measured numbers by *key*. A *point* says which number of which setting a figure shows.
All settings are sampled with the same seeds: run *i* of one compares with run *i* of another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Setting = Mapping[str, Any]
Sample = Callable[[dict[str, Any], int], dict[str, float]]
Samples = Mapping[tuple[str, str], NDArray[np.float64]]
"""The measured numbers of all runs, by setting and key."""


@dataclass(frozen=True)
class Point:
    """One number of a figure or table: what is measured, where it is drawn, what was published.

    ``x`` is a place on the horizontal axis, or the name of a bar.
    """

    setting: str
    key: str
    x: float | str = ""
    published: float | None = None


@dataclass(frozen=True)
class Line:
    """Points that belong together; ``ours`` marks a method that is not the paper's."""

    label: str
    points: tuple[Point, ...]
    ours: bool = False


Side = Point | float

OURS = "Ours: "
"""So begins a statement that is not the paper's."""


@dataclass(frozen=True)
class Statement:
    """What the text says of an item: in each pair, the first number is below the second.

    With a ``factor`` it is below the second times the factor: "almost as good as". A run agrees
    if all of its pairs do. The statement holds if most of the runs agree.
    """

    text: str
    pairs: tuple[tuple[Side, Side], ...]
    factor: float = 1.0

    @property
    def ours(self) -> bool:
        return self.text.startswith(OURS)


@dataclass(frozen=True)
class Item:
    """A table or figure of a paper, as it is measured here.

    ``x`` and ``y`` label the axes; without ``x`` the points are bars. ``reading`` says how the
    text was understood where it leaves a choice. An item of statements alone has no lines. With
    ``numbers`` the page has all rows, also those without a published number.
    """

    name: str
    title: str
    lines: tuple[Line, ...]
    y: str
    x: str | None = None
    reading: str = ""
    statements: tuple[Statement, ...] = ()
    log: bool = False
    numbers: bool = False


@dataclass(frozen=True)
class Study:
    """What is sampled, how often, and the items it fills in. The longest settings come first."""

    settings: tuple[Setting, ...]
    items: tuple[Item, ...]
    runs: int


@dataclass(frozen=True)
class Experiment:
    """A paper's evaluation: a study in full, and a quick one of smaller sizes.

    ``sample`` is a function of a module: of a setting and a seed, and of nothing else.
    """

    name: str
    paper: str
    sample: Sample
    full: Study
    quick: Study


@dataclass(frozen=True)
class Row:
    """One result beside the published number. ``sd`` is over runs; z needs both and an sd."""

    paper: str
    item: str
    setting: str
    published: float | None
    mean: float
    sd: float | None
    z: float | None
    runs: int

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Verdict:
    """A statement, the means of its two sides, and how many of the runs agree."""

    item: str
    text: str
    lower: float
    higher: float
    agree: int
    runs: int

    @property
    def holds(self) -> bool:
        return 2 * self.agree > self.runs


def spread(values: NDArray[np.float64]) -> float | None:
    """Standard deviation of a sample; one run has none, and equal runs have 0 without rounding."""
    if len(values) < 2:
        return None
    return float(np.std(values, ddof=1)) if np.ptp(values) else 0.0


def z_score(published: float | None, mean: float, sd: float | None) -> float | None:
    """How many standard deviations of a run the published number lies above the mean.

    A published number is taken as one run, so more runs of ours do not make it more doubtful.
    """
    if published is None or not sd:
        return None
    return float((published - mean) / sd)


def summarise(
    paper: str, item: str, setting: str, published: float | None, values: NDArray[np.float64]
) -> Row:
    """The row of one number measured in several runs."""
    mean, sd = float(np.mean(values)), spread(values)
    z = z_score(published, mean, sd)
    return Row(paper, item, setting, published, mean, sd, z, len(values))


def item_rows(paper: str, item: Item, samples: Samples) -> list[Row]:
    """A row per point, then one per statement: the mean is the share of runs that agree.

    A statement of the paper has 1 as its published number.
    """
    points = [
        summarise(paper, item.name, place(item, line, p), p.published, samples[p.setting, p.key])
        for line in item.lines
        for p in line.points
    ]
    statements = [
        summarise(
            paper,
            item.name,
            statement.text,
            None if statement.ours else 1.0,
            agreement(statement, samples).astype(np.float64),
        )
        for statement in item.statements
    ]
    return points + statements


def place(item: Item, line: Line, point: Point) -> str:
    """Where a point is, in words: its line and its place on the axis."""
    x = point.x if isinstance(point.x, str) else f"{item.x} {point.x:g}"
    return f"{line.label}, {x}" if x else line.label


def side(value: Side, samples: Samples) -> NDArray[np.float64]:
    """The numbers of one side of a comparison, one per run or one for all."""
    return samples[value.setting, value.key] if isinstance(value, Point) else np.array([value])


def agreement(statement: Statement, samples: Samples) -> NDArray[np.bool_]:
    """Which runs agree with a statement."""
    return np.logical_and.reduce(
        [
            side(low, samples) < statement.factor * side(high, samples)
            for low, high in statement.pairs
        ]
    )


def judge(item: Item, statement: Statement, samples: Samples) -> Verdict:
    """A statement against all runs; the means are over the pairs too."""
    agree = agreement(statement, samples)
    lower, higher = (
        float(np.mean([np.mean(side(pair[i], samples)) for pair in statement.pairs]))
        for i in (0, 1)
    )
    return Verdict(item.name, statement.text, lower, higher, int(agree.sum()), len(agree))
