"""What an experiment is: settings that are sampled, and the paper's items that samples fill in.

A *setting* is a dict for ``sample``, with a ``name`` of its own. A sample of it is one Spark task
and gives measured numbers by *key*. A *point* says which number of which setting a figure shows.
All settings are sampled with the same seeds: run *i* of one compares with run *i* of another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, pairwise, permutations, product
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from fanplan.data.tasks import run_tasks

PaperSetting = Mapping[str, Any]
Sampler = Callable[[dict[str, Any], int], dict[str, float]]
Samples = Mapping[tuple[str, str], NDArray[np.float64]]
"""The measured numbers of all runs, by setting and key."""


Cause = Literal["the paper errs", "cannot be decided from the text", "we differ"]
ERRS: Cause = "the paper errs"
OPEN: Cause = "cannot be decided from the text"
DIFFER: Cause = "we differ"
CAUSES: tuple[Cause, ...] = (ERRS, OPEN, DIFFER)


@dataclass(frozen=True)
class PaperVerdict:
    """Why something published is not met, with its evidence in a sentence."""

    cause: Cause
    evidence: str

    def __str__(self) -> str:
        return f"{self.cause}: {self.evidence}"


@dataclass(frozen=True)
class Published:
    """What a paper printed; the verdict counts if our runs do not meet it."""

    verdict: PaperVerdict | None = field(default=None, kw_only=True)

    def if_not(self, cause: Cause, evidence: str) -> Self:
        """The same with a verdict for the case that it is not met."""
        return replace(self, verdict=PaperVerdict(cause, evidence))


@dataclass(frozen=True)
class Point(Published):
    """One number of a figure or table: what is measured, where it is drawn, what was published.

    ``x`` is a place on the horizontal axis, or the name of a bar. ``about`` is what the paper's
    word "approximately" leaves open on either side, in the unit of the number.
    """

    setting: str
    key: str
    x: float | str = ""
    published: float | None = None
    about: float = 0.0


@dataclass(frozen=True)
class PaperLine:
    """Points that belong together; ``ours`` marks a method that is not the paper's."""

    label: str
    points: tuple[Point, ...]
    ours: bool = False


Side = Point | float

OURS = "Ours: "
"""So begins a statement that is not the paper's."""


Pair = tuple[Side, Side]
Comparison = tuple[Pair, ...]
"""Pairs that are judged together, on their mean."""


@dataclass(frozen=True)
class Statement(Published):
    """What the text says of an item: in each comparison, the first numbers are below the second.

    With a ``factor`` they are below the second times the factor: "almost as good as". A curve that
    the text calls lower is one comparison: its points are judged on their mean. What it says of
    every point is a comparison for each. The statement needs all of its comparisons.
    """

    text: str
    comparisons: tuple[Comparison, ...]
    factor: float = 1.0

    @property
    def ours(self) -> bool:
        return self.text.startswith(OURS)

    @property
    def pairs(self) -> Iterator[Pair]:
        return chain.from_iterable(self.comparisons)


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


Outcome = Literal["yes", "no", "undecided"]
"""Whether what was published is met; undecided if the runs are too few or too different to say."""


@dataclass(frozen=True)
class PaperRow:
    """One result beside the published number. ``sd`` is over runs; z needs both and an sd.

    Of a statement, the mean is the margin by which it is met. ``met`` is None where nothing was
    published, ``verdict`` unless it is not met.
    """

    paper: str
    item: str
    setting: str
    published: float | None
    mean: float
    sd: float | None
    z: float | None
    runs: int
    met: Outcome | None = None
    verdict: PaperVerdict | None = None

    def json(self) -> dict[str, Any]:
        return asdict(self) | {"verdict": str(self.verdict) if self.verdict else None}


