"""Changes in steps of a bounded size, and what stands after each step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Longs
from fanplan.core.errors import InputError, Problem


@dataclass(frozen=True)
class State:
    """What stands between two steps.

    ``figures`` are in the words of the ledger. ``broken`` names what must hold and does not;
    ``exceeded`` limits of both plans that do not hold for a while.
    """

    figures: dict[str, float]
    broken: tuple[str, ...] = ()
    exceeded: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        return {**self.figures, "broken": list(self.broken), "exceeded": list(self.exceeded)}


@dataclass(frozen=True)
class ModeChange:
    """How many audience classes and flows go from one mode of delivery to another.

    A class with flows in several modes counts in each of them; ``messages`` are per window.
    """

    before: str
    after: str
    classes: int
    flows: int
    messages: float

    def json(self) -> dict[str, Any]:
        counts = {"classes": self.classes, "flows": self.flows, "messages": self.messages}
        return {"from": self.before, "to": self.after, **counts}


@dataclass(frozen=True, eq=False)
class Staged:
    """The changes of a layer in order: ``step`` has the number of each one's step, from 0.

    ``states`` are the old plan and what stands after each step. ``running`` tells, where numbers
    changed, the number under which an item of the new plan runs. ``modes`` tells how much of a
    delivery goes from one mode to another; None if the layer has no modes.
    """

    layer: str
    changes: pa.Table
    step: Longs
    states: tuple[State, ...]
    notes: tuple[str, ...] = ()
    running: dict[str, dict[int, int]] = field(default_factory=dict)
    modes: tuple[ModeChange, ...] | None = None

    @property
    def steps(self) -> int:
        return len(self.states) - 1

    def counts(self) -> dict[str, int]:
        """How often each action occurs."""
        found = self.changes["action"].value_counts().to_pylist()
        return {item["values"]: item["counts"] for item in found}

    def peak(self, figure: str) -> tuple[float, int]:
        """The largest value of a figure in any state, and after which step it first stands.

        A state that does not hold may lack it.
        """
        told = [
            (s.figures[figure], -step) for step, s in enumerate(self.states) if figure in s.figures
        ]
        most, step = max(told)
        return most, -step


def cut(units: Longs, limit: int, why: str) -> Longs:
    """The step of each change, from 0. Changes with the same number in ``units`` stay together.

    Numbers ascend from 0. Each step takes as many units as fit; ``why`` tells what keeps one whole.
    """
    sizes = np.bincount(units) if len(units) else np.zeros(0, np.int64)
    most = int(sizes.max(initial=0))
    if limit < 1 or most > limit:
        what = f"{limit} is too few" + (f": {why} ({most} changes)" if limit > 0 else "")
        raise InputError(Problem("steps_of", what, f"Use {max(1, most)} or more"))
    step, filled, number = np.zeros(len(sizes), np.int64), 0, 0
    for unit, size in enumerate(sizes.tolist()):
        if filled + size > limit:
            number, filled = number + 1, 0
        step[unit] = number
        filled += size
    return step[units]
