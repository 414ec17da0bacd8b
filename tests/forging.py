"""Plans that were edited and sealed again: only what the check proves itself can tell them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fanplan.layers.registry import load_plan
from fanplan.plan.seal import file_hashes, write_record


def forge(folder: Path, *keys: str, to: Any) -> None:
    """State something else at a place of plan.json, and seal it."""
    path = folder / "plan.json"
    content = json.loads(path.read_text())
    place = content
    for key in keys[:-1]:
        place = place[int(key) if isinstance(place, list) else key]
    place[int(keys[-1]) if isinstance(place, list) else keys[-1]] = to
    path.write_text(json.dumps(content))
    seal(folder)


def forge_rows(folder: Path, table: str, rows: list[dict[str, Any]]) -> None:
    """Replace the rows of a table, and seal it."""
    path = folder / f"{table}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(path)), path)
    seal(folder)


def seal(folder: Path) -> None:
    record = load_plan(folder).record
    write_record(record.model_copy(update={"files": file_hashes(folder)}), folder)
