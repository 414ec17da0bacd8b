"""The figures of a marking, as a person or a program asks for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fanplan.evaluation.marking_cost import Counts, link_costs
from fanplan.plan.marking.types import MarkingLayer
from fanplan.planners.marking.marking import Marking
from fanplan.problem.marking import MarkingProblem


def figures(layer: MarkingLayer, marking: Marking) -> dict[str, Any]:
    """What was decided, what it costs, and how many links had to be decided together."""
    parts = np.bincount(marking.part[marking.part >= 0])
    return layer.record.model_dump() | {
        "entangled": int(parts.sum()),
        "parts": len(parts),
        "largest_part": int(parts.max(initial=0)),
    }


def compared(problem: MarkingProblem, marking: Marking) -> list[dict[str, Any]]:
    """What links cost in total, on average and at most, if all are marked alike and as best."""
    as_p, as_s = link_costs(problem, Counts(marking.sigma, marking.tau))
    costs = {
        "publications everywhere": as_p,
        "subscriptions everywhere": as_s,
        "best": np.where(marking.publish, as_p, as_s),
    }
    rows = [
        {
            "marking": name,
            "cost": float(cost.sum()),
            "per_link": float(cost.sum() / max(problem.size, 1)),
            "largest_link": float(cost.max(initial=0.0)),
        }
        for name, cost in costs.items()
    ]
    return sorted(rows, key=lambda row: -row["cost"])
