"""The marking problem that a stored plan has marks for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from fanplan.layers.marking.params import OVERLAY
from fanplan.layers.marking.problem.dataset import MarkedOverlay, load_marking, tree_table
from fanplan.layers.marking.problem.marking import MarkingProblem
from fanplan.layers.marking.record import MarkingRecord
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.plan.stored import StoredPlan
from fanplan.plan.walks import passes


def stored_marking(plan: StoredPlan, dataset: Path) -> MarkingProblem:
    """On the plan's own overlay, if that is what it marks; the dataset may be a later one."""
    params = plan.section(MarkingRecord).params
    return load_marking(dataset, params, overlay_to_mark(plan) if params.trees == OVERLAY else None)


def overlay_to_mark(plan: StoredPlan) -> MarkedOverlay:
    clients = None
    if plan.section(OverlayRecord).clients == "allocated":
        clients = plan.read("clients", ("client", "role", "broker"))
    return MarkedOverlay(stored_tree(plan), clients)


def stored_tree(plan: StoredPlan) -> pa.Table:
    """The links of the plan's overlay as a tree."""
    links = [column.to_pylist() for column in plan.read("links", ("a", "b")).columns]
    brokers = plan.read("brokers", ("broker",))["broker"].to_pylist()
    names = sorted({*brokers, *links[0], *links[1]})
    place = {name: at for at, name in enumerate(names)}
    ends = [[place[name] for name in column] for column in links]
    one, other = np.array(ends, np.int32)
    parent, _ = passes(one, other, len(names))
    return tree_table(pa.array(names, pa.string()), parent)
