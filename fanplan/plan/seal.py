"""Hashes by which a plan folder shows whether it is as it was written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic_core import to_json

from fanplan.core import hashes
from fanplan.core.errors import InputError, Problem
from fanplan.plan.stored import PLAN_AGAIN, PlanRecord, StoredPlan

RECORD = "plan.json"


def table_hashes(folder: Path) -> dict[str, str]:
    """A hash of each Parquet file in the folder, by the name of its table."""
    paths = sorted(folder.glob("*.parquet"))
    found = hashes.file_hashes(paths)
    return dict(zip((path.stem for path in paths), found, strict=True))


def write_plan_record(record: PlanRecord, folder: Path) -> None:
    """Seal the record and write it as plan.json."""
    sealed = record.model_copy(update={"seal": seal_of(record)})
    (folder / RECORD).write_bytes(to_json(sealed.content(), indent=2) + b"\n")


def seal_of(record: PlanRecord) -> str:
    """A hash of all that a record says but its seal, however it is spaced."""
    return hashes.content_hash(record.content())


def edited(plan: StoredPlan) -> list[str]:
    """Names of files of a plan that are not as they were written."""
    found, stated = table_hashes(plan.folder), plan.record.files
    names = sorted(found.keys() | stated.keys())
    tables = [f"{name}.parquet" for name in names if found.get(name) != stated.get(name)]
    # The file itself: what a record leaves out of it as void may have been something.
    whole = hashes.is_intact(json.loads((plan.folder / RECORD).read_bytes()))
    return tables if whole else [*tables, RECORD]


def require_untouched(plan: StoredPlan) -> None:
    """A plan that was edited is not the one that was checked."""
    if names := edited(plan):
        raise edit_error(plan, names)


def edit_error(plan: StoredPlan, names: list[str]) -> InputError:
    what = f"edited since it was written: {', '.join(names)} (hash differs)"
    return InputError(Problem(str(plan.folder), what, PLAN_AGAIN))


@contextmanager
def naming_edits(plan: StoredPlan) -> Iterator[None]:
    """Work with a plan's tables; if that fails and the plan was edited, this is the cause."""
    try:
        yield
    except Exception as error:
        if names := edited(plan):
            raise edit_error(plan, names) from error
        raise
