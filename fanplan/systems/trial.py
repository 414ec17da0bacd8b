"""Predicted beside measured: what a trial found, row by row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fanplan.core.arrays import Floats
from fanplan.core.folder import TRIAL, whole_folder
from fanplan.core.result import Result
from fanplan.systems.ways import Figures, Key


def percentiles(delays_ms: Floats) -> dict[str, float]:
    """Delays that half, nine of ten and all but one of a hundred do not exceed."""
    return {f"p{p}": float(np.percentile(delays_ms, p)) for p in (50, 90, 99) if len(delays_ms)}


class Row(NamedTuple):
    """One figure: what it is of, as predicted and as measured."""

    key: Key
    predicted: int
    measured: int

    @property
    def agrees(self) -> bool:
        return self.predicted == self.measured

    def json(self) -> dict[str, Any]:
        of, *names = self.key
        told = {"of": of, "names": names, "predicted": self.predicted, "measured": self.measured}
        return told | {"agrees": self.agrees}


@dataclass(frozen=True, repr=False)
class Tried(Result):
    """What a trial found.

    ``delays_ms`` are percentiles of the time from publishing to receiving, which nobody predicts.
    ``unmeasured`` says what the system has no counter for, ``notes`` what else happened.
    ``facts`` are figures of the run itself.
    """

    system: str
    plan: str
    rows: tuple[Row, ...]
    facts: Mapping[str, float] = field(default_factory=dict)
    delays_ms: Mapping[str, float] = field(default_factory=dict)
    unmeasured: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seal: str = ""
    """That of the plan."""

    @property
    def differences(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if not row.agrees)

    @property
    def ok(self) -> bool:
        """All that was measured is as predicted."""
        return not self.differences

    def verdict(self) -> str:
        """The result in a sentence."""
        if not self.differences:
            return f"All {len(self.rows):,} figures are as predicted."
        return f"{len(self.differences):,} of {len(self.rows):,} figures differ."

    def summary(self) -> dict[str, Any]:
        """What to read first: the result in a sentence, and figures of the run."""
        told = {"ok": self.ok, "system": self.system, "verdict": self.verdict()}
        return told | dict(self.facts) | {f"delay_{n}_ms": v for n, v in self.delays_ms.items()}

    def bars(self) -> Mapping[str, float]:
        return {f"{n} ms": value for n, value in self.delays_ms.items()}

    def notes_shown(self) -> tuple[str, ...]:
        return self.notes

    def totals(self) -> list[dict[str, Any]]:
        """Sums of rows of one kind, with how many of them agree."""
        found: dict[Key, list[Row]] = {}
        for row in self.rows:
            found.setdefault(kind_of(row.key), []).append(row)
        return [
            {
                "of": " ".join(kind),
                "predicted": sum(row.predicted for row in rows),
                "measured": sum(row.measured for row in rows),
                "agree": sum(row.agrees for row in rows),
                "rows": len(rows),
            }
            for kind, rows in sorted(found.items())
        ]

    def json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "system": self.system,
            "plan": self.plan,
            "seal": self.seal,
            "facts": dict(self.facts),
            "delays_ms": dict(self.delays_ms),
            "totals": self.totals(),
            "differences": [row.json() for row in self.differences],
            "rows": [row.json() for row in self.rows],
            "not_measurable": list(self.unmeasured),
            "notes": list(self.notes),
        }

    def save(self, out: Path, replace: bool = False) -> Path:
        """Write trial.json, whole or not at all."""
        with whole_folder(out, TRIAL, replace) as folder:
            text = json.dumps(self.json(), indent=2, allow_nan=False)
            (folder / TRIAL.sign).write_text(text + "\n", encoding="utf-8")
        return out


def kind_of(key: Key) -> Key:
    """What rows are summed by: links by how, subscribers and brokers by what, channels at all."""
    return (key[0],) if key[0] in ("channel", "member") else (key[0], key[-1])


def compared(predicted: Figures, measured: Figures) -> tuple[Row, ...]:
    """A row for all that was predicted or measured; what nobody predicted must not be."""
    return tuple(
        Row(key, predicted.get(key, 0), measured.get(key, 0))
        for key in sorted({*predicted, *measured})
    )
