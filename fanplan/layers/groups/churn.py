"""The group protocols at work while subscribers of a stored plan come and go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.layers.delivery.stages.make import make_senders
from fanplan.layers.groups.stages.make import make_group_stages
from fanplan.simulation.simulated import Churned, require_fields

if TYPE_CHECKING:
    from fanplan.core.arrays import Ints
    from fanplan.layers.groups.params import GroupsParams
    from fanplan.layers.groups.problem.groups import GroupsProblem
    from fanplan.layers.groups.record import GroupsRecord
    from fanplan.plan.stored import StoredPlan


def churn_groups(
    plan: StoredPlan, dataset: Dataset, options: Mapping[str, Any], engine: Engine
) -> Churned:
    """Brokers subscribe and unsubscribe, and groups are rebuilt while publications flow.

    Of a plan with delivery it is what channels and direct unicast leave to brokers.
    """
    from fanplan.layers.groups.check.check import possible_groups
    from fanplan.layers.groups.protocol.churn import GroupsChurn, groups_churn
    from fanplan.layers.groups.read import read_groups
    from fanplan.layers.groups.record import GroupsRecord
    from fanplan.layers.groups.search.choose import choose_groups
    from fanplan.network.dataset import read_brokers

    require_fields(GroupsChurn, options, "groups")
    record = plan.section(GroupsRecord)
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
    from fanplan.layers.delivery.record import DeliveryRecord
    from fanplan.layers.groups.record import GroupsRecord

    if plan.has(DeliveryRecord):
        make_senders(dataset, engine)
    else:
        make_group_stages(dataset, plan.section(GroupsRecord).grouping, engine)


def params_of(record: GroupsRecord) -> GroupsParams:
    """The rule by which the plan chose its groups."""
    from fanplan.layers.groups.params import Budget, GroupPrices, GroupsParams, Threshold, Top

    rule, amount = record.select.rule, record.select.amount
    select: Top | Threshold | Budget = Threshold(amount)
    if rule != "threshold":
        select = Top(amount) if rule == "top" else Budget(int(amount))
    prices = GroupPrices(**record.prices.model_dump())
    return GroupsParams(select, record.rank, record.shortcuts, prices)


def cells_of(problem: GroupsProblem) -> Ints:
    """Cells with equal marks are as one; a route without a group is a cell of its own."""
    alone = problem.size + np.arange(len(problem.group))
    return np.where(problem.group >= 0, problem.group, alone).astype(np.int32)
