"""The section on the input: rows kept and quarantined, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from fanplan.data.reader import Manifest, read_manifest, stage_batches
from fanplan.page.content import Listing, Section

BATCH_ROWS = 1 << 16

LEAD = (
    "What the plans were made from. A row that could not be understood is in quarantine with its "
    "reason; rows read = rows kept + rows quarantined."
)


def inputs_section(dataset: Path) -> Section:
    manifest = read_manifest(dataset)
    listings = [table_listing(manifest)]
    if any(table.quarantined for table in manifest.tables):
        listings.append(reason_listing(dataset))
    notes = tuple(note for table in manifest.tables for note in table.notes)
    return Section("input", "Input and quarantine", LEAD, facts(manifest), (), listings, notes)


def facts(manifest: Manifest) -> list[tuple[str, Any]]:
    told = list(manifest.facts().items())
    quarantined = sum(table.quarantined for table in manifest.tables)
    return [("name", manifest.name or "–"), *told, ("rows in quarantine", quarantined)]


def table_listing(manifest: Manifest) -> Listing:
    rows = [(t.name, t.rows, t.kept, t.quarantined) for t in manifest.tables]
    return Listing("tables", "Tables", ("table", "rows", "kept", "quarantined"), rows)


def reason_listing(dataset: Path) -> Listing:
    """How many rows each reason holds back, with one of them."""
    columns = ("table", "reason", "source", "line")
    parts = [
        pa.Table.from_batches([batch])
        .group_by(["table", "reason"], use_threads=False)
        .aggregate([([], "count_all"), ("source", "first"), ("line", "first")])
        for batch in stage_batches(dataset, "quarantine", columns, BATCH_ROWS)
    ]
    total = pa.concat_tables(parts).group_by(["table", "reason"], use_threads=False)
    counted = total.aggregate(
        [("count_all", "sum"), ("source_first", "first"), ("line_first", "first")]
    ).to_pylist()
    rows = [
        (r["table"], r["reason"], r["count_all_sum"], place(r))
        for r in sorted(counted, key=lambda r: -r["count_all_sum"])
    ]
    header = ("table", "reason", "rows", "for example")
    return Listing("quarantine", "Quarantine, by reason", header, rows)


def place(row: dict[str, Any]) -> str:
    line = row["line_first_first"]
    return f"{row['source_first_first']}" + ("" if line is None else f", line {line}")
