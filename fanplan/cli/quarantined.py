"""`fanplan quarantine`, and what `fanplan ingest` tells of tables: rows kept, and why not all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fanplan.cli import options
from fanplan.cli.flags import flags_named
from fanplan.cli.run import named_by_flag
from fanplan.cli.show import say, show_facts, show_json, show_table
from fanplan.core.errors import shorten
from fanplan.data.params import QuarantineParams

if TYPE_CHECKING:
    from fanplan.api import Dataset
    from fanplan.data.reader import Manifest

RAW_CHARS = 1000
"""Characters of a row that are shown; `--json` has it whole."""

Folder = Annotated[
    Path,
    typer.Argument(
        metavar="DATASET", help="Dataset that ingest wrote, or the folder that a refused one left."
    ),
]


def quarantine(dataset: Folder, json: options.Json = False, **given: Any) -> None:
    """List the rows that could not be understood: how many, why, and the rows themselves."""
    from fanplan import api
    from fanplan.data.quarantine import place

    with named_by_flag(flags_named(QuarantineParams)):
        found = api.quarantine(dataset, **given)
    if json:
        show_json(found.json())
        return
    rows = [(r.table, r.reason, r.rows, r.example) for r in found.reasons]
    show_table("Quarantine", ("table", "reason", "rows", "for example"), rows)
    for row in found.rows:
        say("", f"{place(row['source'], row['line'])}: {row['reason']}")
        say(f"  {shorten(row['raw'] or '', RAW_CHARS)}")


def show_ingested(dataset: Dataset) -> None:
    """For a person: rows kept and quarantined, the reasons with most rows, and what came of it."""
    manifest = dataset.manifest
    rows = [(t.name, t.rows, t.kept, t.quarantined) for t in manifest.tables]
    show_table("Tables", ("table", "rows", "kept", "quarantined"), rows)
    reasons = list(told_reasons(manifest))
    if reasons:
        show_table("Quarantined", ("table", "reason", "rows"), reasons)
    show_facts("Dataset", manifest.facts() | {"dataset": str(dataset.path)})
    for flaw in dataset.mended:
        say(f"Mended: {flaw}", err=True)
    for note in manifest.notes:
        say(f"Note: {note}", err=True)
    if reasons:
        say(f"To see the rows: fanplan quarantine {dataset.path}", err=True)


def told_reasons(manifest: Manifest) -> Iterator[tuple[str, str, int]]:
    """The first reasons of each table, and how many rows have others."""
    for table in manifest.tables:
        yield from ((table.name, reason, rows) for reason, rows in table.reasons)
        others = table.quarantined - sum(rows for _, rows in table.reasons)
        if others > 0:
            yield table.name, "other reasons", others
