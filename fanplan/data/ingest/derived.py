"""Stages made on demand from a finished dataset, and kept beside its own.

They are found again as long as the dataset stays what it is: a new ingest puts a new folder in its
place, without them.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import locked, recover, remove
from fanplan.core.progress import Progress, StageProgress
from fanplan.core.tables import Table
from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.data.ingest import store as stages
from fanplan.data.ingest.cells import GridRef, with_cells
from fanplan.data.ingest.exact import SelectorData, with_signatures
from fanplan.data.reader import Manifest, read_manifest, verified
from fanplan.data.sizes import read_folder
from fanplan.data.spark import settle

AGAIN = "Run it again when that one has ended"


def grid_of(dataset: Path, manifest: Manifest) -> GridRef:
    path, topics = str(verified(dataset, "grid")), manifest.stages["topics"]
    return GridRef(path, manifest.key, topics, manifest.dimensions)


def placed(points: DataFrame, dataset: Path, manifest: Manifest) -> DataFrame:
    """Points with the cell, or the signature of the audience, that makes their flow."""
    if not (manifest.matched and manifest.dimensions):
        return with_cells(points, grid_of(dataset, manifest))
    regions, subscribers = (str(verified(dataset, name)) for name in ("regions", "subscribers"))
    selectors = SelectorData(regions, subscribers, manifest.key, manifest.dimensions)
    return with_signatures(points, selectors)


@dataclass(frozen=True)
class Derived:
    """A finished dataset, and how to add stages to it. ``session`` is asked for when needed."""

    session: Callable[[], SparkSession]
    dataset: Path
    progress: Progress

    @cached_property
    def manifest(self) -> Manifest:
        return read_manifest(self.dataset)

    @property
    def grid(self) -> GridRef:
        return grid_of(self.dataset, self.manifest)

    def placed(self, points: DataFrame) -> DataFrame:
        """Points with their place in a column ``cell``: with their topic that of their flow."""
        return placed(points, self.dataset, self.manifest)

    def read(self, name: str) -> DataFrame:
        """A stage of the dataset."""
        return read_folder(self.session(), verified(self.dataset, name))

    def has(self, name: str) -> bool:
        return name in self.manifest.stages

    def stage(self, table: Table, params: Any, build: Callable[[Path], DataFrame]) -> None:
        """Make a stage unless it is there with the same parameters, or another run makes it.

        ``build`` gets an empty folder for tables on the way; it is removed at the end.
        """
        key = stages.stage_key(table, {"": params}, [self.manifest.inputs])
        with self.progress.stage(table.name) as told:
            if self._has(table, key):
                told.reused()
            else:
                self._make(table, key, build, told)
            told.rows(stages.count_rows(self.dataset / table.name))

    def _has(self, table: Table, key: str) -> bool:
        return stages.is_whole(self.dataset / table.name, key, self.manifest.seal)

    def _make(
        self, table: Table, key: str, build: Callable[[Path], DataFrame], told: StageProgress
    ) -> None:
        """Make a stage when no other run makes one, unless that was this one."""
        path, others = self.dataset / table.name, list[str]()
        self._require_writable(table)

        def waits(other: str) -> None:
            told.note(f"comes after {other}")
            others.append(other)

        with locked(self.dataset, waits):
            self._require_same()
            if self._has(table, key):
                told.reused()
                return
            if others and path.exists():
                # The other run may still read it, or make further stages from it.
                what = f"{others[-1]} works on it, and its {table.name} has other options"
                raise InputError(Problem(str(self.dataset), what, AGAIN))
            with self.scratch() as folder:
                recover(path)
                stages.write_stage(path, key, build(folder), table, dataset=self.manifest.seal)

    def _require_writable(self, table: Table) -> None:
        """Also where the lock is, which lies beside the dataset."""
        if not all(os.access(folder, os.W_OK) for folder in (self.dataset, self.dataset.parent)):
            what = f"cannot be written, and is to keep the further stage {table.name}"
            raise InputError(Problem(str(self.dataset), what, "Copy it to where you may write"))

    def _require_same(self) -> None:
        """What was read of the dataset so far must be of the one that is there."""
        if read_manifest(self.dataset).seal != self.manifest.seal:
            what = "was ingested anew while this run was at work"
            raise InputError(Problem(str(self.dataset), what, "Run it again"))

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder of a name that was never used: workers remember what they read by its path."""
        for left in self.dataset.glob(".*.tmp"):
            sweep_work(left)
        folder = self.dataset / f".{uuid.uuid4().hex}.tmp"
        with locked(folder):
            folder.mkdir()
            try:
                yield folder
                settle()
            finally:
                remove(folder)


def sweep_work(folder: Path) -> None:
    """Remove the work of a run that died; that of one that lives is locked."""
    with suppress(InputError), locked(folder):
        remove(folder)


def derived(dataset: Dataset, engine: Engine) -> Derived:
    """The dataset, ready for further stages; Spark starts when one is made."""
    rows = sum(dataset.manifest.stages.values())
    return Derived(partial(engine.session, rows), dataset.path.absolute(), engine.progress)
