"""Tiny streams to watch: a desk whose interest and traffic move."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

PLAIN = 12
"""Topics without attributes."""


def write_workload(folder: Path, attributes: bool = False) -> Path:
    """Twelve topics, eight subscribers in two desks; with attributes, quotes with filters too."""
    folder.mkdir(parents=True)
    rows = ["subscriber,topic,filter"]
    for user in range(8):
        half = range(PLAIN // 2) if user < 4 else range(PLAIN // 2, PLAIN)
        rows += [f"u{user},t{topic}," for topic in half]
        if attributes:
            rows.append(f"u{user},quotes,{'price >= 50' if user % 2 else 'price < 60'}")
    (folder / "subscriptions.csv").write_text("\n".join(rows) + "\n")
    text = 'name = "desk"\n'
    if attributes:
        text += '[attributes]\nprice = { type = "number", min = 0.0, max = 100.0 }\n'
        text += '[topics.quotes]\nattributes = ["price"]\n'
        text += "".join(f"[topics.t{topic}]\n" for topic in range(PLAIN))
    (folder / "workload.toml").write_text(text)
    (folder / "publications").mkdir()
    return folder


def write_window(
    folder: Path, window: int, seconds: float = 10, attributes: bool = False, swapped: bool = False
) -> Path:
    """The publications of a window, renamed into place."""
    draw = np.random.default_rng(window)
    rates = np.arange(PLAIN) + 1 if not swapped else np.arange(PLAIN)[::-1] * 3 + 1
    lines = []
    for topic, rate in enumerate(rates):
        for _ in range(int(rate)):
            time = (window + draw.random() * 0.999) * seconds
            lines.append({"time": time, "topic": f"t{topic}", "bytes": 100})
    if attributes:
        for price in draw.integers(0, 100, 20).tolist():
            time = (window + draw.random() * 0.999) * seconds
            lines.append({"time": time, "topic": "quotes", "bytes": 10, "price": price})
    return put(folder / "publications" / f"w{window:04d}.jsonl", lines)


def write_changes(folder: Path, name: str, changes: list[dict[str, object]]) -> Path:
    return put(folder / "changes" / f"{name}.jsonl", changes)


def put(path: Path, lines: list[dict[str, object]]) -> Path:
    """A file of a stream, renamed into place, some milliseconds newer than all that are there.

    Spark takes files by their time in milliseconds, and of equal ones any first.
    """
    path.parent.mkdir(exist_ok=True)
    aside = path.with_name(f".{path.name}")
    aside.write_text("".join(json.dumps(line) + "\n" for line in lines))
    newest = max((f.stat().st_mtime_ns for f in path.parent.parent.glob("*/[!.]*")), default=0)
    time = max(aside.stat().st_mtime_ns, newest + 2_000_000)
    os.utime(aside, ns=(time, time))
    return aside.rename(path)


def decided(state: Path) -> dict[str, bytes]:
    """All that a watch came to, byte by byte."""
    files = sorted(file for file in (state / "versions").rglob("*") if file.is_file())
    # Spark gives the files of a stage names at random; what is planned has none of them.
    kept = [file for file in files if "dataset" not in file.relative_to(state).parts]
    found = {str(file.relative_to(state)): file.read_bytes() for file in kept}
    return found | {"decisions": (state / "decisions.jsonl").read_bytes()}
