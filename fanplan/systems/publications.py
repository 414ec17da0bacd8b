"""The publications of a dataset, as they are sent in a trial."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Bools, Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.data.reader import read_manifest, read_stage, stage_batches
from fanplan.live.entry import EntryTables

BATCH_ROWS = 1 << 18


@dataclass(frozen=True, eq=False)
class Timed:
    """Publications in the order of their times: topic numbers, coordinates, and who sent them.

    ``publisher`` has positions in ``publishers``; who is not named is the empty name.
    """

    time: Floats
    publisher: Ints
    publishers: tuple[str, ...]
    topic: Longs
    x: Floats
    bytes: Longs

    @property
    def size(self) -> int:
        return len(self.topic)

    def only(self, own: Bools | slice) -> Timed:
        """Some of them."""
        return Timed(self.time[own], self.publisher[own], self.publishers, self.topic[own],
                         self.x[own], self.bytes[own])  # fmt: skip


def read_published(dataset: Path, tables: EntryTables, most: int | None = None) -> Timed:
    """Publications of a dataset, the first ``most`` by time; an error if it has none."""
    columns = columns_of(dataset, tables)
    if most is None:
        return published_of(read_stage(dataset, "publications", columns), tables)
    kept: pa.Table | None = None
    for batch in stage_batches(dataset, "publications", columns, BATCH_ROWS):
        rows = pa.Table.from_batches([batch])
        rows = rows if kept is None else pa.concat_tables([kept, rows])
        # No more than this many are ever held, however long the table is.
        kept = rows.take(pa.array(np.sort(by_time(rows)[:most])))
    return published_of(kept or read_stage(dataset, "publications", columns), tables)


def published_batches(dataset: Path, tables: EntryTables) -> Iterator[Timed]:
    """All of them, some at a time."""
    for batch in stage_batches(dataset, "publications", columns_of(dataset, tables), BATCH_ROWS):
        yield published_of(pa.Table.from_batches([batch]), tables)


def columns_of(dataset: Path, tables: EntryTables) -> list[str]:
    if "publications" not in read_manifest(dataset).stages:
        remedy = "Ingest a workload with a table publications"
        raise InputError(Problem(str(dataset), "has no publications to send", remedy))
    return ["time", "publisher", "topic", "bytes", *axes_of(tables)]


def axes_of(tables: EntryTables) -> list[str]:
    return [f"x{axis}" for axis in range(tables.lo.shape[1])]


def by_time(rows: pa.Table) -> Longs:
    """Positions of rows in the order of their times, of equal ones as they are stored."""
    order: Longs = np.argsort(pc.fill_null(rows["time"], 0.0).to_numpy(), kind="stable")
    return order


def published_of(rows: pa.Table, tables: EntryTables) -> Timed:
    """Rows of the stage in the order of their times."""
    order = by_time(rows)
    people = pc.fill_null(rows["publisher"], "").combine_chunks().dictionary_encode()
    topics = pc.index_in(rows["topic"], pa.array(tables.topics.names))
    x = np.empty((len(rows), tables.lo.shape[1]))
    for axis, name in enumerate(axes_of(tables)):
        x[:, axis] = rows[name].to_numpy()
    return Timed(
        pc.fill_null(rows["time"], 0.0).to_numpy()[order],
        people.indices.to_numpy().astype(np.int32)[order],
        tuple(people.dictionary.to_pylist()),
        topics.to_numpy().astype(np.int64)[order],
        x[order],
        pc.fill_null(rows["bytes"], 0).to_numpy().astype(np.int64)[order],
    )
