"""Clients as arrays of boxes, before they become tables: what the kinds with regions draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fanplan.workload.generators.draws import names
from fanplan.workload.generators.generated import (
    AxisLaw,
    Generated,
    PublicationLaw,
    describe,
    generated_brokers,
)
from fanplan.workload.space import NumberAttribute

NO_BROKER = -1


@dataclass(frozen=True, eq=False)
class Regions:
    """One box per client: ``lo <= x < hi`` in the space of its topic, and the client's broker.

    ``topic`` and ``broker`` are positions; ``lo`` and ``hi`` are clients × attributes.
    """

    topic: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    broker: np.ndarray

    def __len__(self) -> int:
        return len(self.topic)


@dataclass(frozen=True, eq=False)
class Population:
    """Subscribers with a subscription each, publishers with an advertisement and a rate each."""

    topics: pa.Array
    brokers: pa.Array
    domain: float
    subscriptions: Regions
    advertisements: Regions
    rates: np.ndarray
    """publications per second of each advertisement"""


@dataclass(frozen=True, eq=False)
class DrawnPublications:
    """Publications: the position of the advertisement, the point, and the time in seconds."""

    advertisement: np.ndarray
    point: np.ndarray
    time: np.ndarray

    def __len__(self) -> int:
        return len(self.time)


def as_workload(
    name: str,
    population: Population,
    capacity: float | np.ndarray,
    message_bytes: int,
    cells: int = 10,
) -> Generated:
    """The population as a workload, with this many cells per axis.

    Clients without a broker have no ``broker`` column.
    """
    dimensions = population.subscriptions.lo.shape[1]
    axes = tuple(NumberAttribute(f"a{i}", 0.0, population.domain) for i in range(dimensions))
    publishers = names("p", len(population.advertisements))
    subscribers = names("u", len(population.subscriptions))
    law = PublicationLaw(
        population.topics.take(pa.array(population.advertisements.topic)),
        population.rates,
        publishers,
        message_bytes,
        tuple(AxisLaw(axis) for axis in axes),
        population.advertisements.lo,
        population.advertisements.hi,
    )
    advertised = generated_clients("publisher", publishers, population, population.advertisements)
    wanted = generated_clients("subscriber", subscribers, population, population.subscriptions)
    tables = {
        "subscriptions": wanted,
        "advertisements": advertised.append_column("rate", pa.array(population.rates)),
        "brokers": generated_brokers(population.brokers, capacity),
    }
    return Generated(describe(name, axes, (cells,) * dimensions), tables, law)


def generated_clients(
    role: str, who: pa.Array, population: Population, regions: Regions
) -> pa.Table:
    """One row per client: its name, topic, filter and broker."""
    columns = {
        role: who,
        "topic": population.topics.take(pa.array(regions.topic)),
        "filter": pa.array(box_filters(regions, population.domain), pa.string()),
    }
    if (regions.broker != NO_BROKER).all():
        columns["broker"] = population.brokers.take(pa.array(regions.broker))
    return pa.table(columns)


def box_filters(regions: Regions, domain: float) -> list[str | None]:
    """Boxes as text; an axis that is not restricted is not mentioned, no filter is null."""
    rows = zip(regions.lo.tolist(), regions.hi.tolist(), strict=True)
    return [
        " AND ".join(
            f"a{axis} >= {lo} AND a{axis} {f'<= {domain}' if hi > domain else f'< {hi}'}"
            for axis, (lo, hi) in enumerate(zip(*box, strict=True))
            if lo > 0.0 or hi <= domain
        )
        or None
        for box in rows
    ]
