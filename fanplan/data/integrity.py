"""Whether a dataset is as it was written.

The ``_stage.json`` of each stage has a hash of each of its files, and a seal: a hash of itself.
``manifest.json`` has the seals of the stages that ingest made, and one of its own. A stage made
later has the seal of the manifest. So what is missing, added, changed or another dataset's shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fanplan.core.errors import InputError
from fanplan.core.hashes import SEAL, file_hashes, is_intact, sealed

MANIFEST = "manifest.json"
RECORD = "_stage.json"
DIFFERS = "hash differs"


class DamagedError(InputError):
    """A dataset that is not as it was written: no finding about a plan."""


def stage_file_names(folder: Path) -> list[str]:
    """The files of a stage, as its record names them; hidden ones no reader looks at."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(p.as_posix() for p in paths if p.name != RECORD and not p.name.startswith("."))


def stage_hashes(folder: Path) -> dict[str, str]:
    """A hash of each file of a stage."""
    names = stage_file_names(folder)
    return dict(zip(names, file_hashes(folder / name for name in names), strict=True))


def write_record(folder: Path, content: Mapping[str, Any]) -> None:
    """Record what a stage is, with the hashes of its files."""
    record = sealed({**content, "files": stage_hashes(folder)})
    (folder / RECORD).write_text(json.dumps(record), encoding="utf-8")


def read_record(folder: Path) -> dict[str, Any] | None:
    """The record of a stage, unless there is none that is as it was written."""
    try:
        record = json.loads((folder / RECORD).read_bytes())
    except (OSError, ValueError):
        return None
    return record if is_intact(record) else None


def flaws(folder: Path, seal: str | None, dataset: str) -> list[str]:
    """What is wrong with a stage, file by file.

    ``seal`` is what the manifest says of it, None of a stage that was made later; ``dataset`` is
    the seal of the manifest.
    """
    if not folder.is_dir():
        return ["missing"]
    record = read_record(folder)
    if record is None:
        return [f"{RECORD}: {DIFFERS if (folder / RECORD).is_file() else 'missing'}"]
    mine = record.get("dataset") == dataset if seal is None else record[SEAL] == seal
    return list(file_flaws(folder, record)) if mine else [f"{RECORD}: {DIFFERS}, it is another's"]


def file_flaws(folder: Path, record: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the files of a stage."""
    found, stated = stage_hashes(folder), record["files"]
    for name in sorted(found.keys() | stated.keys()):
        if name not in found:
            yield f"{name}: missing"
        elif name not in stated:
            yield f"{name}: unknown, it was not written with the others"
        elif found[name] != stated[name]:
            yield f"{name}: {DIFFERS}"
