"""What callers hand over: datasets and plans as objects or as paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import DATASET, PLAN, WORKLOAD
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.frames import a_kind_of
from fanplan.plan.stored import StoredPlan

AnyDataset = Dataset | PathLike
AnyPlan = StoredPlan | PathLike


def dataset_at(given: Any) -> Dataset:
    """A dataset, or the one at a path."""
    if isinstance(given, Dataset):
        return given
    if isinstance(given, str | Path):
        folder = Path(given)
        if not (folder / DATASET.sign).is_file() and (folder / WORKLOAD.sign).is_file():
            remedy = "Make a dataset of it first: fanplan.ingest(workload, out)"
            raise InputError(Problem(str(folder), "is a workload, not a dataset", remedy))
        dataset = Dataset(folder)
        _ = dataset.manifest
        return dataset
    remedy = "Give a Dataset or its path; fanplan.ingest makes one, of files or of frames"
    raise InputError(Problem("dataset", f"is {a_kind_of(given)}", remedy))


def plan_at(given: Any) -> Path:
    """Where a plan is stored."""
    if isinstance(given, StoredPlan):
        return given.folder
    if isinstance(given, str | Path):
        return Path(given)
    remedy = "Give a stored plan or its path; what a planning function returns has save(folder)"
    raise InputError(Problem(PLAN.name, f"is {a_kind_of(given)}", remedy))
