"""Clients as arrays of boxes, before they become tables: what both generators of overlays draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fanplan.workload.description import Description, TopicEntry
from fanplan.workload.generators.draws import names, zipf
from fanplan.workload.generators.generated import Generated
from fanplan.workload.generators.law import Axis, PublicationLaw
from fanplan.workload.space import PLAIN, NumberAttribute, Space, just_above

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
class Sent:
    """Publications: the position of the advertisement, the point, and the time in seconds."""

    advertisement: np.ndarray
    point: np.ndarray
    time: np.ndarray

    def __len__(self) -> int:
        return len(self.time)


def draw_boxes(
    rng: np.random.Generator, centre: np.ndarray, ranged: np.ndarray, shape: RangeShape
) -> tuple[np.ndarray, np.ndarray]:
    """Boxes around centres: a Zipf range where ``ranged``, else everything.

    Tajuddin (2011), section 5.4.2: ends are capped at the bounds of the space. They are rounded to
    a thousandth, so that the text of a filter is short and exact.
    """
    steps = int(shape.domain / shape.range_min)
    rank = 1 + rng.choice(steps, size=centre.shape, p=zipf(steps, shape.range_skew))
    half = rank * shape.range_min / 2
    centre = np.clip(centre, 0.0, shape.domain)
    lo = np.where(ranged, np.maximum(np.round(centre - half, 3), 0.0), 0.0)
    hi = np.where(ranged, np.minimum(np.round(centre + half, 3), shape.domain), shape.domain)
    return lo, np.where(hi == shape.domain, just_above(shape.domain), hi)


@dataclass(frozen=True)
class RangeShape:
    """The law of a range: ``range_min`` × a Zipf rank, at most the domain."""

    domain: float
    range_min: float
    range_skew: float


def draw_points(
    rng: np.random.Generator, population: Population, advertisement: np.ndarray
) -> np.ndarray:
    """A uniform point in the box of each advertisement."""
    boxes = population.advertisements
    lo, hi = boxes.lo[advertisement], boxes.hi[advertisement]
    point = lo + rng.random(lo.shape) * (hi - lo)
    return np.minimum(point, np.nextafter(hi, lo))  # rounding may reach the open end


def tables_of(population: Population, name: str, capacity: float, message_bytes: int) -> Generated:
    """The population as a workload; clients without a broker have no ``broker`` column."""
    axes = attributes(population)
    publishers = names("p", len(population.advertisements))
    subscribers = names("u", len(population.subscriptions))
    law = PublicationLaw(
        population.topics.take(pa.array(population.advertisements.topic)),
        population.rates,
        publishers,
        message_bytes,
        tuple(Axis(axis) for axis in axes),
        population.advertisements.lo,
        population.advertisements.hi,
    )
    advertised = clients("publisher", publishers, population, population.advertisements)
    tables = {
        "subscriptions": clients("subscriber", subscribers, population, population.subscriptions),
        "advertisements": advertised.append_column("rate", pa.array(population.rates)),
        "brokers": pa.table(
            {
                "broker": population.brokers,
                "capacity": pa.array(np.full(len(population.brokers), capacity)),
            }
        ),
    }
    return Generated(describe(name, axes), tables, law)


def attributes(population: Population) -> tuple[NumberAttribute, ...]:
    """The attributes ``a0``, ``a1``, … that all topics have."""
    dimensions = population.subscriptions.lo.shape[1]
    return tuple(NumberAttribute(f"a{i}", 0.0, population.domain) for i in range(dimensions))


def describe(name: str, axes: tuple[NumberAttribute, ...]) -> Description:
    """Every topic has all attributes, in cells of a tenth of the domain."""
    return Description(
        name=name,
        topic_syntax="nats",
        attributes={axis.name: axis for axis in axes},
        topics=(TopicEntry(">", 1),),
        spaces=(PLAIN, Space(axes, (10,) * len(axes))),
    )


def clients(role: str, who: pa.Array, population: Population, regions: Regions) -> pa.Table:
    """One row per client: its name, topic, filter and broker."""
    columns = {
        role: who,
        "topic": population.topics.take(pa.array(regions.topic)),
        "filter": pa.array(selectors(regions, population.domain), pa.string()),
    }
    if (regions.broker != NO_BROKER).all():
        columns["broker"] = population.brokers.take(pa.array(regions.broker))
    return pa.table(columns)


def selectors(regions: Regions, domain: float) -> list[str | None]:
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
