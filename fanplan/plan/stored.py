"""Reading a plan folder: plan.json as a typed record, and where its tables are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fanplan.core.errors import InputError, Problem
from fanplan.data.reader import read_manifest, read_parquet
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.marking.record import MarkingRecord
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.plan.numbers import Count, Positive
from fanplan.plan.tables import (
    CELL_TABLES,
    CHANNEL_TABLES,
    DELIVERY_TABLES,
    GROUPS_TABLES,
    MARKING_TABLES,
    OVERLAY_TABLES,
    TREE_TABLES,
)
from fanplan.workload.tables import Table

FORMAT: Literal[3] = 3
PLAN_AGAIN = "Write the plan again"

LayerName = Literal["channels", "overlay", "marking", "groups", "delivery"]


class TableRecord(BaseModel):
    """An input table as it was: a hash of its files' content, and the rows that were understood."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    key: str
    kept: Count


class InputRecord(BaseModel):
    """The dataset that was planned for: its key and how it was ingested.

    ``inputs`` is a hash of all that went in: the description, the tables and the version.
    """

    model_config = ConfigDict(frozen=True)

    key: str
    seconds: Positive
    grid: str
    cover: str
    exact: bool
    parameters: dict[str, Any]
    inputs: str = ""
    tables: dict[str, TableRecord] = {}


class PlanRecord(BaseModel):
    """What plan.json holds: what was planned for, and a section for each layer that was planned.

    ``files`` has a hash of each table's file, ``seal`` one of all the rest of plan.json.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[3] = FORMAT
    version: str
    layers: tuple[LayerName, ...] = Field(min_length=1)
    input: InputRecord
    seed: int
    channels: ChannelsRecord | None = None
    overlay: OverlayRecord | None = None
    marking: MarkingRecord | None = None
    groups: GroupsRecord | None = None
    delivery: DeliveryRecord | None = None
    files: dict[str, str]
    seal: str = ""

    @model_validator(mode="after")
    def _sections_are_the_layers(self) -> PlanRecord:
        there = tuple(name for name in get_args(LayerName) if getattr(self, name) is not None)
        if sorted(self.layers) != sorted(there):
            raise ValueError(f"the layers {self.layers} are not the sections {there}")
        return self

    def tables(self) -> tuple[Table, ...]:
        """The tables that belong to the layers."""
        tables: tuple[Table, ...] = CHANNEL_TABLES if self.channels else ()
        if self.overlay:
            tables += OVERLAY_TABLES + (TREE_TABLES if self.overlay.trees > 1 else ())
        if self.groups:
            tables += GROUPS_TABLES + (CELL_TABLES if self.groups.grouping.cells else ())
        tables += DELIVERY_TABLES if self.delivery else ()
        return tables + (MARKING_TABLES if self.marking else ())


@dataclass(frozen=True)
class StoredPlan:
    """A plan folder: its record at hand, its tables read when asked for."""

    folder: Path
    record: PlanRecord

    @property
    def channels(self) -> ChannelsRecord:
        """The section on channels; an error if the plan has none."""
        return self._section(self.record.channels, "channels")

    @property
    def overlay(self) -> OverlayRecord:
        """The section on the overlay; an error if the plan has none."""
        return self._section(self.record.overlay, "overlay")

    @property
    def marking(self) -> MarkingRecord:
        """The section on the marking; an error if the plan has none."""
        return self._section(self.record.marking, "marking")

    @property
    def groups(self) -> GroupsRecord:
        """The section on groups; an error if the plan has none."""
        return self._section(self.record.groups, "groups")

    @property
    def delivery(self) -> DeliveryRecord:
        """The section on delivery; an error if the plan has none."""
        return self._section(self.record.delivery, "delivery")

    def _section(self, section: Any, name: str) -> Any:
        if section is None:
            what = f"has no layer {name}, only {', '.join(self.record.layers)}"
            raise InputError(Problem(str(self.folder), what, "Name a plan that has this layer"))
        return section

    def path(self, table: str) -> Path:
        return self.folder / f"{table}.parquet"

    def read(self, table: str, columns: tuple[str, ...], codes: tuple[str, ...] = ()) -> pa.Table:
        """Columns of a table; those in ``codes`` come as dictionary codes instead of strings."""
        return read_parquet(self.path(table), columns, PLAN_AGAIN, codes)


def load_plan(folder: Path) -> StoredPlan:
    """Open a plan folder; its record and the presence of its tables are checked at once."""
    plan = StoredPlan(folder, read_record(folder / "plan.json"))
    missing = [t.name for t in plan.record.tables() if not plan.path(t.name).is_file()]
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


def require_dataset_of(plan: StoredPlan, dataset: Path) -> None:
    """A dataset must be the one that a plan was made for."""
    if read_manifest(dataset).key != plan.record.input.key:
        what = f"{plan.folder} was planned for other input"
        remedy = "Name the workload that this plan was made for, or none"
        raise InputError(Problem(str(dataset), what, remedy))
