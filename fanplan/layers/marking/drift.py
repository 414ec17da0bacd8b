"""A stored marking counted anew on a dataset as it is now."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fanplan.layers.marking.changes import marks_of, named_links
from fanplan.layers.marking.check import walk_ways
from fanplan.layers.marking.read import stored_marking
from fanplan.layers.marking.record import MarkingRecord
from fanplan.plan.drift import LayerNow, came_and_went
from fanplan.plan.stored import StoredPlan


def marking_now(plan: StoredPlan, dataset: Path) -> LayerNow:
    """The same marks with the trees and descriptors of now."""
    record, marks = plan.section(MarkingRecord), marks_of(plan)
    problem = stored_marking(plan, dataset)
    links = named_links(problem)
    moved = {"links": came_and_went(marks, links)}
    descriptors = {
        "published": (record.published, float(problem.published.sum())),
        "subscribed": (record.subscribed, float(problem.subscribed.sum())),
    }
    if moved["links"].came:
        unknown: dict[str, tuple[float, float | None]] = {"cost": (record.cost, None)}
        return LayerNow(
            moved, unknown | descriptors, moved["links"].came, ("some links of trees have no mark",)
        )
    publish = np.array([marks[link]["mark"] == "p" for link in links], bool)
    found = walk_ways(problem, publish)
    price = problem.sending + record.params.prices.stored
    cost = float((np.where(publish, found.sigma, found.tau) * price).sum())
    return LayerNow(moved, {"cost": (record.cost, cost), **descriptors}, int(found.broken.sum()))
