"""The stage store: a dataset under construction, one finished and checked table at a time.

The work is done in ``DATASET.partial``. A stage is written aside and renamed when whole; its
``_stage.json`` holds its key, the code that made it and hashes of its files. A later run reuses a
stage of the same key and code whose files are as they were, from the unfinished work of a killed
run or from the finished dataset. ``finish`` gives the folder its name, so a dataset is there whole
or not at all. Names that begin with ``_`` are skipped by Parquet readers,
so a stage's folder can be read as it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from fanplan.core.errors import StageError
from fanplan.core.folder import DATASET, aside, claimed, flush, remove, write_whole
from fanplan.core.hashes import SEAL, sealed
from fanplan.core.progress import Progress
from fanplan.core.tables import Table
from fanplan.data.ingest.code import code_key
from fanplan.data.integrity import file_flaws, read_record, write_record
from fanplan.data.read.rows import PARTED, parted, parted_schema
from fanplan.data.reader import damage
from fanplan.data.schema import spark_schema
from fanplan.data.sizes import given, held, in_small_mode, most_collected, read_folder
from fanplan.data.write import write_folder

QUARANTINED = "_quarantined"
LISTS = ("strings", "numbers", "integers", "boxes")
Held = Callable[[], DataFrame]
"""The rows of a stage as they were written, if they are few and this run made them."""


@dataclass(frozen=True)
class Stage:
    """A finished stage: ``rows`` rows in ``path``, and ``quarantined`` more set apart."""

    table: Table
    key: str
    path: Path
    rows: int
    quarantined: int
    seal: str
    reused: bool
    held: Held | None = field(default=None, repr=False, compare=False)

    def read(self, spark: SparkSession) -> DataFrame:
        """The kept rows."""
        if self.held is None or not in_small_mode(spark):
            return read_folder(spark, self.path, spark_schema(self.table))
        rows = self.held()
        if PARTED not in rows.columns:
            return rows
        return rows.filter(F.col(PARTED)).select(*self.table.names)

    def read_quarantined(self, spark: SparkSession) -> DataFrame:
        """The rows set apart, as `reading.quarantined` takes them."""
        if self.held is None or not in_small_mode(spark):
            return read_folder(spark, self.path / QUARANTINED, parted_schema(self.table))
        return self.held().filter(~F.col(PARTED))


class StageStore:
    """Stages on their way to a dataset. Use it in a ``with`` block: it has claimed the name."""

    def __init__(self, out: Path, progress: Progress) -> None:
        self.out = out.absolute()
        self.folder = self.out.with_name(self.out.name + ".partial")
        self.progress = progress
        self.stages: dict[str, Stage] = {}
        self.claim = ExitStack()

    def __enter__(self) -> StageStore:
        with ExitStack() as claim:
            claim.enter_context(claimed(self.out, DATASET, replace=True))
            self.folder.mkdir(exist_ok=True)
            self.claim = claim.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.claim.__exit__(kind, error, trace)

    def run(
        self,
        table: Table,
        *,
        params: Mapping[str, Any],
        inputs: Sequence[str],
        build: Callable[[], DataFrame],
        split: bool = False,
        rows_in: int | None = None,
        plain: Path | None = None,
    ) -> Stage:
        """The stage with this key: found, or built, checked and written.

        ``plain`` is a folder where ``build`` lets tasks write kept rows on their own.

        With ``split`` the rows are annotated: those with a reason are written apart, in the same
        pass. With ``rows_in`` kept and quarantined rows must add up to that number.
        """
        key, path = stage_key(table, params, inputs, split), self.folder / table.name
        with self.progress.stage(table.name) as told:
            found, rows = self._found(table.name, key), None
            if found:
                told.reused()
            else:
                rows = write_stage(
                    path, key, build(), table, split, rows_in, plain=plain, hold=True
                )
            record = read_record(path) or {}
            seal = record[SEAL]
            stage = Stage(table, key, path, **record["counts"], seal=seal, reused=found, held=rows)
            told.rows(stage.rows)
        self.stages[table.name] = stage
        return stage

    def scratch(self, table: Table) -> Path:
        """A folder's name that was never used, for rows on their way to a stage."""
        return self.folder / f"{table.name}.plain-{uuid.uuid4().hex[:8]}"

    def finish(self, manifest: Mapping[str, Any], read: Callable[[Path], object]) -> None:
        """Turn the work into the dataset: only the stages of this run, the manifest last.

        An older dataset stays until the new one takes its name; one that is equal and undamaged
        stays for good, and so does the old one if ``read``, the manifest's reader, refuses the new.
        """
        for path in self.folder.iterdir():
            if path.name not in self.stages:
                remove(path)
        stages = {
            name: {"key": stage.key, "rows": stage.rows, SEAL: stage.seal}
            for name, stage in self.stages.items()
        }
        content = sealed({**manifest, "code": code_key(), "stages": stages})
        text = json.dumps(content, indent=2, sort_keys=True) + "\n"
        if same_text(self.out / DATASET.sign, text) and not damage(self.out):
            remove(self.folder)
            return
        write_whole(self.folder / DATASET.sign, text)
        read(self.folder)
        flush(self.folder)  # Before it has a name that is swept if this run is killed.
        with aside(self.out) as whole:
            self.folder.rename(whole)

    def _found(self, name: str, key: str) -> bool:
        """Whether the stage is there; one of the finished dataset is linked, not moved."""
        here = self.folder / name
        if is_whole(here, key):
            return True
        remove(here)
        if is_whole(self.out / name, key):
            with aside(here) as copy:
                shutil.copytree(self.out / name, copy, copy_function=link_file)
            return True
        return False


