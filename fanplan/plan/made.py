"""What planning takes and gives: a job, the sections that were decided, and how they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fanplan.core.stop import Watch
from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine

Row = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """What to plan for: a dataset, the seed of random choices, when to stop, and where Spark is.

    ``explain`` has items whose names must be known before the work begins.
    """

    dataset: Dataset
    seed: int
    watch: Watch
    engine: Engine
    explain: tuple[str, ...] = ()


def nothing(_: Any) -> list[Row]:
    return []


@dataclass(frozen=True, eq=False)
class Planned:
    """What a layer decided: its sections, their figures as JSON, and what else can be asked.

    ``compared`` gives rows of other ways by their names, ``explained`` why an item is where it is,
    ``beside`` further rows by name. ``problem`` is what was solved. ``ended`` says what ended the
    search early. On a curve ``without`` is the cost at its beginning, and ``stretched`` makes of a
    smaller section one of this size.
    """

    sections: tuple[Any, ...]
    figures: Mapping[str, Any]
    problem: Any = None
    compared: Callable[[Iterable[str]], list[Row]] = nothing
    explained: Callable[[str], list[Row]] = nothing
    beside: Mapping[str, list[Row]] = field(default_factory=dict)
    ended: str | None = None
    without: float = 0.0
    stretched: Callable[[Any], Planned] | None = None

    @property
    def section(self) -> Any:
        """The section of a plan that has one."""
        (only,) = self.sections
        return only

    def summary(self) -> dict[str, Any]:
        early = {"ended_early_by": self.ended} if self.ended else {}
        return {**self.figures, **early}


# ---- how a person is told


class Facts(NamedTuple):
    """Names and values, one pair a line."""

    title: str
    facts: Mapping[str, Any]


class Grid(NamedTuple):
    """A small table."""

    title: str
    header: tuple[str, ...]
    rows: list[list[Any]]


class Lines(NamedTuple):
    """Plain lines."""

    lines: tuple[str, ...]


class Note(NamedTuple):
    """What a person should know, apart from the answer."""

    text: str


class Caution(NamedTuple):
    """What holds by the rules and yet needs a look."""

    text: str


Shown = Iterator[Facts | Grid | Lines | Note | Caution]


@dataclass(frozen=True)
class Answer:
    """All that a command has to show of a plan: figures, rows beside it, explanations."""

    facts: Mapping[str, Any]
    compared: list[Row]
    beside: Mapping[str, list[Row]]
    explained: list[Row]


def in_words(facts: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    """Figures by the words that a person reads."""
    return {words.get(name, name): value for name, value in facts.items()}
