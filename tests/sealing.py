"""Hand-made datasets, and those that a test edits, with the hashes that ``ingest`` writes."""

from __future__ import annotations

import json
from pathlib import Path

from fanplan.core.hashes import SEAL, sealed
from fanplan.data.integrity import MANIFEST, RECORD, read_record, write_record


def seal_dataset(dataset: Path) -> Path:
    """Hash all files anew, as if they had been written as they are."""
    content = json.loads((dataset / MANIFEST).read_text())
    stages = content.setdefault("stages", {})
    for stage in stages.values():
        stage.setdefault(SEAL, "")
    for folder in stage_folders(dataset):
        record = seal_stage(folder, None)
        if folder.name in stages:
            stages[folder.name][SEAL] = record
    content = sealed(content)
    (dataset / MANIFEST).write_text(json.dumps(content))
    for folder in stage_folders(dataset):
        if folder.name not in stages:
            seal_stage(folder, content[SEAL])
    return dataset


def stage_folders(dataset: Path) -> list[Path]:
    return [each for each in sorted(dataset.iterdir()) if each.is_dir() and each.name[0] != "."]


def seal_stage(folder: Path, dataset: str | None) -> str:
    """Record a stage; its key stays what it was, so that it is not made again for that."""
    older = json.loads((folder / RECORD).read_text()) if (folder / RECORD).is_file() else {}
    about = {"key": "", "code": "", "counts": {}} | {k: v for k, v in older.items() if k != SEAL}
    write_record(folder, about | {"dataset": dataset})
    record = read_record(folder)
    assert record is not None
    return str(record[SEAL])


def amend(dataset: Path, **facts: object) -> Path:
    """Let a dataset say something else of itself."""
    path = dataset / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | facts))
    return seal_dataset(dataset)
