"""Cells, their groups and their traffic, made when groups first need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.ingest.derived import derived

if TYPE_CHECKING:
    from fanplan.layers.groups.bound import GroupsBound
    from fanplan.layers.groups.params import Grouping
    from fanplan.plan.stored import StoredPlan


def make_group_stages(dataset: Dataset, grouping: Grouping, engine: Engine) -> None:
    """What groups are found from: routes of brokers, and regions or cells."""
    from fanplan.layers.groups.stages.groups import group_stages

    group_stages(derived(dataset, engine), grouping)


def make_plan_stages(
    plan: StoredPlan, dataset: Dataset, engine: Engine, bound: GroupsBound | None
) -> None:
    """What the groups of a stored plan were found from."""
    from fanplan.layers.groups.record import GroupsRecord

    if bound is None:
        make_group_stages(dataset, plan.section(GroupsRecord).params.grouping, engine)
    else:
        bound.make_stages(dataset, engine)
