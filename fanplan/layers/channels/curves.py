"""Cost against the number of channels: what one more channel is worth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fanplan.core.errors import InputError, Problem
from fanplan.data.dataset import Dataset, PathLike
from fanplan.layers.channels.command import ChannelPlan, channels


@dataclass(frozen=True)
class Curve:
    """Plans for rising numbers of channels, and the cost with none: all by unicast."""

    plans: tuple[ChannelPlan, ...]
    unicast_cost: float

    def points(self) -> list[dict[str, Any]]:
        """The figures of each plan; ``marginal`` is the cost that each further channel saved."""
        points, before, cost = [], 0, self.unicast_cost
        for made in self.plans:
            plan = made.plan
            marginal = (cost - plan.cost) / (plan.map.channels - before)
            points.append(
                made.summary()
                | {"marginal": marginal, "marginal_percent": 100 * marginal / plan.perfect}
            )
            before, cost = plan.map.channels, plan.cost
        return points

    def save(self, out: PathLike, replace: bool = False) -> Path:
        """A folder with curve.json and a checked plan for each number, whole or not at all."""
        from fanplan.core.folder import CURVE, whole_folder

        with whole_folder(Path(out), CURVE, replace) as folder:
            for made in self.plans:
                made.save(folder / f"{made.plan.map.channels}")
            content = {"unicast_cost": self.unicast_cost, "points": self.points()}
            (folder / "curve.json").write_text(json.dumps(content, indent=2) + "\n")
        return Path(out)


def curve(dataset: Dataset, numbers: Sequence[int], **options: Any) -> Curve:
    """Plan for each number of channels, smallest first; options are those of ``channels``.

    A plan that costs more than one with fewer channels is replaced by that one, which has channels
    left over: what is reported as the cost of K channels never rises with K. An interrupt ends the
    curve with the plan that it ended.
    """
    from fanplan.core.ledger import unicast_cost

    if not numbers or len(set(numbers)) < len(numbers):
        what = "a curve needs different numbers of channels"
        raise InputError(Problem("channels", what, "Give each number once, such as 10,20,50"))
    plans: list[ChannelPlan] = []
    for number in sorted(numbers):
        made = channels(dataset, number, **options)
        if plans and made.plan.cost > plans[-1].plan.cost:
            made = widened(plans[-1], made)
        plans.append(made)
        if made.ended == "interrupt":
            break
    plan = plans[0].plan
    return Curve(tuple(plans), unicast_cost(plan.ledger, plan.weights))


def widened(smaller: ChannelPlan, larger: ChannelPlan) -> ChannelPlan:
    """The map with fewer channels as a plan for more, the rest of which stay empty."""
    map = replace(smaller.plan.map, channels=larger.plan.map.channels)
    return replace(larger, plan=replace(larger.plan, map=map, ledger=smaller.plan.ledger))
