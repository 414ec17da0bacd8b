"""A dataset: the folder that ``ingest`` wrote."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fanplan.core.result import Result

if TYPE_CHECKING:
    from pyarrow import Table

    from fanplan.data.interest import InterestProblem
    from fanplan.data.reader import Manifest


PathLike = str | Path


@dataclass(frozen=True, repr=False)
class Dataset(Result):
    """What ``ingest`` wrote. Reading it needs no Spark.

    ``mended`` has what was wrong with it before, if it was damaged and ingested again.
    """

    path: Path
    mended: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def manifest(self) -> Manifest:
        from fanplan.data.reader import read_manifest

        return read_manifest(self.path)

    def __repr__(self) -> str:
        return f"Dataset({str(self.path)!r})"

    def bars(self) -> dict[str, float]:
        return {f"{table.name} kept": float(table.kept) for table in self.manifest.tables}

    def summary(self) -> dict[str, Any]:
        """What it says about itself, as JSON."""
        return self.manifest.summary() | {"mended": list(self.mended)}

    def interest(self, rows: Literal["class", "flow"] = "class") -> InterestProblem:
        """The interest problem, with a row per audience class or per flow."""
        from fanplan.data.interest import load_interest

        return load_interest(self.path, rows)

    def table(self, stage: str) -> Table:
        """A stage's table, read whole: fit for `quarantine` or `classes`, not for publications."""
        from fanplan.data.reader import read_stage

        return read_stage(self.path, stage)
