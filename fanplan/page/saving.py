"""What a layer saves: from the naive system, step by step, to the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fanplan.page.numbers import number, percent

MOST_COMPARED = 2
"""Systems on the way to the plan that the words behind a headline name; the tables have all."""


@dataclass(frozen=True)
class Step:
    """A system and what it costs."""

    words: str
    value: float


@dataclass(frozen=True)
class Saving:
    """A layer's figures in one unit: ``steps`` lead from the naive system to the plan.

    ``gains`` say what each step after the first is due to. ``least`` is a cost that no plan can
    undercut. ``beside`` are other systems to compare with.
    """

    name: str
    layer: str
    plan: str
    unit: str
    steps: tuple[Step, ...]
    gains: tuple[str, ...]
    least: Step | None = None
    beside: tuple[Step, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.layer}: from naive to planned"

    @property
    def naive(self) -> Step:
        return self.steps[0]

    @property
    def result(self) -> Step:
        return self.steps[-1]

    @property
    def share(self) -> float:
        """What is saved, as a share of the naive system's cost; negative if the plan costs more."""
        return 1 - self.result.value / self.naive.value if self.naive.value else 0.0

    @property
    def headline(self) -> str:
        less = "more" if self.share < 0 else "less"
        return f"{percent(abs(self.share))} {less}"

    @property
    def against(self) -> str:
        """What the headline is said of."""
        return f"than {self.naive.words} ({self.unit})"

    @property
    def detail(self) -> str:
        """The figures behind the headline, beside other systems and the least possible."""
        told = [f"{number(self.result.value)} instead of {number(self.naive.value)}"]
        others = (*self.steps[1:-1][:MOST_COMPARED], *self.beside)
        told += [cost_beside(self.result, step) for step in others]
        told += [cost_beside(self.result, self.least)] if self.least else []
        return "; ".join(filter(None, told))

    def json(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "plan": self.plan,
            "unit": self.unit,
            "saved_percent": 100 * self.share,
            "steps": [{"system": step.words, "value": step.value} for step in self.steps],
            "least": None if self.least is None else self.least.value,
        }


def cost_beside(one: Step, other: Step) -> str:
    """How far one system's cost is from another's; nothing if that costs nothing."""
    if not other.value:
        return ""
    change = one.value / other.value - 1
    return f"{percent(abs(change))} {'above' if change >= 0 else 'below'} {other.words}"
