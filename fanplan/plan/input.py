"""The dataset of a plan."""

from __future__ import annotations

from pathlib import Path

from fanplan.core.errors import InputError, Problem
from fanplan.data.reader import read_manifest
from fanplan.plan.stored import StoredPlan


def require_dataset_of(plan: StoredPlan, dataset: Path) -> None:
    """A dataset must be the one that a plan was made for."""
    if read_manifest(dataset).key != plan.record.input.key:
        what = f"{plan.folder} was planned for other input"
        remedy = "Name the workload that this plan was made for, or none"
        raise InputError(Problem(str(dataset), what, remedy))
