"""Publishers and subscribers that have no broker yet, after section 6.4.2 of Tajuddin (2011).

All share one topic with two attributes. The thesis gives the sizes and the rates' law but no law of
the regions. Here centres are uniform and ranges those of section 5.4.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fanplan.core.options import option
from fanplan.workload.generators.draws import names, streams, zipf
from fanplan.workload.generators.generated import Generated, Kind
from fanplan.workload.generators.population import (
    NO_BROKER,
    Population,
    Regions,
    Sent,
    draw_boxes,
    draw_points,
    tables_of,
)
from fanplan.workload.generators.ranged import RangedParams


@dataclass(frozen=True)
class ClientsParams(RangedParams):
    """Table 6.2 of the thesis, where a time unit is a second here."""

    rate: float = option(1.0, "rate of the slowest publishers, messages/s", above=0)
    advertisements: int = option(600, "publishers, with an advertisement each", at_least=1)
    subscriptions_each: int = option(3, "subscriptions per advertisement", at_least=1)
    brokers: int = option(1000, "brokers that may be used", at_least=1)
    attributes: int = option(2, "attributes of the topic", at_least=1, at_most=16)
    rate_ranks: int = option(10, "the fastest publishers are this many times faster", at_least=1)
    rate_skew: float = option(0.8, "Zipf exponent of the rates", at_least=0)


def generate(params: ClientsParams, seed: int) -> Generated:
    """Clients without brokers, and brokers without clients, as tables; O(clients)."""
    return tables_of(populate(params, seed), "clients", params.capacity, params.message_bytes)


def populate(params: ClientsParams, seed: int) -> Population:
    """The clients of a seed as arrays, for those who need no files."""
    subscribing, advertising, rating = streams(seed, 3)
    count = params.advertisements
    rank = 1 + rating.choice(params.rate_ranks, count, p=zipf(params.rate_ranks, params.rate_skew))
    return Population(
        topics=names("content", 1),
        brokers=names("b", params.brokers),
        domain=params.domain,
        subscriptions=draw_regions(params, subscribing, count * params.subscriptions_each),
        advertisements=draw_regions(params, advertising, count),
        rates=params.rate * rank,
    )


def draw_regions(params: ClientsParams, rng: np.random.Generator, count: int) -> Regions:
    """Boxes with uniform centres, all attributes restricted."""
    size = (count, params.attributes)
    centre = rng.uniform(0.0, params.domain, size)
    lo, hi = draw_boxes(rng, centre, np.ones(size, bool), params.shape)
    return Regions(np.zeros(count, np.int64), lo, hi, np.full(count, NO_BROKER))


def publications(population: Population, seconds: float, seed: int) -> Sent:
    """Every publisher at its own even pace for ``seconds``, from a random start; by time.

    Tajuddin (2011), section 6.4.1: five messages per time unit are one every 200 ticks.
    """
    starting, placing = streams(seed, 2)
    phase = starting.random(population.rates.size)
    count = np.ceil(population.rates * seconds - phase).astype(np.int64)
    advertisement = np.repeat(np.arange(count.size), count)
    number = np.arange(advertisement.size) - np.repeat(np.cumsum(count) - count, count)
    time = (number + phase[advertisement]) / population.rates[advertisement]
    order = np.argsort(time, kind="stable")
    point = draw_points(placing, population, advertisement)
    return Sent(advertisement[order], point[order], time[order])


KIND = Kind("clients", "clients to be given brokers", ClientsParams, generate)