@dataclass(frozen=True)
class Judgement:
    """A statement, the means of its two sides, and its least certain comparison.

    ``margins`` are those of its runs: how much lower the first side is, as a share of both.
    """

    item: str
    text: str
    lower: float
    higher: float
    margins: NDArray[np.float64]
    met: Outcome
    verdict: PaperVerdict | None

    @property
    def margin(self) -> float:
        return float(np.mean(self.margins))


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


SPREAD = 3.0
"""A published number is one of our runs' if it is at most this many deviations from their mean."""


def point_met(point: Point, mean: float, sd: float | None) -> Outcome | None:
    """Whether a published number may be one of our runs', rounded as it was printed."""
    if point.published is None:
        return None
    if sd is None:
        return "undecided"
    slack = max(point.about, half_digit(point.published)) * (1 + 1e-9)
    return "yes" if abs(point.published - mean) <= SPREAD * sd + slack else "no"


def half_digit(value: float) -> float:
    """Half of the last digit that was printed."""
    return 0.5 * 0.1 ** len(f"{value:.12g}".partition(".")[2])


def summarise(
    paper: str, item: str, setting: str, point: Point, values: NDArray[np.float64]
) -> PaperRow:
    """The row of one number measured in several runs."""
    mean, sd = float(np.mean(values)), deviation(values)
    z, met = z_score(point.published, mean, sd), point_met(point, mean, sd)
    verdict = point.verdict if met == "no" else None
    return PaperRow(paper, item, setting, point.published, mean, sd, z, len(values), met, verdict)


def point_rows(paper: str, item: Item, samples: Samples) -> list[PaperRow]:
    """A row per point."""
    return [
        summarise(paper, item.name, point_words(item, line, p), p, samples[p.setting, p.key])
        for line in item.lines
        for p in line.points
    ]


def item_rows(paper: str, item: Item, samples: Samples) -> list[PaperRow]:
    """A row per point, then one per statement."""
    statements = [
        PaperRow(
            paper, item.name, found.text, None, found.margin, deviation(found.margins), None,
            len(found.margins), found.met, found.verdict,
        )
        for found in (judge_statement(item, statement, samples) for statement in item.statements)
    ]  # fmt: skip
    return point_rows(paper, item, samples) + statements


def point_words(item: Item, line: PaperLine, point: Point) -> str:
    """Where a point is, in words: its line and its place on the axis."""
    x = point.x if isinstance(point.x, str) else f"{item.x} {point.x:g}"
    return f"{line.label}, {x}" if x else line.label


def side_numbers(value: Side, samples: Samples) -> NDArray[np.float64]:
    """The numbers of one side of a comparison, one per run or one for all."""
    return samples[value.setting, value.key] if isinstance(value, Point) else np.array([value])


def comparison_margins(
    comparison: Comparison, factor: float, samples: Samples
) -> NDArray[np.float64]:
    """By how much the first numbers are lower in each run, as a share of both: the pairs' mean."""
    margins = []
    for low, high in comparison:
        lower, higher = side_numbers(low, samples), factor * side_numbers(high, samples)
        unit = float(np.mean(np.abs(lower)) + np.mean(np.abs(higher))) / 2
        margins.append((higher - lower) / (unit or 1.0))
    return np.asarray(np.mean(margins, axis=0), dtype=np.float64)


def half_interval(values: NDArray[np.float64]) -> float | None:
    """Half of the 95 % confidence interval of the mean, by Student's t; one run has none."""
    sd = deviation(values)
    if sd is None:
        return None
    return float(student.ppf(0.975, len(values) - 1) * sd / np.sqrt(len(values)))


def margins_met(margins: NDArray[np.float64]) -> Outcome:
    """Whether the interval of the mean margin is above 0, not above it, or on both sides."""
    mean, half = float(np.mean(margins)), half_interval(margins)
    if half is None:
        return "undecided"
    if mean - half > 0:
        return "yes"
    return "no" if mean + half <= 0 else "undecided"


SEVERITY: tuple[Outcome, ...] = ("no", "undecided", "yes")


