"""Cost against the number of channels: what one more channel is worth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import CURVE, whole_folder
from fanplan.core.result import Result
from fanplan.data.dataset import Dataset, PathLike
from fanplan.layers import commands
from fanplan.plan.made import Grid, Lines, Shown
from fanplan.verbs.keywords import curve_signature
from fanplan.verbs.plan import Made, planner

COLUMNS = {
    "cost": "cost",
    "excess_percent": "over perfect %",
    "single_bound_percent": "bound, one channel %",
    "marginal": "a channel saves",
    "marginal_percent": "of perfect %",
}


@dataclass(frozen=True, repr=False)
class Curve(Result):
    """Plans for rising numbers of what is swept, and the cost with none: all by unicast."""

    plans: tuple[Made, ...]
    swept: str
    unicast_cost: float

    def points(self) -> list[dict[str, Any]]:
        """The figures of each plan; ``marginal`` is the cost that each further one saved."""
        points, before, cost = [], 0, self.unicast_cost
        for made in self.plans:
            figures = made.summary()
            marginal = (cost - figures["cost"]) / (figures[self.swept] - before)
            percent = 100 * marginal / figures["perfect"]
            points.append(figures | {"marginal": marginal, "marginal_percent": percent})
            before, cost = figures[self.swept], figures["cost"]
        return points

    def json(self) -> dict[str, Any]:
        return {"unicast_cost": self.unicast_cost, "points": self.points()}

    def summary(self) -> dict[str, Any]:
        """The cost at each number, and with none."""
        return {"unicast_cost": self.unicast_cost, "cost": self._costs()}

    def bars(self) -> dict[str, float]:
        return {"all by unicast": self.unicast_cost} | self._costs()

    def _costs(self) -> dict[str, float]:
        return {f"{p[self.swept]} {self.swept}": p["cost"] for p in self.points()}

    def save(self, out: PathLike, replace: bool = False) -> Path:
        """A folder with curve.json and a checked plan for each number, whole or not at all."""
        with whole_folder(Path(out), CURVE, replace) as folder:
            for made in self.plans:
                made.save(folder / f"{made.summary()[self.swept]}")
            (folder / "curve.json").write_text(json.dumps(self.json(), indent=2) + "\n")
        return Path(out)

    def shown(self, out: str) -> Shown:
        """The curve as a person reads it."""
        points = self.points()
        words = {self.swept: self.swept} | COLUMNS
        if any("ended_early_by" in point for point in points):
            words["ended_early_by"] = "ended early by"
        rows = [[point.get(name, "") for name in words] for point in points]
        title = f"Cost against {self.swept}, all plans checked"
        yield Grid(title, tuple(words.values()), rows)
        none = f"Without {self.swept}, all by unicast: {self.unicast_cost:,.1f}. Plans: {out}"
        yield Lines((none,))


def curve(dataset: Dataset | PathLike, numbers: Sequence[int], **options: Any) -> Curve:
    """Plan for each number of channels, smallest first; options are those of ``channels``.

    A plan that costs more than one with fewer channels is replaced by that one, which has channels
    left over: what is reported as the cost of K channels never rises with K. The largest number is
    planned first, as it is the one that may be refused. An interrupt ends the curve with the plan
    that it ended.
    """
    command = next(found for found in commands() if found.swept)
    if not numbers or len(set(numbers)) < len(numbers):
        what = f"a curve needs different numbers of {command.swept}"
        raise InputError(Problem(command.swept, what, "Give each number once, such as 10,20,50"))
    *rest, largest = sorted(numbers)
    found: dict[int, Made] = {}
    for number in (largest, *rest):
        found[number] = planner(command.name)(dataset, number, **options)
        if found[number].ended == "interrupt":
            break
    plans: list[Made] = []
    for _, made in sorted(found.items()):
        if plans and made.summary()["cost"] > plans[-1].summary()["cost"]:
            assert made.planned.stretched is not None
            made = replace(made, planned=made.planned.stretched(plans[-1].section))
        plans.append(made)
    return Curve(tuple(plans), command.swept, plans[0].planned.without)


curve.__signature__ = curve_signature(  # type: ignore[attr-defined]
    next(found for found in commands() if found.swept), Curve
)
