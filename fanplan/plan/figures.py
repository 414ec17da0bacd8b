"""Figures of stored plans that are set side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow.parquet as pq

from fanplan.plan.section import SectionRecord
from fanplan.plan.stored import StoredPlan

Better = Literal["less", "more", ""]


@dataclass(frozen=True)
class Figure:
    """One line of a comparison.

    ``better`` is for what a person would choose a plan by: not for sizes, nor for parts of a cost,
    which are traded against each other. ``weighed``: it means something else under other weights.
    ``scope`` tells what it counts; a best is marked only among plans where that is the same.
    """

    name: str
    read: Callable[[StoredPlan], float | None]
    better: Better = ""
    weighed: bool = False
    scope: Callable[[StoredPlan], str] = lambda plan: ""


def recorded_figure(kind: type[SectionRecord], *keys: str) -> Callable[[StoredPlan], float | None]:
    """Reads a number of a layer's section of plan.json."""

    def read(plan: StoredPlan) -> float | None:
        found: Any = plan.section(kind)
        for key in keys:
            found = found[key] if isinstance(found, dict) else getattr(found, key)
        return float(found)

    return read


def table_rows(table: str) -> Callable[[StoredPlan], float | None]:
    """Counts the rows of a table."""
    return lambda plan: float(pq.read_metadata(plan.path(table)).num_rows)


def figures_of_ledger(kind: type[SectionRecord], better: dict[str, Better]) -> Iterator[Figure]:
    """Entries of the ledger of a section."""
    for name, which in better.items():
        yield Figure(name, recorded_figure(kind, "ledger", name), which)
