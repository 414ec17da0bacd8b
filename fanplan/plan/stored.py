"""Reading a plan folder: plan.json as a typed record, and where its tables are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from fanplan.errors import InputError, Problem
from fanplan.plan.tables import CHANNEL_TABLES
from fanplan.problem.dataset import read_parquet

FORMAT: Literal[1] = 1
PLAN_AGAIN = "Write the plan again"

Positive = Annotated[FiniteFloat, Field(gt=0)]


class InputRecord(BaseModel):
    """The dataset that was planned for: its key and how it was ingested."""

    model_config = ConfigDict(frozen=True)

    key: str
    seconds: Positive
    grid: str
    cover: str
    exact: bool
    parameters: dict[str, Any]


class WeightsRecord(BaseModel):
    """Weights of the cost."""

    model_config = ConfigDict(frozen=True)

    w1: Positive
    w2: Positive
    w3: Positive


class PlanRecord(BaseModel):
    """What plan.json holds. ``seconds`` is the window that the ledger covers, not a run time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = FORMAT
    version: str
    layers: tuple[Literal["channels"], ...]
    input: InputRecord
    method: str
    params: dict[str, Any]
    weights: WeightsRecord
    seed: int
    channels: int = Field(ge=0)
    flows: int = Field(ge=0)
    audience_classes: int = Field(ge=0)
    seconds: FiniteFloat
    cost: FiniteFloat
    perfect: FiniteFloat
    excess_percent: FiniteFloat
    bound: FiniteFloat
    bound_name: str
    bound_percent: FiniteFloat
    single_bound: FiniteFloat
    single_bound_name: str
    single_bound_percent: FiniteFloat
    unicast_fraction: FiniteFloat
    ledger: dict[str, FiniteFloat]


@dataclass(frozen=True)
class StoredPlan:
    """A plan folder: its record at hand, its tables read when asked for."""

    folder: Path
    record: PlanRecord

    def path(self, table: str) -> Path:
        return self.folder / f"{table}.parquet"

    def read(self, table: str, columns: tuple[str, ...], codes: tuple[str, ...] = ()) -> pa.Table:
        """Columns of a table; those in ``codes`` come as dictionary codes instead of strings."""
        return read_parquet(self.path(table), columns, PLAN_AGAIN, codes)


def load_plan(folder: Path) -> StoredPlan:
    """Open a plan folder; its record and the presence of its tables are checked at once."""
    plan = StoredPlan(folder, read_record(folder / "plan.json"))
    missing = [table.name for table in CHANNEL_TABLES if not plan.path(table.name).is_file()]
    if missing:
        what = f"no table {', '.join(missing)} here"
        raise InputError(Problem(str(folder), what, PLAN_AGAIN))
    return plan


def read_record(path: Path) -> PlanRecord:
    """The record in plan.json, if it is of the format that this version reads."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        what = "no plan.json here, so this is not a plan"
        raise InputError(Problem(str(path.parent), what, "Name a plan's folder")) from None
    except (OSError, ValueError) as error:
        raise InputError(Problem(str(path), f"cannot be read ({error})", PLAN_AGAIN)) from error
    found = content.get("format") if isinstance(content, dict) else None
    if found != FORMAT:
        what = f"format {found!r} is not the format {FORMAT} that this version reads"
        raise InputError(Problem(str(path), what, PLAN_AGAIN))
    try:
        return PlanRecord.model_validate(content)
    except ValidationError as error:
        raise InputError(
            Problem(f"{path}: {'.'.join(map(str, e['loc']))}", e["msg"], PLAN_AGAIN)
            for e in error.errors()
        ) from error