def judge_statement(item: Item, statement: Statement, samples: Samples) -> Judgement:
    """A statement by its worst comparison; the means of both sides are over all pairs."""
    found = [comparison_margins(c, statement.factor, samples) for c in statement.comparisons]
    worst = min(found, key=lambda own: (SEVERITY.index(margins_met(own)), np.mean(own)))
    lower, higher = (
        float(np.mean([np.mean(side_numbers(pair[i], samples)) for pair in statement.pairs]))
        for i in (0, 1)
    )
    met = margins_met(worst)
    verdict = statement.verdict if met == "no" else None
    return Judgement(item.name, statement.text, lower, higher, worst, met, verdict)


def judged(item: Item, samples: Samples) -> list[Judgement]:
    """All statements of an item."""
    return [judge_statement(item, statement, samples) for statement in item.statements]


@dataclass(frozen=True)
class Score:
    """How many of the published statements and numbers are met, and why the others are not."""

    statements: Counter[Outcome]
    numbers: Counter[Outcome]
    causes: Counter[Cause]
    open: tuple[str, ...]
    """What is not met and has no verdict."""


def score_study(study: Study, samples: Samples) -> Score:
    """What is ours does not count."""
    rows = [row for item in study.items for row in item_rows("", item, samples)]
    theirs = [row for row in rows if row.met and not row.setting.startswith(OURS)]
    missed = [row for row in theirs if row.met == "no"]
    return Score(
        Counter(row.met for row in theirs if row.met and row.published is None),
        Counter(row.met for row in theirs if row.met and row.published is not None),
        Counter(row.verdict.cause for row in missed if row.verdict),
        tuple(f"{row.item}: {row.setting}" for row in missed if not row.verdict),
    )


# ---- statements as figures make them


def pointwise(
    text: str, lower: Sequence[Side], higher: Sequence[Side], factor: float = 1.0
) -> Statement:
    """The first curve is below the second, on the mean of their points."""
    return Statement(text, (tuple(zip(lower, higher, strict=True)),), factor)


def each_pair(text: str, pairs: Iterable[Pair], factor: float = 1.0) -> Statement:
    """In every pair the first number is below the second."""
    return Statement(text, tuple((pair,) for pair in pairs), factor)


def everywhere(statement: Statement) -> Statement:
    """The same said of every point, not of the curves."""
    return replace(statement, comparisons=tuple((pair,) for pair in statement.pairs))


def all_below(
    text: str,
    lower: Iterable[Sequence[Side]],
    higher: Iterable[Sequence[Side]],
    factor: float = 1.0,
) -> Statement:
    """Each of the first curves is below each of the second."""
    curves = (tuple(zip(low, high, strict=True)) for low, high in product(lower, higher))
    return Statement(text, tuple(curves), factor)


Claim = tuple[str, Sequence[str], Sequence[str], float]
"""A statement in names: the methods of the first and of the second lines, and the factor."""


def claimed_of(
    points: Callable[[str], Sequence[Side]], claims: Iterable[Claim]
) -> Iterator[Statement]:
    """Claims about the points of methods."""
    for text, lower, higher, factor in claims:
        yield all_below(text, map(points, lower), map(points, higher), factor)


def every_below(
    text: str, lower: Iterable[Side], higher: Iterable[Side], factor: float = 1.0
) -> Statement:
    """Every one of the first points is below every one of the second."""
    return each_pair(text, product(lower, higher), factor)


def alike(text: str, lines: Sequence[Sequence[Side]], factor: float) -> Statement:
    """Point by point, no line is higher than another times the factor."""
    pairs = (zip(one, other, strict=True) for one, other in permutations(lines, 2))
    return each_pair(text, chain.from_iterable(pairs), factor)


def rising(text: str, lines: Iterable[Sequence[Side]]) -> Statement:
    """Along each line, points are below the next, on the mean of the steps."""
    return Statement(text, tuple(tuple(pairwise(line)) for line in lines))
