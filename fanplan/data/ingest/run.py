"""What every step of one ingest shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from fanplan.core.tables import Table
from fanplan.data.ingest.store import Stage, StageStore
from fanplan.data.quarantine import LossRule
from fanplan.data.read.plain import Plainly
from fanplan.data.read.rows import read_rows
from fanplan.data.read.sources import TableSource
from fanplan.data.sizes import WIDE_BYTES, fit_session, is_small
from fanplan.workload.description import Description, to_toml


@dataclass(frozen=True)
class IngestRun:
    """What every step of one ingest shares."""

    spark: SparkSession
    store: StageStore
    description: Description
    sources: Mapping[str, TableSource]
    losses: LossRule

    @property
    def reading(self) -> str:
        """The part of the description that reading depends on: grid choices do not matter to it."""
        spaces = tuple(replace(s, cells=(1,) * s.dimensions) for s in self.description.spaces)
        return to_toml(
            replace(
                self.description,
                name="",
                spaces=spaces,
                grid="uniform",
                cover="overlap",
                rates=None,
                seconds=None,
            )
        )

    def seen(self, rows: int) -> int | None:
        """How many rows a query is set for: as for many if tables of few have wide rows."""
        few = (source.size for source in self.sources.values() if is_small(source.rows))
        return None if sum(few) > WIDE_BYTES else rows

    def stage(
        self,
        table: Table,
        build: Callable[[], DataFrame],
        inputs: Sequence[Stage | TableSource],
        *,
        params: Any = None,
    ) -> Stage:
        """A stage of ours: its key follows from its inputs and parameters."""
        keys = [item.key for item in inputs]
        fit_session(self.spark, self.seen(sum(item.rows for item in inputs)))
        return self.store.run(table, params={"": params}, inputs=keys, build=build)

    def table_stage(
        self,
        given: Table,
        build: Callable[[], DataFrame],
        inputs: Sequence[Stage] = (),
        *,
        kept: Table | None = None,
        plain: Path | None = None,
    ) -> Stage:
        """A ``given`` table: its rows are ``kept`` or quarantined, and none is lost.

        Files that are in the folder ``plain`` once it is built are kept rows too.
        """
        source = self.sources[given.name]
        fit_session(self.spark, self.seen(source.rows + sum(stage.rows for stage in inputs)))
        return self.store.run(
            kept or given,
            params={"": self.reading},
            inputs=[source.key, *(stage.key for stage in inputs)],
            build=build,
            split=True,
            rows_in=source.rows,
            plain=plain,
        )

    def read(self, stage: Stage) -> DataFrame:
        return stage.read(self.spark)

    def rows(self, table: Table, points: Path | None = None) -> DataFrame:
        """The annotated rows of an input table; see `read_rows` for ``points``."""
        source = self.sources[table.name]
        plainly = None if points is None else Plainly(points)
        return read_rows(self.spark, source, table, self.description, plainly)
