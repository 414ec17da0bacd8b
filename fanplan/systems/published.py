"""The publications of a dataset, as they are sent in a trial."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Bools, Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.data.reader import read_manifest, read_stage
from fanplan.live.entry import EntryTables


@dataclass(frozen=True, eq=False)
class Published:
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

    def first(self, most: int) -> Published:
        """The first of them."""
        return self.only(slice(most))

    def only(self, own: Bools | slice) -> Published:
        """Some of them."""
        return Published(self.time[own], self.publisher[own], self.publishers, self.topic[own],
                         self.x[own], self.bytes[own])  # fmt: skip


def read_published(dataset: Path, tables: EntryTables) -> Published:
    """All publications of a dataset; an error if it has none."""
    if "publications" not in read_manifest(dataset).stages:
        remedy = "Ingest a workload with a table publications"
        raise InputError(Problem(str(dataset), "has no publications to send", remedy))
    axes = [f"x{axis}" for axis in range(tables.lo.shape[1])]
    rows = read_stage(dataset, "publications", ("time", "publisher", "topic", "bytes", *axes))
    time = pc.fill_null(rows["time"], 0.0).to_numpy()
    order = np.argsort(time, kind="stable")
    people = pc.fill_null(rows["publisher"], "").combine_chunks().dictionary_encode()
    topics = pc.index_in(rows["topic"], pa.array(tables.topics.names))
    x = np.empty((len(rows), len(axes)))
    for axis, name in enumerate(axes):
        x[:, axis] = rows[name].to_numpy()
    return Published(
        time[order],
        people.indices.to_numpy().astype(np.int32)[order],
        tuple(people.dictionary.to_pylist()),
        topics.to_numpy().astype(np.int64)[order],
        x[order],
        pc.fill_null(rows["bytes"], 0).to_numpy().astype(np.int64)[order],
    )
