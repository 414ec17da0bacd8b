"""Routes and the times of their publications, as a dataset's stages have them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.data.reader import INGEST_AGAIN, read_manifest, read_stage, stage_batches
from fanplan.network.brokers import Routes

BATCH = 1 << 20

Key = tuple[int, bytes]


def times_known(dataset: Path) -> bool:
    """Whether traffic is that of publications, and each of them has a time."""
    manifest = read_manifest(dataset)
    if manifest.rates != "measured" or "publications" not in manifest.stages:
        return False
    batches = stage_batches(dataset, "publications", ("time",), BATCH)
    return all(batch.column(0).null_count == 0 for batch in batches)


def read_sendings(dataset: Path, stage: str, routes: Routes) -> tuple[Floats, Longs]:
    """Time in seconds and route of every publication, by time and then by route.

    Every route must have as many times as it has messages. O(publications × log).
    """
    table = read_stage(dataset, stage, ("source", "destinations", "times")).combine_chunks()
    lists, times = (_whole(table[name]) for name in ("destinations", "times"))
    number = {key: route for route, key in enumerate(keys(routes))}
    starts = _starts(lists)
    found = _keys(table["source"].to_numpy(), starts, lists.flatten().to_numpy())
    at = np.array([number.get(key, -1) for key in found], np.int64)
    counts = np.diff(_starts(times))
    total = np.bincount(at[at >= 0], counts[at >= 0], len(routes))
    if (at < 0).any() or (total != routes.messages).any():
        what = "does not have the publications of the dataset's routes"
        raise InputError(Problem(str(dataset / stage), what, INGEST_AGAIN))
    time, route = times.flatten().to_numpy(), np.repeat(at, counts)
    order = np.lexsort((route, time))
    return time[order], route[order]


def _whole(column: pa.ChunkedArray) -> pa.ListArray:
    return pa.concat_arrays(column.chunks)


def _starts(lists: pa.ListArray) -> Longs:
    sizes = lists.value_lengths().to_numpy()
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def keys(routes: Routes) -> list[Key]:
    """What tells routes apart: source and destinations."""
    return _keys(routes.source, routes.starts, routes.brokers)


def _keys(source: Ints, starts: Longs, brokers: Ints) -> list[Key]:
    ends = zip(source.tolist(), starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    return [(here, brokers[first:last].tobytes()) for here, first, last in ends]


def merged(routes: Routes) -> tuple[Routes, Longs]:
    """Routes with equal ends as one, and which of these each route has become."""
    number: dict[Key, int] = {}
    of = np.array([number.setdefault(key, len(number)) for key in keys(routes)], np.int64)
    first = np.full(len(number), -1, np.int64)
    first[of[::-1]] = np.arange(len(of))[::-1]
    lists = [routes.destinations(route) for route in first.tolist()]
    starts = np.concatenate(([0], np.cumsum([len(ends) for ends in lists]))).astype(np.int64)
    brokers = np.concatenate([np.empty(0, np.int32), *lists])
    messages, deliveries = np.zeros((2, len(first)))
    np.add.at(messages, of, routes.messages)
    np.add.at(deliveries, of, routes.deliveries)
    return Routes(routes.source[first], starts, brokers, messages, deliveries), of
