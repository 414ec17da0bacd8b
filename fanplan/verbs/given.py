"""What callers hand over: datasets and plans as objects or as paths."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from fanplan.core.errors import FanplanError, InputError, MachineError, Problem
from fanplan.core.failures import explained, of_spark, spark_gone
from fanplan.core.folder import DATASET, PLAN, WORKLOAD
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.frames import a_kind_of
from fanplan.plan.stored import StoredPlan

AnyDataset = Dataset | PathLike
AnyPlan = StoredPlan | PathLike

Given = ParamSpec("Given")
Found = TypeVar("Found")


def in_our_words(verb: Callable[Given, Found]) -> Callable[Given, Found]:
    """A verb whose failures are errors of Fanplan, also where Spark or the machine fails."""

    @wraps(verb)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> Found:
        try:
            return verb(*args, **kwargs)
        except FanplanError:
            raise
        except Exception as error:
            failed = failed_in_words(error)
            if failed is None:
                raise
            raise failed from error

    return run


def failed_in_words(error: Exception) -> FanplanError | None:
    """An error of Spark or of the machine as one of ours; None if it is neither."""
    jvm = sys.modules.get("fanplan.data.jvm")
    if jvm is not None and not jvm.alive():
        return spark_gone()
    if (told := explained(error)) is not None or not of_spark(error):
        return told
    said = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return MachineError(Problem("Spark", f"a job failed ({said})", "Its own error is the cause"))


def dataset_at(given: Any) -> Dataset:
    """A dataset, or the one at a path."""
    if isinstance(given, Dataset):
        return given
    if isinstance(given, str | Path):
        folder = Path(given)
        if not (folder / DATASET.sign).is_file() and (folder / WORKLOAD.sign).is_file():
            remedy = "Make a dataset of it first: `fanplan ingest`, or fanplan.ingest in Python"
            raise InputError(Problem(str(folder), "is a workload, not a dataset", remedy))
        dataset = Dataset(folder)
        _ = dataset.manifest
        return dataset
    remedy = "Give a Dataset or its path; fanplan.ingest makes one, of files or of frames"
    raise InputError(Problem("dataset", f"is {a_kind_of(given)}", remedy))


def path_at(given: Any, what: str, remedy: str) -> Path:
    """A path that somebody gave, as text or as a Path."""
    if isinstance(given, str | Path):
        return Path(given)
    raise InputError(Problem(what, f"is {a_kind_of(given)}, not a path", remedy))


def plan_at(given: Any) -> Path:
    """Where a plan is stored."""
    if isinstance(given, StoredPlan):
        return given.folder
    if isinstance(given, str | Path):
        return Path(given)
    remedy = "Give a stored plan or its path; what a planning function returns has save(folder)"
    raise InputError(Problem(PLAN.name, f"is {a_kind_of(given)}", remedy))
