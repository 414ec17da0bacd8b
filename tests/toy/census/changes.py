"""From one census to another: topics come to the list, then others go."""

from __future__ import annotations

import numpy as np

from fanplan.plan.changes import of_rows
from fanplan.plan.steps import Staged, State, cut
from fanplan.plan.stored import StoredPlan

from .record import read_census

ACTIONS = {"list": "a topic comes to the list", "unlist": "a topic leaves the list"}


def stage_census(old: StoredPlan, new: StoredPlan, limit: int) -> Staged:
    """At most ``limit`` changes a step; no two of them need each other."""
    before, after = read_census(old).keys(), read_census(new).keys()
    rows = [{"action": "list", "flow": topic} for topic in sorted(after - before)]
    rows += [{"action": "unlist", "flow": topic} for topic in sorted(before - after)]
    step = cut(np.arange(len(rows)), limit, "a change is never cut")
    more = np.array([1 if row["action"] == "list" else -1 for row in rows], int)
    states = [
        State({"topics": float(len(before) + more[step < done].sum())})
        for done in range(int(step.max(initial=-1)) + 2)
    ]
    return Staged("census", of_rows(rows), step, tuple(states))
