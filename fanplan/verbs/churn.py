"""Churn: the protocols of a plan at work while subscriptions change and clients come and go."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypedDict, Unpack

from fanplan.core.errors import InputError, Problem
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers.layer import Layer
from fanplan.layers.registry import all_layers, bounds_of, load_plan
from fanplan.plan.seal import require_untouched
from fanplan.plan.stored import StoredPlan, require_dataset_of
from fanplan.simulation.simulated import Churned
from fanplan.verbs.given import AnyDataset, AnyPlan, dataset_at, in_our_words, plan_at


class Churning(TypedDict, total=False):
    """What can be asked of churn: of both layers, of groups alone, of marking alone."""

    events: int
    seed: int
    loss: float
    updates: float
    rebuild_every: int
    hold: Literal["all", "affected", "none"]
    shortcuts: bool
    every_ms: float
    latency_ms: tuple[float, float]
    match_ms: float
    coordinator: str | None
    restarts: int
    trees: str
    burst: int
    burst_ms: float
    hold_ms: float
    matching: float


@in_our_words
def churn(
    plan: AnyPlan,
    dataset: AnyDataset,
    *,
    layer: str | None = None,
    engine: Engine = EMBEDDED,
    **options: Unpack[Churning],
) -> Churned:
    """Let subscriptions change, or clients come and go, and simulate the protocols of a plan.

    ``layer`` is groups or marking; it may be left out if the plan has one of them. ``options`` are
    the fields of `GroupsChurn` (``events``, ``updates``, ``rebuild_every``, ``hold``, ``loss``,
    ``seed``, …) or of `MarkingChurn` (``events``, ``restarts``, ``loss``, ``burst``, ``seed``, …).
    A delivery that is lost or doubled raises a CheckError that names it.
    """
    plan, dataset = plan_at(plan), dataset_at(dataset)
    stored = load_plan(Path(plan))
    require_untouched(stored)
    chosen = layer_at_work(stored, layer)
    given = {name: value for name, value in options.items() if value is not None}
    require_dataset_of(stored, dataset.path)
    assert chosen.churn is not None
    return chosen.churn(stored, dataset, given, engine, bounds_of(stored)[chosen.name])


def layer_at_work(plan: StoredPlan, asked: str | None) -> Layer:
    """The layer that is asked for, or the only one there is whose protocols are simulated."""
    known = {layer.name: layer for layer in all_layers() if layer.churn}
    there = [name for name in known if name in plan.record.sections]
    if asked is not None and asked not in known:
        raise InputError(Problem("layer", f"{asked!r} has none", f"Use {' or '.join(known)}"))
    if not there or (asked is not None and asked not in there):
        what = f"has no layer {asked or ' and no layer '.join(known)}"
        raise InputError(
            Problem(str(plan.folder), what, "Name a plan that `groups`, `mark` or `design` made")
        )
    if asked is None and len(there) > 1:
        what = f"the plan has {' and '.join(there)}"
        raise InputError(Problem("layer", what, "Say which of them"))
    return known[asked or there[0]]
