"""Plans that were stored before: their tables as frames, their figures, and questions to them."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from fanplan.core.errors import InputError, Problem, similar
from fanplan.data.dataset import PathLike
from fanplan.data.frames import FrameKind, as_frame
from fanplan.layers.registry import layers_of, load_plan
from fanplan.plan.made import plain_number
from fanplan.plan.stored import StoredPlan
from fanplan.verbs.ask import Questions
from fanplan.verbs.given import AnyDataset, dataset_at


@dataclass(frozen=True, repr=False)
class Plan(StoredPlan):
    """A plan folder. ``plan["flows"]`` is a table of it, as a frame of pandas."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of its tables."""
        return tuple(dict.fromkeys(table.name for table in self.record.tables()))

    def __getitem__(self, table: str) -> Any:
        return self.frame(table)

    def frame(self, table: str, kind: FrameKind = "pandas") -> Any:
        """A table as a frame of pandas, Polars or Arrow."""
        if table not in self.tables:
            remedy = similar(str(table), self.tables) or f"Its tables: {', '.join(self.tables)}"
            raise InputError(Problem(str(self.folder), f"has no table {table!r}", remedy))
        columns = next(t.names for t in self.record.tables() if t.name == table)
        return as_frame(self.read(table, tuple(columns)), kind)

    def summary(self) -> dict[str, Any]:
        """Its figures by layer, in the words of `compare`."""
        return {
            layer.name: {
                figure.name: value
                for figure in layer.figures
                if (value := figure.read(self)) is not None
            }
            for layer in layers_of(self)
        }

    def json(self) -> dict[str, Any]:
        """All that plan.json says."""
        return self.record.content()

    def ask(self, dataset: AnyDataset, kind: FrameKind = "pandas") -> Questions:
        """Questions to the plan, answered with the dataset that it was made for."""
        return Questions(self, dataset_at(dataset), kind)

    def __repr__(self) -> str:
        return f"Plan({str(self.folder)!r}, layers: {', '.join(self.record.layers)})"

    def _repr_html_(self) -> str:
        """The figures of each layer as a small table."""
        rows = "".join(
            f"<tr><td>{escape(layer)}</td><td>{escape(name)}</td>"
            f"<td style='text-align:right'>{escape(plain_number(value))}</td></tr>"
            for layer, figures in self.summary().items()
            for name, value in figures.items()
        )
        return f"<b>{escape(str(self.folder))}</b><table>{rows}</table>"


def open_plan(path: PathLike) -> Plan:
    """A plan that was stored before; an error if it is not whole."""
    stored = load_plan(Path(path))
    return Plan(stored.folder, stored.record)
