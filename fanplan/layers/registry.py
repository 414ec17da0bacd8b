"""The layers there are. To add one, make its folder and name it here."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

from fanplan.plan.section import SectionRecord
from fanplan.plan.stored import StoredPlan, read_plan

STORED = ("channels", "overlay", "marking", "groups", "delivery")
"""Layers by the names of their sections in plan.json, in the order in which they stand there."""


@cache
def records() -> dict[str, type[SectionRecord]]:
    """The sections that plan.json may have."""
    return {name: import_module(f"fanplan.layers.{name}.record").RECORD for name in STORED}


def load_plan(folder: Path) -> StoredPlan:
    """Open a plan folder; its record and the presence of its tables are checked at once."""
    return read_plan(folder, records())
