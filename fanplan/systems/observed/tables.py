"""What was observed, as the tables of a workload; it appears whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from fanplan.core.errors import InputError, Problem

COMMON = {"time": pa.float64(), "publisher": pa.string(), "topic": pa.string(), "bytes": pa.int64()}
BATCH = 1 << 16
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Observed:
    """A workload that was written. ``counts`` has the rows of tables and what else was seen.

    ``notes`` say what could not be told.
    """

    folder: Path
    source: str
    counts: Mapping[str, int]
    notes: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        told = {"source": self.source, "workload": str(self.folder)}
        return {**told, "counts": dict(self.counts), "notes": list(self.notes)}


@dataclass
class Writer:
    """Writes tables into a folder that is there: small ones as CSV, publications as they come."""

    folder: Path
    counts: dict[str, int] = field(default_factory=dict)

    def describe(self, name: str, **told: str | float) -> None:
        """Write workload.toml."""
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in {"name": name, **told}.items()]
        (self.folder / "workload.toml").write_text("".join(lines), encoding="utf-8")

    def table(self, name: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Write a table; one without rows is left out."""
        lists = [*zip(*rows, strict=True)]
        if lists:
            table = pa.table(dict(zip(columns, map(list, lists), strict=True)))
            pyarrow.csv.write_csv(table, self.folder / f"{name}.csv")
            self.counts[name] = len(table)

    def publications(
        self, rows: Iterable[Row], attributes: Mapping[str, pa.DataType] | None = None
    ) -> None:
        """Write (time, publisher, topic, bytes) and values of attributes, some at a time."""
        schema = pa.schema({**COMMON, **(attributes or {})})
        with ExitStack() as stack:
            writer: pq.ParquetWriter | None = None
            while some := [*islice(rows := iter(rows), BATCH)]:
                if writer is None:
                    path = self.folder / "publications.parquet"
                    writer = stack.enter_context(pq.ParquetWriter(path, schema))
                columns = [
                    pa.array(own, each.type)
                    for own, each in zip(zip(*some, strict=True), schema, strict=True)
                ]
                writer.write_table(pa.table(columns, schema=schema))
                self.counts["publications"] = self.counts.get("publications", 0) + len(some)


def no_workload(where: str, what: str, remedy: str) -> InputError:
    """The error about a source that gives no workload."""
    return InputError(Problem(where, what, remedy))
