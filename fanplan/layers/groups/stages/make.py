"""Cells, their groups and their traffic, made when groups first need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.ingest.derived import derived

if TYPE_CHECKING:
    from fanplan.layers.groups.problem.dataset import Grouping


def make_group_stages(dataset: Dataset, grouping: Grouping, engine: Engine) -> None:
    """What groups are found from: routes of brokers, and regions or cells."""
    from fanplan.layers.groups.stages.groups import group_stages

    group_stages(derived(dataset, engine), grouping)
