"""What an experiment is: settings that are sampled, and the paper's items that samples fill in.

A *setting* is a dict for ``sample``, with a ``name`` of its own. A sample of it is one Spark task
and gives measured numbers by *key*. A *point* says which number of which setting a figure shows.
All settings are sampled with the same seeds: run *i* of one compares with run *i* of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, pairwise, permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fanplan.data.tasks import run_tasks

PaperSetting = Mapping[str, Any]
Sampler = Callable[[dict[str, Any], int], dict[str, float]]
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
class PaperLine:
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
    lines: tuple[PaperLine, ...]
    y: str
    x: str | None = None
    reading: str = ""
    statements: tuple[Statement, ...] = ()
    log: bool = False
    numbers: bool = False


@dataclass(frozen=True)
class Study:
    """What is sampled, how often, and the items it fills in. The longest settings come first."""

    settings: tuple[PaperSetting, ...]
    items: tuple[Item, ...]
    runs: int


@dataclass(frozen=True)
class Experiment:
    """A paper's evaluation: a study in full, and a quick one of smaller sizes.

    ``sample`` is a function of a module: of a setting and a seed, and of nothing else.
    """

    name: str
    paper: str
    sample: Sampler
    full: Study
    quick: Study


@dataclass(frozen=True)
class PaperRow:
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
class Judgement:
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


# ---- running


def take_sample(sample: Sampler, item: dict[str, Any]) -> dict[str, Any]:
    """One task: a sample of a setting with a seed of its own."""
    return sample(item["setting"], item["seed"])


def run_study(
    spark: Any,
    experiment: Experiment,
    study: Study,
    runs: int,
    seed: int = 0,
    finished: Callable[[int], None] = lambda done: None,
) -> Samples:
    """All settings with the seeds from ``seed`` on; run *i* has seed + i whatever else is run."""
    items: list[dict[str, Any]] = [
        {"setting": dict(setting), "seed": seed + run}
        for setting in study.settings
        for run in range(runs)
    ]
    results = run_tasks(spark, partial(take_sample, experiment.sample), items, finished)
    samples: dict[tuple[str, str], list[float]] = {}
    for item, result in zip(items, results, strict=True):
        for key, value in result.items():
            samples.setdefault((item["setting"]["name"], key), []).append(value)
    return {place: np.array(values, dtype=np.float64) for place, values in samples.items()}


# ---- what samples say


def deviation(values: NDArray[np.float64]) -> float | None:
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
) -> PaperRow:
    """The row of one number measured in several runs."""
    mean, sd = float(np.mean(values)), deviation(values)
    z = z_score(published, mean, sd)
    return PaperRow(paper, item, setting, published, mean, sd, z, len(values))


def item_rows(paper: str, item: Item, samples: Samples) -> list[PaperRow]:
    """A row per point, then one per statement: the mean is the share of runs that agree.

    A statement of the paper has 1 as its published number.
    """
    points = [
        summarise(
            paper, item.name, point_words(item, line, p), p.published, samples[p.setting, p.key]
        )
        for line in item.lines
        for p in line.points
    ]
    statements = [
        summarise(
            paper,
            item.name,
            statement.text,
            None if statement.ours else 1.0,
            agreeing_runs(statement, samples).astype(np.float64),
        )
        for statement in item.statements
    ]
    return points + statements


def point_words(item: Item, line: PaperLine, point: Point) -> str:
    """Where a point is, in words: its line and its place on the axis."""
    x = point.x if isinstance(point.x, str) else f"{item.x} {point.x:g}"
    return f"{line.label}, {x}" if x else line.label


def side_numbers(value: Side, samples: Samples) -> NDArray[np.float64]:
    """The numbers of one side of a comparison, one per run or one for all."""
    return samples[value.setting, value.key] if isinstance(value, Point) else np.array([value])


def agreeing_runs(statement: Statement, samples: Samples) -> NDArray[np.bool_]:
    """Which runs agree with a statement."""
    result: NDArray[np.bool_] = np.logical_and.reduce(
        [
            side_numbers(low, samples) < statement.factor * side_numbers(high, samples)
            for low, high in statement.pairs
        ]
    )
    return result


def judge_statement(item: Item, statement: Statement, samples: Samples) -> Judgement:
    """A statement against all runs; the means are over the pairs too."""
    agree = agreeing_runs(statement, samples)
    lower, higher = (
        float(np.mean([np.mean(side_numbers(pair[i], samples)) for pair in statement.pairs]))
        for i in (0, 1)
    )
    return Judgement(item.name, statement.text, lower, higher, int(agree.sum()), len(agree))


# ---- statements as figures make them


def pointwise(
    text: str, lower: Sequence[Side], higher: Sequence[Side], factor: float = 1.0
) -> Statement:
    """Point by point, the first are below the second."""
    return Statement(text, tuple(zip(lower, higher, strict=True)), factor)


def all_below(
    text: str,
    lower: Iterable[Sequence[Side]],
    higher: Iterable[Sequence[Side]],
    factor: float = 1.0,
) -> Statement:
    """Point by point, each of the first lines is below each of the second."""
    pairs = (zip(low, high, strict=True) for low, high in product(lower, higher))
    return Statement(text, tuple(chain.from_iterable(pairs)), factor)


Claim = tuple[str, Sequence[str], Sequence[str], float]
"""A statement in names: the methods of the first and of the second lines, and the factor."""


def claimed(
    points: Callable[[str], Sequence[Side]], claims: Iterable[Claim]
) -> Iterator[Statement]:
    """Claims about the points of methods."""
    for text, lower, higher, factor in claims:
        yield all_below(text, map(points, lower), map(points, higher), factor)


def every_below(
    text: str, lower: Iterable[Side], higher: Iterable[Side], factor: float = 1.0
) -> Statement:
    """Every one of the first points is below every one of the second."""
    return Statement(text, tuple(product(lower, higher)), factor)


def alike(text: str, lines: Sequence[Sequence[Side]], factor: float) -> Statement:
    """Point by point, no line is higher than another times the factor."""
    pairs = (zip(one, other, strict=True) for one, other in permutations(lines, 2))
    return Statement(text, tuple(chain.from_iterable(pairs)), factor)


def rising(text: str, lines: Iterable[Sequence[Side]]) -> Statement:
    """Along each line, every point is below the next."""
    return Statement(text, tuple(chain.from_iterable(map(pairwise, lines))))
