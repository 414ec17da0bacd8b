"""From one mesh to another: new links come first, so that no topic falls apart in between."""

from __future__ import annotations

import numpy as np

from fanplan.plan.changes import of_rows
from fanplan.plan.steps import Staged, State, cut
from fanplan.plan.stored import StoredPlan

ACTIONS = {"peer": "two subscribers are linked", "unpeer": "a link of two subscribers ends"}


def stage_mesh(old: StoredPlan, new: StoredPlan, limit: int) -> Staged:
    """At most ``limit`` changes a step; links of the old plan end after all new ones are there."""
    before, after = named_links(old), named_links(new)
    pairs = [("peer", sorted(after - before)), ("unpeer", sorted(before - after))]
    rows = [
        {"action": action, "from_broker": a, "to_broker": b}
        for action, links in pairs
        for a, b in links
    ]
    step = cut(np.arange(len(rows)), limit, "a change is never cut")
    more = np.array([1 if row["action"] == "peer" else -1 for row in rows], int)
    states = [
        State({"links": float(len(before) + more[step < done].sum())})
        for done in range(int(step.max(initial=-1)) + 2)
    ]
    return Staged("mesh", of_rows(rows), step, tuple(states))


def named_links(plan: StoredPlan) -> set[tuple[str, str]]:
    """The links of a plan, by the names of their ends."""
    a, b = plan.read("mesh_links", ("a", "b")).to_pydict().values()
    return set(zip(a, b, strict=True))
