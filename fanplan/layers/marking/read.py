"""The marking problem that a stored plan has marks for."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from fanplan.layers.marking.params import OVERLAY
from fanplan.layers.marking.problem.dataset import MarkedOverlay, load_marking
from fanplan.layers.marking.problem.marking import MarkingProblem
from fanplan.layers.marking.record import MarkingRecord
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.plan.stored import StoredPlan
from fanplan.workload.tables import TREES


def stored_problem(plan: StoredPlan, dataset: Path) -> MarkingProblem:
    """On the plan's own overlay, if that is what it marks; the dataset may be a later one."""
    wishes = plan.section(MarkingRecord).wishes
    return load_marking(dataset, wishes, stored_overlay(plan) if wishes.trees == OVERLAY else None)


def stored_overlay(plan: StoredPlan) -> MarkedOverlay:
    clients = None
    if plan.section(OverlayRecord).clients == "allocated":
        clients = plan.read("clients", ("client", "role", "broker"))
    return MarkedOverlay(overlay_tree(plan), clients)


def overlay_tree(plan: StoredPlan) -> pa.Table:
    """The links of the plan's overlay as a tree hung at its first broker, step by step."""
    links = [(row["a"], row["b"]) for row in plan.read("links", ("a", "b")).to_pylist()]
    root = min(plan.read("brokers", ("broker",))["broker"].to_pylist())
    rows, reached, waiting = [], {root}, [root]
    while waiting:
        here = waiting.pop()
        for a, b in links:
            other = b if a == here else a if b == here else here
            if other not in reached:
                reached.add(other)
                waiting.append(other)
                rows.append({"root": root, "parent": here, "child": other})
    return pa.Table.from_pylist(rows, schema=pa.schema([(n, pa.string()) for n in TREES.required]))
