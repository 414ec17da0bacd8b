"""What passes each broker under a design: on channels, in groups, directly, or by default."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from fanplan.core.arrays import Longs
from fanplan.layers.delivery.report.ways import CHANNEL, DIRECT, HOP, Ways
from fanplan.layers.overlay.report.passages import Passages
from fanplan.network.brokers import OverlayProblem


def delivering(ways: Ways, channels: bool) -> Passages:
    """Every delivery to the home broker; with channels to where a channel of the domain begins.

    That is its broker nearest to the entry, or the entry itself if it is in the domain. What is
    sent directly passes no broker, and is left out then.
    """
    problem = ways.stored.problem
    way = ways.to_person if channels else np.full(len(ways.row), HOP)
    kept = way != DIRECT
    home = problem.home[ways.person[kept]].astype(np.int64)
    brokers = len(problem.brokers)
    # A place is a home broker, or beyond these the domain whose channel delivers.
    place = np.where(way[kept] == CHANNEL, brokers + problem.domain[home], home)
    row, place, people = counted(ways.row[kept], place, brokers + problem.domains)
    parcel, at = parcels_of(problem.row, row, problem.interest.size)
    root = problem.trees.root[problem.tree[parcel]].astype(np.int64)
    target = place[at]
    heard = np.flatnonzero(target >= brokers)
    domain, start = target[heard] - brokers, root[heard]
    gateway = problem.gateways[problem.tree[parcel[heard]], domain]
    target[heard] = np.where(problem.domain[start] == domain, start, gateway)
    return Passages(root, target, problem.messages[parcel] * people[at])


def counted(row: Longs, place: Longs, places: int) -> tuple[Longs, Longs, Longs]:
    """Different pairs of class and place, ascending, and how often each comes."""
    key, times = np.unique(row * places + place, return_counts=True)
    return key // places, key % places, times


def parcels_of(parcel_row: NDArray[np.int32], row: Longs, size: int) -> tuple[Longs, Longs]:
    """Every parcel with each entry of its class: (parcel, position in ``row``)."""
    starts = np.searchsorted(row, np.arange(size + 1))
    sizes = np.diff(starts)[parcel_row]
    parcel = np.repeat(np.arange(len(parcel_row)), sizes)
    within = np.arange(len(parcel)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return parcel, starts[parcel_row[parcel]] + within


def positions(ways: Ways, problem: OverlayProblem) -> NDArray[np.int64]:
    """Of each broker that delivery numbers its position in the overlay, which may use only some."""
    found = pc.index_in(ways.stored.problem.brokers, problem.brokers).fill_null(-1)
    result: NDArray[np.int64] = found.to_numpy().astype(np.int64)
    return result


def left_to_brokers(
    ways: Ways, problem: OverlayProblem, position: NDArray[np.int64]
) -> OverlayProblem:
    """The same overlay with the traffic that channels and direct unicast do not carry."""
    at, routes = position.astype(np.int32), ways.routes
    return replace(
        problem, routes=replace(routes, source=at[routes.source], brokers=at[routes.brokers])
    )
