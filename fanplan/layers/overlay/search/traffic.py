"""Routes as a search over trees needs them: by their ends, and by broker."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fanplan.core.arrays import NONE, Floats, Ints, Longs
from fanplan.network.brokers import Routes


class Traffic(NamedTuple):
    """Routes by their ends: the source and the destinations, each broker once.

    The ends of route i are ``ends[starts[i]:starts[i + 1]]``, the source first. ``at`` and
    ``routes`` list the routes of each broker.
    """

    starts: Longs
    ends: Ints
    messages: Floats
    at: Longs
    routes: Ints


def traffic_of(routes: Routes, brokers: int) -> Traffic:
    """Routes with a link to cross; the others cost nothing on any tree."""
    sizes = np.diff(routes.starts)
    row = np.repeat(np.arange(len(routes)), sizes)
    away = routes.brokers != routes.source[row]
    kept = np.flatnonzero(np.bincount(row[away], minlength=len(routes)) > 0)
    number = np.full(len(routes), NONE)
    number[kept] = np.arange(len(kept))
    rows = np.concatenate((np.arange(len(kept)), number[row[away]]))
    order = np.argsort(rows, kind="stable")
    ends = np.concatenate((routes.source[kept], routes.brokers[away]))[order].astype(np.int32)
    by_broker = np.argsort(ends, kind="stable")
    return Traffic(
        starts_of(rows, len(kept)),
        ends,
        routes.messages[kept].astype(np.float64),
        starts_of(ends, brokers),
        rows[order][by_broker].astype(np.int32),
    )


def some_routes(routes: Routes, most_ends: int, seed: int) -> Routes:
    """All routes, or a random part of them with about so many ends and as many messages."""
    share = most_ends / max(len(routes.brokers) + len(routes), 1)
    if share >= 1:
        return routes
    chosen = np.random.default_rng((seed, 0)).random(len(routes)) < share
    part = chosen_routes(routes, chosen)
    return replace(part, messages=part.messages / share, deliveries=part.deliveries / share)


def chosen_routes(routes: Routes, chosen: NDArray[np.bool_]) -> Routes:
    """The routes with a mark."""
    sizes = np.diff(routes.starts)
    return Routes(
        routes.source[chosen],
        np.concatenate(([0], np.cumsum(sizes[chosen]))).astype(np.int64),
        routes.brokers[np.repeat(chosen, sizes)],
        routes.messages[chosen],
        routes.deliveries[chosen],
    )


def starts_of(keys: Ints, count: int) -> Longs:
    """Where each of ``count`` keys starts when sorted."""
    return np.concatenate(([0], np.cumsum(np.bincount(keys, minlength=count)))).astype(np.int64)
