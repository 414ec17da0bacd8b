"""The messages that enter a simulation, and when: drawn, or as a dataset's stages have them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Floats, Longs, starts_of
from fanplan.core.errors import InputError, Problem
from fanplan.data.reader import INGEST_AGAIN, read_manifest, read_stage, stage_batches
from fanplan.network.brokers import EndKey, Routes, end_keys

BATCH = 1 << 20
"""Publications whose times are looked at together."""

"""What tells routes apart: source and destinations."""


@dataclass(frozen=True, eq=False)
class Messages:
    """Message i enters at ``time_ms[i]`` at the source of route ``route[i]``.

    A message with ``control`` set travels like a publication and loads the same brokers and links,
    but goes first, is counted apart, and its arrivals are no deliveries.
    """

    time_ms: Floats
    route: Longs
    control: np.ndarray

    def __post_init__(self) -> None:
        if not len(self.time_ms) == len(self.route) == len(self.control):
            what = f"{len(self.time_ms)} times, {len(self.route)} routes, {len(self.control)} marks"
            raise InputError(Problem("messages", what, "Give as many of each"))
        if not (np.isfinite(self.time_ms) & (self.time_ms >= 0)).all():
            what = "a time is negative or not finite"
            raise InputError(Problem("messages", what, "Give milliseconds from 0"))

    def __len__(self) -> int:
        return len(self.route)

    def in_order(self) -> Messages:
        """By time; at one time control messages first, the rest as they are."""
        order = np.lexsort((~self.control, self.time_ms))
        return Messages(self.time_ms[order], self.route[order], self.control[order])


def as_publications(time_ms: Floats, route: Longs) -> Messages:
    """Messages that are all publications."""
    time = np.asarray(time_ms, np.float64)
    return Messages(time, np.asarray(route, np.int64), np.zeros(len(route), bool))


def publications_of(routes: Routes, seconds: float, seed: int) -> Messages:
    """As many publications as the routes have messages, at random times of the window.

    Where a total is no whole number, the rest is the chance of one more. O(messages).
    """
    rest, timing = (np.random.default_rng((seed, purpose)) for purpose in range(2))
    count = np.floor(routes.messages + rest.random(len(routes))).astype(np.int64)
    route = np.repeat(np.arange(len(routes)), count)
    return as_publications(timing.uniform(0.0, 1000.0 * seconds, len(route)), route)


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
    lists, times = (pa.concat_arrays(table[name].chunks) for name in ("destinations", "times"))
    number = {key: route for route, key in enumerate(route_keys(routes))}
    starts = _list_starts(lists)
    found = end_keys(table["source"].to_numpy(), starts, lists.flatten().to_numpy())
    at = np.array([number.get(key, -1) for key in found], np.int64)
    counts = np.diff(_list_starts(times))
    total = np.bincount(at[at >= 0], counts[at >= 0], len(routes))
    if (at < 0).any() or (total != routes.messages).any():
        what = "does not have the publications of the dataset's routes"
        raise InputError(Problem(str(dataset / stage), what, INGEST_AGAIN))
    time, route = times.flatten().to_numpy(), np.repeat(at, counts)
    order = np.lexsort((route, time))
    return time[order], route[order]


def _list_starts(lists: pa.ListArray) -> Longs:
    return starts_of(lists.value_lengths().to_numpy())


def route_keys(routes: Routes) -> list[EndKey]:
    return end_keys(routes.source, routes.starts, routes.brokers)


def merged_routes(routes: Routes) -> tuple[Routes, Longs]:
    """Routes with equal ends as one, and which of these each route has become."""
    number: dict[EndKey, int] = {}
    of = np.array([number.setdefault(key, len(number)) for key in route_keys(routes)], np.int64)
    first = np.full(len(number), -1, np.int64)
    first[of[::-1]] = np.arange(len(of))[::-1]
    lists = [routes.destinations(route) for route in first.tolist()]
    starts = starts_of([len(ends) for ends in lists])
    brokers = np.concatenate([np.empty(0, np.int32), *lists])
    messages, deliveries = np.zeros((2, len(first)))
    np.add.at(messages, of, routes.messages)
    np.add.at(deliveries, of, routes.deliveries)
    return Routes(routes.source[first], starts, brokers, messages, deliveries), of
