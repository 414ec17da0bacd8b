"""A stored census on a dataset as it is now."""

from __future__ import annotations

from pathlib import Path

from fanplan.plan.drift import LayerNow, came_and_went
from fanplan.plan.stored import StoredPlan

from .check import recount
from .record import CensusRecord, read_census


def census_now(plan: StoredPlan, dataset: Path) -> LayerNow:
    then, now = read_census(plan), recount(dataset, plan.section(CensusRecord).params.least)
    moved = came_and_went(then, now)
    return LayerNow({"topics": moved}, {"topics": (len(then), len(now))}, moved.came)
