"""Churn: the protocols of a plan at work while subscriptions change and clients come and go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fanplan.core.errors import InputError, Problem
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.verbs.datasets import Dataset, PathLike
from fanplan.verbs.replay import make_marking_stages
from fanplan.verbs.stages import make_group_stages, make_senders

if TYPE_CHECKING:
    import pyarrow as pa

    from fanplan.data.interest import Ints
    from fanplan.layers.groups.problem.groups import GroupsProblem
    from fanplan.layers.groups.record import GroupsRecord
    from fanplan.layers.groups.search.choose import GroupsParams
    from fanplan.layers.marking.problem.marking import Network
    from fanplan.plan.stored import StoredPlan

LAYERS = ("groups", "marking")
"""Layers whose protocols are simulated."""


@dataclass(frozen=True)
class Churned:
    """What the protocols of a layer did. ``ok``: nothing was lost, doubled or left wrong."""

    layer: str
    ok: bool
    figures: dict[str, Any]

    def summary(self) -> dict[str, Any]:
        """All figures, as JSON."""
        return {"layer": self.layer, "ok": self.ok, **self.figures}


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
    from fanplan.plan.stored import load_plan

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
    there = [name for name in LAYERS if getattr(plan.record, name) is not None]
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


def require_fields(kind: type, options: Mapping[str, Any], layer: str) -> None:
    """Only options that mean something to the layer."""
    known = {field.name for field in fields(kind)}
    for name in options.keys() - known:
        what = f"means nothing to {layer}"
        raise InputError(Problem(name, what, "Leave it out"))


# ---- groups


def churn_groups(
    plan: StoredPlan, dataset: Dataset, options: Mapping[str, Any], engine: Engine
) -> Churned:
    """Brokers subscribe and unsubscribe, and groups are rebuilt while publications flow.

    Of a plan with delivery it is what channels and direct unicast leave to brokers.
    """
    from fanplan.layers.groups.check.check import possible_groups
    from fanplan.layers.groups.protocol.churn import GroupsChurn, groups_churn
    from fanplan.layers.groups.read import read_groups
    from fanplan.layers.groups.search.choose import choose_groups
    from fanplan.network.dataset import read_brokers

    require_fields(GroupsChurn, options, "groups")
    record = plan.groups
    wishes = GroupsChurn(**{"shortcuts": record.shortcuts} | dict(options))
    params = params_of(record)
    make_stages(plan, dataset, engine)
    with engine.progress.stage("churn of groups") as stage:
        trees = read_groups(plan, read_brokers(dataset.path).names).trees
        problem = possible_groups(plan, dataset.path, trees).problem
        cell = cells_of(problem) if record.grouping.cells else None
        run = groups_churn(problem, wishes, lambda p: choose_groups(p, params).selected, cell)
        stage.rows(wishes.events)
    return Churned("groups", True, {"events": wishes.events, "seed": wishes.seed} | run.summary())


def make_stages(plan: StoredPlan, dataset: Dataset, engine: Engine) -> None:
    """What the traffic of groups is counted from."""
    if plan.record.delivery:
        make_senders(dataset, engine)
    else:
        make_group_stages(dataset, plan.groups.grouping, engine)


def params_of(record: GroupsRecord) -> GroupsParams:
    """The rule by which the plan chose its groups."""
    from fanplan.layers.groups.search.benefit import Prices
    from fanplan.layers.groups.search.choose import Budget, GroupsParams, Threshold, Top

    rule, amount = record.select.rule, record.select.amount
    select: Top | Threshold | Budget = Threshold(amount)
    if rule != "threshold":
        select = Top(amount) if rule == "top" else Budget(int(amount))
    prices = Prices(**record.prices.model_dump())
    return GroupsParams(select, record.rank, record.shortcuts, prices)


def cells_of(problem: GroupsProblem) -> Ints:
    """Cells with equal marks are as one; a route without a group is a cell of its own."""
    alone = problem.size + np.arange(len(problem.group))
    return np.where(problem.group >= 0, problem.group, alone).astype(np.int32)


# ---- marking


def churn_marking(
    plan: StoredPlan, dataset: Dataset, options: Mapping[str, Any], engine: Engine
) -> Churned:
    """Publishers and subscribers come and go, and nodes keep the marking right by themselves."""
    from fanplan.layers.marking.problem.dataset import OVERLAY, load_network
    from fanplan.layers.marking.protocol.churn import MarkingChurn
    from fanplan.layers.marking.protocol.run import marking_churn
    from fanplan.layers.marking.read import stored_overlay

    require_fields(MarkingChurn, options, "marking")
    wishes = plan.marking.wishes
    make_marking_stages(plan.record, dataset, engine)
    with engine.progress.stage("churn of the marking") as stage:
        overlay = stored_overlay(plan) if wishes.trees == OVERLAY else None
        network, given = load_network(dataset.path, wishes, overlay and overlay.clients)
        given = overlay.tree if overlay else given
        kind, network = trees_of(wishes.trees, network, given)
        churn = MarkingChurn(**{"trees": kind} | dict(options))
        run = marking_churn(network, churn, given)
        stage.rows(churn.events)
    return Churned("marking", run.right, run.summary())


def trees_of(kind: str, network: Network, given: pa.Table | None) -> tuple[str, Network]:
    """Trees as the protocol knows them: a given shared tree, or an overlay, is its own links."""
    from fanplan.layers.marking.problem.trees import only_tree

    if kind not in ("given-shared", "overlay") or given is None:
        return kind, network
    return f"shared:{given['root'][0].as_py()}", only_tree(network, given)