def stage_key(
    table: Table, params: Mapping[str, Any], inputs: Sequence[str], split: bool = False
) -> str:
    """A hash of all that a stage's rows depend on, but the code that makes them.

    The key of a dataset follows from it, and plans name that: a plan stays one for its dataset
    when the dataset is made again by a newer version.
    """
    # Names and types alone: better words for a column make no stage anew.
    columns = spark_schema(table).simpleString()
    parts = [table.name, params, list(inputs), columns, split]
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def write_stage(
    path: Path,
    key: str,
    rows: DataFrame,
    table: Table,
    split: bool = False,
    rows_in: int | None = None,
    dataset: str | None = None,
    plain: Path | None = None,
    hold: bool = False,
) -> Held | None:
    """Write and check a stage, whole with its record or not at all; it is called as its folder.

    With ``hold`` it returns the rows if they are few, so that they need not be read again; rows
    that tasks wrote on their own are not among them.
    """
    check_schema(table, rows.schema, exact=not split)
    rows = parted(rows, table) if split else rows
    hold, narrow, spark = hold and not plain, is_narrow(table), rows.sparkSession
    through_spark = in_small_mode(spark) and not most_collected(spark, narrow)
    again = held(rows) if hold and through_spark else None
    with aside(path) as folder:
        few = write_folder(again or rows, folder, PARTED if split else None, narrow)
        if split:
            part(folder, table, plain)
        else:
            ensure_file(folder, spark_schema(table))
        for extra in (*folder.rglob(".*.crc"), *folder.rglob("_SUCCESS")):
            extra.unlink()
        counts = {"rows": count_rows(folder), "quarantined": count_rows(folder / QUARANTINED)}
        if rows_in not in (None, sum(counts.values())):
            raise StageError(f"stage {table.name}: {rows_in} rows in, but {counts} out")
        about = {"key": key, "code": code_key(), "counts": counts, "dataset": dataset}
        write_record(folder, about)
    if hold and few is not None:
        return cache(partial(given, spark, few))
    return None if again is None else cache(lambda: again)


def is_narrow(table: Table) -> bool:
    """Whether rows have no lists, but one number for each attribute."""
    lists = [column.name for column in table.columns if column.type in LISTS]
    return {"cell", "lo", "hi"}.issuperset(lists)


def check_schema(table: Table, found: T.StructType, exact: bool) -> None:
    """Names and types as the table says; annotated rows may have more columns."""
    there = {field.name: field.dataType.simpleString() for field in found}
    wanted = {field.name: field.dataType.simpleString() for field in spark_schema(table)}
    compared = there if exact else {key: there[key] for key in wanted if key in there}
    if list(compared.items()) != list(wanted.items()):
        raise StageError(f"stage {table.name}: columns are {compared}, but must be {wanted}")


def part(folder: Path, table: Table, plain: Path | None) -> None:
    """Give kept and quarantined rows, which were written in one pass, their places."""
    bad = folder / QUARANTINED
    bad.mkdir(parents=True)
    parts = [(folder / f"{PARTED}=true", folder), (folder / f"{PARTED}=false", bad)]
    for found, place in [*parts, *([(plain, folder)] if plain else [])]:
        for file in found.glob("*.parquet"):
            file.rename(place / file.name)
        remove(found)
        ensure_file(place, parted_schema(table))


def ensure_file(folder: Path, schema: T.StructType) -> None:
    """A table without rows still has a file, which tells its columns."""
    if not any(folder.glob("*.parquet")):
        pq.write_table(to_arrow_schema(schema).empty_table(), folder / "part-empty.parquet")


def count_rows(folder: Path) -> int:
    """Rows by the footers of the files."""
    return sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))


def is_whole(folder: Path, key: str, dataset: str | None = None) -> bool:
    """Whether a folder holds the stage with this key as the code that is here made it.

    A stage that was made later is one of the ``dataset`` whose manifest has this seal.
    """
    record = read_record(folder)
    if record is None:
        return False
    made = (record["key"], record["code"], record["dataset"]) == (key, code_key(), dataset)
    return made and not any(file_flaws(folder, record))


def same_text(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def link_file(source: str, target: str) -> None:
    """A second name for a file, which nobody changes; a copy where links are not possible."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
