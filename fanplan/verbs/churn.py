"""Churn: the protocols of a plan at work while subscriptions change and clients come and go."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanplan.core.errors import InputError, Problem
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers.groups.churn import churn_groups
from fanplan.layers.marking.churn import churn_marking
from fanplan.simulation.simulated import Churned

if TYPE_CHECKING:
    from fanplan.plan.stored import StoredPlan

LAYERS = ("groups", "marking")
"""Layers whose protocols are simulated."""


def churn(
    plan: PathLike,
    dataset: Dataset,
    *,
    layer: str | None = None,
    engine: Engine = EMBEDDED,
    **options: Any,
) -> Churned:
    """Let subscriptions change, or clients come and go, and simulate the protocols of a plan.

    ``layer`` is groups or marking; it may be left out if the plan has one of them. ``options`` are
    the fields of `GroupsChurn` (``events``, ``updates``, ``rebuild_every``, ``hold``, ``loss``,
    ``seed``, …) or of `MarkingChurn` (``events``, ``restarts``, ``loss``, ``burst``, ``seed``, …).
    A delivery that is lost or doubled raises a CheckError that names it.
    """
    from fanplan.layers.registry import load_plan

    stored = load_plan(Path(plan))
    chosen = layer_of(stored, layer)
    given = {name: value for name, value in options.items() if value is not None}
    if stored.record.input.key != dataset.manifest.key:
        what = "was planned for other input than this dataset"
        raise InputError(Problem(str(plan), what, "Name the dataset it was made for"))
    run = churn_groups if chosen == "groups" else churn_marking
    return run(stored, dataset, given, engine)


def layer_of(plan: StoredPlan, asked: str | None) -> str:
    """The layer that is asked for, or the only one there is."""
    there = [name for name in LAYERS if name in plan.record.sections]
    if asked is not None and asked not in LAYERS:
        raise InputError(Problem("layer", f"{asked!r} has none", f"Use {' or '.join(LAYERS)}"))
    if not there or (asked is not None and asked not in there):
        what = f"has no layer {asked or ' and no layer '.join(LAYERS)}"
        raise InputError(
            Problem(str(plan.folder), what, "Name a plan that `groups`, `mark` or `design` made")
        )
    if asked is None and len(there) > 1:
        what = f"the plan has {' and '.join(there)}"
        raise InputError(Problem("layer", what, "Say which of them"))
    return asked or there[0]


# ---- groups


# ---- marking
