"""The figures of a marking, as a person or a program asks for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fanplan.layers.marking.build import Merging
from fanplan.layers.marking.ledger import Bools, Counts, link_costs, marking_cost
from fanplan.layers.marking.problem.marking import MarkingProblem
from fanplan.layers.marking.search.marking import Marking
from fanplan.layers.marking.types import MarkingLayer


def figures(layer: MarkingLayer, marking: Marking) -> dict[str, Any]:
    """What was decided, what it costs, and how many links had to be decided together."""
    parts = np.bincount(marking.part[marking.part >= 0])
    return layer.record.model_dump() | {
        "entangled": int(parts.sum()),
        "parts": len(parts),
        "largest_part": int(parts.max(initial=0)),
    }


def compared(
    problem: MarkingProblem, marking: Marking, merging: Merging | None
) -> list[dict[str, Any]]:
    """What links cost in total, on average and at most, if all are marked alike and as best.

    With merging the total is given with and without it; other figures are then those with it.
    """
    everywhere = np.ones(problem.size, bool)
    marks = {
        "publications everywhere": everywhere,
        "subscriptions everywhere": ~everywhere,
        "best": merging.plain if merging else marking.publish,
    }
    counts = Counts(marking.sigma, marking.tau)
    if merging:
        marks["best merged"] = marking.publish
    rows = [
        {"marking": name, "cost": marking_cost(problem, counts, publish)}
        | on_links(problem, merging.counts if merging else counts, publish, merging is not None)
        for name, publish in marks.items()
    ]
    return sorted(rows, key=lambda row: -row.get("merged", row["cost"]))


def on_links(
    problem: MarkingProblem, counts: Counts, publish: Bools, merge: bool
) -> dict[str, float]:
    cost = np.where(publish, *link_costs(problem, counts))
    total = {"merged": float(cost.sum())} if merge else {}
    return total | {
        "per_link": float(cost.sum() / max(problem.size, 1)),
        "largest_link": float(cost.max(initial=0.0)),
    }
