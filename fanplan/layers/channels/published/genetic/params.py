"""What the genetic planners can be told, checked once on construction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from fanplan.core.errors import InputError, Problem
from fanplan.layers.channels.method_params import MethodParams
from fanplan.layers.channels.published.genetic.weight import Kind, Unit

Near = Literal["wants", "place"]
SHARES = ("crossover", "mutation", "tournament", "better", "permutation", "mask", "improvement")


@dataclass(frozen=True)
class EvolutionParams(MethodParams):
    """Defaults are those of Guimarães & Rodrigues 2003, sections 5.2 and 5.3. Shares are 0 to 1."""

    population: int = 20
    """Maps alive at a time."""
    crossover: float = 0.9
    """Probability that two parents exchange parts."""
    points: int = 2
    """Crossover points: every second part between them is exchanged."""
    mutation: float = 0.2
    """Probability that a child is changed."""
    elitism: int = 5
    """Best maps that live on."""
    iterations: int = 500
    """Most generations."""
    patience: int | None = None
    """Generations without improvement after which the search ends; None: all iterations."""
    improvement: float | None = None
    """Part of the cost of the best first map that, once saved, is enough; None: never enough."""
    tournament: float = 0.45
    """Part of the iterations that select by tournament; then the roulette wheel."""
    better: float = 0.8
    """Probability that the better one wins a tournament."""
    permutation: float = 0.05
    """Part of the iterations in which crossover permutes channels."""
    mask: float = 0.5
    """Probability that mutation moves a subscription of the two channels."""
    heavy: float | None = None
    """Part that goes by multicast, the heaviest first; the rest goes point to point."""

    def __post_init__(self) -> None:
        super().__post_init__()
        problems = [*self._shares(), *self._numbers(), *self._own()]
        if problems:
            raise InputError(problems)

    def _shares(self) -> Iterator[Problem]:
        for name in SHARES:
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                yield Problem(name, f"{value} is not a share", "Give a number from 0 to 1")

    def _numbers(self) -> Iterator[Problem]:
        least = {"population": 2, "elitism": 0, "iterations": 0, "patience": 1, "points": 1}
        for name, low in least.items():
            value = getattr(self, name)
            if value is not None and value < low:
                yield Problem(name, f"{value} is too few", f"Give at least {low}")
        if self.elitism >= self.population:
            what = f"{self.elitism} of {self.population} maps live on, so no child can"
            yield Problem("elitism", what, "Give less than population")
        if self.heavy is not None and not 0 < self.heavy <= 1:
            what = f"{self.heavy} is not a share to map"
            yield Problem("heavy", what, "Give more than 0 and at most 1, or use unicast")

    def _own(self) -> Iterator[Problem]:
        """What is wrong with the fields that a planner adds."""
        return iter(())


@dataclass(frozen=True)
class GeneticParams(EvolutionParams):
    """The map over subscriptions. ``heavy`` is 0.7 if some to the same topic differ, else 1."""

    round_robin: float = 0.5
    """Part of the first maps, but for the flooding one, that deal out subjects; others random."""
    neighbours: float = 0.0
    """Part of the first maps, but for the flooding one, by the neighbourhood of subscribers."""
    near: Near = "wants"
    """Neighbours are those who want the same, or whose brokers are in the same place."""
    probability: Kind = "hits"
    """Notification probability by volume or by hits."""
    sample: int = 100
    """Fewest hits of a root that count; with fewer, its volume is used instead."""
    weight: Unit = "messages"
    """What a topic weighs: its messages/s or its bytes/s."""

    def _own(self) -> Iterator[Problem]:
        for name in ("round_robin", "neighbours"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                yield Problem(name, f"{value} is not a share", "Give a number from 0 to 1")
        if self.round_robin + self.neighbours > 1:
            what = f"{self.neighbours} and round_robin {self.round_robin} are more than all maps"
            yield Problem("neighbours", what, "Give two shares of at most 1 together")
        if self.near not in get_args(Near):
            yield Problem("near", f"{self.near!r} is not known", "Use wants or place")
        if self.probability not in ("volume", "hits"):
            what = f"{self.probability!r} is not known"
            yield Problem("probability", what, "Use volume or hits")
        if self.weight not in ("messages", "bytes"):
            yield Problem("weight", f"{self.weight!r} is not known", "Use messages or bytes")
        if self.sample < 1:
            yield Problem("sample", f"{self.sample} is too few", "Give at least 1")


@dataclass(frozen=True)
class AtomicParams(EvolutionParams):
    """The map over atomic volumes: every child is settled, so few maps and generations will do."""

    population: int = 10
    elitism: int = 3
    patience: int | None = 15
    permutation: float = 0.0
    passes: int = 2
    """Passes in which each volume of a child may move to a better channel."""

    def _own(self) -> Iterator[Problem]:
        if self.passes < 1:
            yield Problem("passes", f"{self.passes} is too few", "Give at least 1")
