"""The group protocols at work while subscribers of a stored plan come and go."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fanplan.core.arrays import Ints
from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.layers.groups.bound import GroupsBound
from fanplan.layers.groups.problem.build import exact_groups
from fanplan.layers.groups.problem.dataset import load_groups
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.protocol.params import GroupsChurn
from fanplan.layers.groups.read import read_groups
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.groups.stages.make import make_plan_stages
from fanplan.network.dataset import read_brokers
from fanplan.plan.stored import StoredPlan
from fanplan.simulation.simulated import Churned, ChurnListing, require_fields

CHURN_WORDS = {
    "publications": "publications",
    "in_groups": "of these in a group",
    "deliveries": "arrivals, each exactly once",
    "matches": "matches at brokers",
    "delay_mean_ms": "mean delay, ms",
    "delay_max_ms": "longest delay, ms",
    "updates": "changed subscriptions",
    "accepted_mean_ms": "in force after, ms",
    "rebuilds": "rebuilds",
    "rebuild_mean_ms": "each takes, ms",
    "held": "publications held back",
    "held_max_ms": "at most, ms",
    "groups": "groups at the end",
    "groups_built": "groups set up",
    "groups_kept": "groups kept",
    "entries_most": "most entries of a broker",
    "overhead": "control messages, the paper's kinds",
    "control_messages": "control messages, all",
    "unwanted": "unwanted at members",
    "resent": "sent again",
}
"""Figures as a person reads them."""


def churn_groups(
    plan: StoredPlan,
    dataset: Dataset,
    options: Mapping[str, Any],
    engine: Engine,
    bound: GroupsBound | None,
) -> Churned:
    """Brokers subscribe and unsubscribe, and groups are rebuilt while publications flow.

    Under a layer that binds groups it is what that leaves to brokers.
    """
    from fanplan.layers.groups.protocol.churn import groups_churn
    from fanplan.layers.groups.search.choose import choose_groups

    require_fields(GroupsChurn, options, "groups")
    record = plan.section(GroupsRecord)
    wishes = GroupsChurn(**{"shortcuts": record.params.shortcuts} | dict(options))
    params = record.params.choice
    make_plan_stages(plan, dataset, engine, bound)
    with engine.progress.stage("churn of groups") as stage:
        problem = possible(plan, dataset.path, bound)
        cell = churn_cells(problem) if record.params.grouping.cells else None
        run = groups_churn(problem, wishes, lambda p: choose_groups(p, params).selected, cell)
        stage.rows(wishes.events)
    return churned_groups({"events": wishes.events, "seed": wishes.seed} | run.summary())


def churned_groups(figures: dict[str, Any]) -> Churned:
    """What happened, in words, and the control messages by kind."""
    facts = {words: figures[name] for name, words in CHURN_WORDS.items()}
    kinds = [
        [kind.replace("_", " "), figures["set_up"][kind], count]
        for kind, count in figures["control"].items()
    ]
    listing = ChurnListing("Control messages", ("kind", "setting up", "during churn"), kinds)
    return Churned("groups", True, figures, "Churn of groups", facts, listing)


def possible(plan: StoredPlan, dataset: Path, bound: GroupsBound | None) -> GroupsProblem:
    """Groups of the dataset's traffic, or of what a layer that binds them leaves to brokers."""
    names = read_brokers(dataset).names
    trees = read_groups(plan, names).trees
    if bound is not None:
        return exact_groups(names, trees, bound.routes(dataset, trees))
    return load_groups(dataset, trees, plan.section(GroupsRecord).params.grouping).problem


def churn_cells(problem: GroupsProblem) -> Ints:
    """Cells with equal marks are as one; a route without a group is a cell of its own."""
    alone = problem.size + np.arange(len(problem.group))
    return np.where(problem.group >= 0, problem.group, alone).astype(np.int32)
