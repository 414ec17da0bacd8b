"""Plans that were stored before: their tables as frames, their figures, and questions to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fanplan.core.errors import InputError, Problem, similar
from fanplan.core.result import Result, snake
from fanplan.data.frames import FrameKind, as_frame
from fanplan.layers.registry import layers_of, load_plan
from fanplan.plan.stored import StoredPlan
from fanplan.verbs.ask import Questions
from fanplan.verbs.given import AnyDataset, AnyPlan, dataset_at, plan_at


@dataclass(frozen=True, repr=False)
class Plan(Result, StoredPlan):
    """A plan folder. ``plan["flows"]`` is a table of it, as a frame of ``kind``.

    The name of a layer stands for its main table: ``channels`` for ``channel_flows``.
    """

    kind: FrameKind = "pandas"

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of its tables."""
        return tuple(dict.fromkeys(table.name for table in self.record.tables()))

    def __getitem__(self, table: str) -> Any:
        return self.frame(table, self.kind)

    def frame(self, table: str, kind: FrameKind = "pandas") -> Any:
        """A table as a frame of pandas, Polars or Arrow."""
        if table not in self.tables and table in self.record.sections:
            table = self.record.sections[table].main or table
        if table not in self.tables:
            known = (*self.tables, *self.record.sections)
            remedy = similar(str(table), known) or f"Its tables: {', '.join(self.tables)}"
            raise InputError(Problem(str(self.folder), f"has no table {table!r}", remedy))
        columns = next(t.names for t in self.record.tables() if t.name == table)
        return as_frame(self.read(table, tuple(columns)), kind)

    def summary(self) -> dict[str, Any]:
        """Its figures by layer, in the words of `compare`."""
        return {
            layer.name: {
                snake(figure.name): value
                for figure in layer.figures
                if (value := figure.read(self)) is not None
            }
            for layer in layers_of(self)
        }

    def json(self) -> dict[str, Any]:
        """All that plan.json says."""
        return self.record.content()

    def ask(self, dataset: AnyDataset, kind: FrameKind | None = None) -> Questions:
        """Questions to the plan, answered with the dataset that it was made for."""
        return Questions(self, dataset_at(dataset), kind or self.kind)

    def __repr__(self) -> str:
        return f"Plan({str(self.folder)!r}, layers: {', '.join(self.record.layers)})"

    def bars(self) -> dict[str, float]:
        """Its costs, and what they are held against."""
        return {
            f"{layer}: {name}": value
            for layer, figures in self.summary().items()
            for name, value in figures.items()
            if name in PICTURED
        }


PICTURED = ("total_cost", "naive_system", "bound", "cost", "link_messages")
"""Figures of layers that a notebook draws."""


def open_plan(path: AnyPlan, kind: FrameKind = "pandas") -> Plan:
    """A plan that was stored before; an error if it is not whole.

    Its tables and answers are frames of ``kind``: pandas, polars or arrow.
    """
    stored = load_plan(plan_at(path))
    return Plan(stored.folder, stored.record, kind)
