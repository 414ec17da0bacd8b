"""Reading a plan folder: plan.json as a typed record, and where its tables are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, ValidationError, model_validator

from fanplan.core.errors import InputError, Problem
from fanplan.core.hashes import is_intact
from fanplan.core.tables import Table
from fanplan.data.reader import read_manifest, read_parquet
from fanplan.plan.numbers import Count, Positive
from fanplan.plan.section import SectionRecord

FORMAT: Literal[4] = 4
PLAN_AGAIN = "Write the plan again"

RecordKind = TypeVar("RecordKind", bound=SectionRecord)
Records = Mapping[str, type[SectionRecord]]
"""The sections that plan.json may have, in their order there."""


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


class PlanHeader(BaseModel):
    """What plan.json says beside the sections of layers.

    ``files`` has a hash of each table's file, ``seal`` one of all the rest of plan.json.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[4] = FORMAT
    version: str
    layers: tuple[str, ...] = Field(min_length=1)
    input: InputRecord
    seed: int
    files: dict[str, str]
    seal: str = ""


class PlanRecord(PlanHeader):
    """What plan.json holds: what was planned for, and a section for each layer that was planned."""

    sections: dict[str, SerializeAsAny[SectionRecord]]

    @model_validator(mode="after")
    def _sections_are_the_layers(self) -> PlanRecord:
        if sorted(self.layers) != sorted(self.sections):
            there = tuple(self.sections)
            raise ValueError(f"the layers {self.layers} are not the sections {there}")
        return self

    def tables(self) -> tuple[Table, ...]:
        """The tables that belong to the layers."""
        return tuple(table for section in self.sections.values() for table in section.tables())

    def content(self) -> dict[str, Any]:
        """As plan.json has it: sections stand between what was planned for and the hashes."""
        told = self.model_dump(mode="json", exclude_none=True)
        sections, files, seal = (told.pop(name) for name in ("sections", "files", "seal"))
        result: dict[str, Any] = told | sections | {"files": files, "seal": seal}
        return result


@dataclass(frozen=True)
class StoredPlan:
    """A plan folder: its record at hand, its tables read when asked for."""

    folder: Path
    record: PlanRecord

    def section(self, kind: type[RecordKind]) -> RecordKind:
        """The section of a layer; an error if the plan has none."""
        found = self.find(kind)
        if found is None:
            what = f"has no layer {kind.layer}, only {', '.join(self.record.layers)}"
            raise InputError(Problem(str(self.folder), what, "Name a plan that has this layer"))
        return found

    def find(self, kind: type[RecordKind]) -> RecordKind | None:
        """The section of a layer, None if the plan has none."""
        return cast("RecordKind | None", self.record.sections.get(kind.layer))

    def has(self, kind: type[SectionRecord]) -> bool:
        """Whether the plan has a layer."""
        return kind.layer in self.record.sections

    def path(self, table: str) -> Path:
        return self.folder / f"{table}.parquet"

    def read(self, table: str, columns: tuple[str, ...], codes: tuple[str, ...] = ()) -> pa.Table:
        """Columns of a table; those in ``codes`` come as dictionary codes instead of strings."""
        return read_parquet(self.path(table), columns, PLAN_AGAIN, codes)


def read_plan(folder: Path, records: Records) -> StoredPlan:
    """Open a plan folder; its record and the presence of its tables are checked at once."""
    plan = StoredPlan(folder, read_plan_record(folder / "plan.json", records))
    missing = [t.name for t in plan.record.tables() if not plan.path(t.name).is_file()]
    if missing:
        what = f"no table {', '.join(missing)} here"
        raise InputError(Problem(str(folder), what, PLAN_AGAIN))
    return plan


def read_plan_record(path: Path, records: Records) -> PlanRecord:
    """The record in plan.json, if it is of the format that this version reads."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        what = "no plan.json here, so this is not a plan"
        raise InputError(Problem(str(path.parent), what, "Name a plan's folder")) from None
    except OSError as error:
        raise InputError(Problem(str(path), f"cannot be read ({error})", PLAN_AGAIN)) from error
    except ValueError as error:
        what = f"hash differs: it is not the JSON that was written ({error})"
        raise InputError(Problem(str(path), what, PLAN_AGAIN)) from error
    found = content.get("format") if isinstance(content, dict) else None
    intact = is_intact(content)
    if found != FORMAT:
        what = f"format {found!r} is not the format {FORMAT} that this version reads"
        what += "" if intact else ", or hash differs"
        raise InputError(Problem(str(path), what, PLAN_AGAIN))
    try:
        return parsed(content, records, str(path))
    except Exception as error:
        if intact:
            raise
        # Whatever cannot be understood of what somebody edited, the edit is the cause.
        edited = Problem(str(path), "edited since it was written: hash differs", PLAN_AGAIN)
        more = error.problems if isinstance(error, InputError) else ()
        raise InputError([edited, *more]) from error


def parsed(content: dict[str, Any], records: Records, where: str) -> PlanRecord:
    """The content of plan.json as a record; all that is wrong with it is told together."""
    sections, wrong = {}, []
    given = {name: content.pop(name, None) for name in records}
    try:
        header = PlanHeader.model_validate(content)
    except ValidationError as error:
        wrong += problems(error, where)
    for name, kind in records.items():
        if given[name] is not None:
            try:
                sections[name] = kind.model_validate(given[name])
            except ValidationError as error:
                wrong += problems(error, where, name)
    if wrong:
        raise InputError(wrong)
    try:
        return PlanRecord(**dict(header), sections=sections)
    except ValidationError as error:
        raise InputError(problems(error, where)) from error


def problems(error: ValidationError, where: str, *section: str) -> list[Problem]:
    """What pydantic finds wrong with a part of plan.json."""
    return [
        Problem(f"{where}: {'.'.join(map(str, (*section, *e['loc'])))}", e["msg"], PLAN_AGAIN)
        for e in error.errors()
    ]


def require_dataset_of(plan: StoredPlan, dataset: Path) -> None:
    """A dataset must be the one that a plan was made for."""
    if read_manifest(dataset).key != plan.record.input.key:
        what = f"{plan.folder} was planned for other input"
        remedy = "Name the dataset that this plan was made for"
        raise InputError(Problem(str(dataset), what, remedy))
