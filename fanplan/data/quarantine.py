"""Rows in quarantine: counted by the kind of their reason and shown as they came, without Spark.

The table is read in batches, so that it may be as large as the input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.errors import NAMED, InputError, Problem, shorten, similar
from fanplan.core.result import Result
from fanplan.data.params import QuarantineParams, ReadParams
from fanplan.data.reader import TableCount, read_manifest, stage_batches
from fanplan.workload.tables import INPUT_TABLES, SUBSCRIPTIONS

STAGE = "quarantine"
BATCH_ROWS = 1 << 16
PLACE = ("table", "source", "line")


@dataclass(frozen=True)
class Reason:
    """Why rows of a table are in quarantine, how many they are, and where one of them is."""

    table: str
    reason: str
    rows: int
    source: str
    line: int | None

    @property
    def example(self) -> str:
        return place(self.source, self.line)


@dataclass(frozen=True, repr=False)
class Quarantine(Result):
    """What is in quarantine: ``reasons`` with most rows first, and the first ``rows`` by place."""

    folder: Path
    reasons: tuple[Reason, ...]
    rows: tuple[dict[str, Any], ...]

    @property
    def quarantined(self) -> int:
        """Rows in quarantine; an empty file is an entry, but no row."""
        return sum(reason.rows for reason in self.reasons if reason.line is not None)

    def summary(self) -> dict[str, Any]:
        """How many rows each table and each reason has, as JSON."""
        tables: Counter[str] = Counter()
        for reason in self.reasons:
            tables[reason.table] += reason.rows
        return {
            "dataset": str(self.folder),
            "quarantined": self.quarantined,
            "tables": dict(tables),
            "reasons": [asdict(reason) for reason in self.reasons],
        }

    def json(self) -> dict[str, Any]:
        """The same, and rows as they came."""
        return self.summary() | {"rows": list(self.rows)}


def read_quarantine(folder: Path, params: QuarantineParams) -> Quarantine:
    """The quarantine of a dataset, or of the ``.partial`` folder that a refused ingest leaves."""
    require_quarantine(folder)
    require_table(params.table)
    reasons = count_reasons(folder, params)
    return Quarantine(folder, tuple(reasons), tuple(first_rows(folder, params)))


def require_quarantine(folder: Path) -> None:
    if (folder / STAGE).is_dir():
        return
    unfinished = folder.with_name(f"{folder.name}.partial")
    what, remedy = "is not a dataset", "Name a folder that `fanplan ingest` wrote"
    if (unfinished / STAGE).is_dir():
        what, remedy = "ingest did not finish", f"Look at {unfinished}"
    raise InputError(Problem(str(folder), what, remedy))


def require_table(table: str | None) -> None:
    """A name that no table has is a mistake; a table without such rows is not."""
    known = [own.name for own in INPUT_TABLES]
    if table is not None and table not in known:
        remedy = similar(table, known) or f"Use one of: {', '.join(known)}"
        raise InputError(Problem("table", f"{table!r} is not a table of a workload", remedy))


def count_reasons(folder: Path, params: QuarantineParams) -> list[Reason]:
    """Kinds of reasons, those with most rows first; memory grows with kinds, not with rows."""
    key = ("table", "kind")
    parts = [
        pa.Table.from_batches([batch])
        .group_by(key, use_threads=False)
        .aggregate([([], "count_all"), ("source", "first"), ("line", "first")])
        for batch in chosen_rows(folder, (*key, "reason", "source", "line"), params)
    ]
    if not parts:
        return []
    counted = (
        pa.concat_tables(parts)
        .group_by(key, use_threads=False)
        .aggregate([("count_all", "sum"), ("source_first", "first"), ("line_first", "first")])
        .select((*key, "count_all_sum", "source_first_first", "line_first_first"))
    )
    found = [Reason(*row.values()) for row in counted.to_pylist()]
    return sorted(found, key=lambda reason: (-reason.rows, reason.table, reason.reason))


def first_rows(folder: Path, params: QuarantineParams) -> list[dict[str, Any]]:
    """The first rows by table, file and line, whole."""
    columns = (*PLACE, "raw", "reason")

    def earlier(kept: pa.Table | None, batch: pa.RecordBatch) -> pa.Table:
        table = pa.Table.from_batches([batch])
        both = table if kept is None else pa.concat_tables([kept, table])
        return both.sort_by([(name, "ascending") for name in PLACE]).slice(0, params.rows)

    batches = chosen_rows(folder, (*columns, "kind"), params) if params.rows else ()
    kept: pa.Table | None = reduce(earlier, batches, None)
    rows: list[dict[str, Any]] = [] if kept is None else kept.select(columns).to_pylist()
    return rows


def chosen_rows(
    folder: Path, columns: Sequence[str], params: QuarantineParams
) -> Iterator[pa.RecordBatch]:
    """Batches of the rows that are asked for."""
    for batch in stage_batches(folder, STAGE, columns, BATCH_ROWS):
        if params.table is not None:
            batch = batch.filter(pc.equal(batch["table"], params.table))
        if params.reason is not None:
            told = pc.match_substring(batch["reason"], params.reason, ignore_case=True)
            kind = pc.match_substring(batch["kind"], params.reason, ignore_case=True)
            batch = batch.filter(pc.or_(told, kind))
        if batch.num_rows:
            yield batch


def place(source: str, line: int | None) -> str:
    """Where a row is: text has lines, a table of columns has rows."""
    word = "row" if source.endswith(".parquet") else "line"
    return source if line is None else f"{source}, {word} {line}"


# ---- tables that are lost


RAW_CHARS = 160
"""Characters of a row that an error shows."""


@dataclass(frozen=True)
class LossRule:
    """The largest share of its rows that a table may lose, and where lost rows can be looked at."""

    limit: float
    look: str

    def lost(self, tables: Iterable[TableCount]) -> list[TableCount]:
        """Tables that lost too many rows; without any subscription nothing can be planned."""
        return [t for t in tables if t.quarantined > self.limit * t.rows or useless(t)]

    def problems(self, folder: Path, tables: Iterable[TableCount]) -> Iterator[Problem]:
        """Why rows of tables are lost, three of them, and what to do."""
        for table in tables:
            own = QuarantineParams(table=table.name)
            reasons = count_reasons(folder, own)[:NAMED]
            why = "; ".join(f"{reason.reason} ({reason.rows:,})" for reason in reasons)
            what = f"{table.quarantined:,} of {table.rows:,} rows cannot be used: {why}"
            on = "" if useless(table) else ", or go on without them: --lost-limit 1"
            yield Problem(table.name, what, f"Mend them ({self.look}){on}")
            for row in samples(folder, own, reasons):
                told = f"{shorten(row['raw'] or '', RAW_CHARS)!r}: {row['reason']}"
                yield Problem(place(row["source"], row["line"]), told, "Mend it")


def listed(folder: Path) -> str:
    return f"`fanplan quarantine {folder}` lists them"


def require_kept(dataset: Path, params: ReadParams) -> None:
    """Refuse a dataset of which a table lost too many rows."""
    losses = LossRule(params.lost_limit, listed(dataset))
    if lost := losses.lost(read_manifest(dataset).tables):
        raise InputError(losses.problems(dataset, lost))


def useless(table: TableCount) -> bool:
    return table.name == SUBSCRIPTIONS.name and not table.kept


def samples(folder: Path, own: QuarantineParams, reasons: Sequence[Reason]) -> list[dict[str, Any]]:
    """A row of each reason first, then others, three in all."""
    each = [first_rows(folder, replace(own, reason=r.reason, rows=1)) for r in reasons]
    rows = [*chain(*each), *first_rows(folder, replace(own, rows=NAMED))]
    return list({(row["source"], row["line"]): row for row in rows}.values())[:NAMED]
