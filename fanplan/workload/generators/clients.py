"""Publishers and subscribers of regions, after sections 5.4.2 and 6.4.2 of Tajuddin (2011).

*brokers*: clients at brokers. Every broker prefers one of a few classes, and so do its clients: a
bias factor says how many. A class is a topic, and the other attributes are those of all topics.

*clients*: clients that have no broker yet, in the content space of section 5.4.2 with two
attributes. Table 6.2 has rates by Zipf's law without its exponent: 2 gives the 300 brokers that
section 6.4.7 has for 2,400 clients, 0.8 about twice as many.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fanplan.core.errors import Problem
from fanplan.core.options import option
from fanplan.workload.generators.draws import names, streams, with_mean, zipf
from fanplan.workload.generators.generated import Generated, GeneratorParams, WorkloadKind
from fanplan.workload.generators.population import (
    NO_BROKER,
    DrawnPublications,
    Population,
    Regions,
    as_workload,
)
from fanplan.workload.space import just_above
from fanplan.workload.tables import LEAST_RATE

Ends = tuple[np.ndarray, np.ndarray]
"""The low and the high ends of boxes, clients × attributes each."""


@dataclass(frozen=True)
class RangedParams(GeneratorParams):
    """What Tables 5.1 and 6.2 have in common: the ranges of regions, and what a broker can do."""

    domain: float = option(1000.0, "attribute values run from 0 to this", above=0)
    range_min: float = option(10.0, "smallest range", at_least=0.01)
    range_skew: float = option(0.8, "Zipf exponent of the ranges", at_least=0)
    capacity: float = option(1000.0, "capacity of a broker, messages/s", above=0)

    def relations(self) -> Iterator[Problem]:
        if self.range_min > self.domain:
            what = f"{self.range_min} does not fit into a domain of {self.domain}"
            yield Problem("range_min", what, "Give a smaller range or a larger domain")


def draw_boxes(
    params: RangedParams, rng: np.random.Generator, centre: np.ndarray, ranged: np.ndarray
) -> Ends:
    """Boxes around centres: where ``ranged``, ``range_min`` × a Zipf rank, else everything.

    Section 5.4.2: ends are capped at the bounds of the space. They are rounded to a thousandth, so
    that the text of a filter is short and exact.
    """
    steps = int(params.domain / params.range_min)
    rank = 1 + rng.choice(steps, size=centre.shape, p=zipf(steps, params.range_skew))
    half = rank * params.range_min / 2
    centre = np.clip(centre, 0.0, params.domain)
    lo = np.where(ranged, np.maximum(np.round(centre - half, 3), 0.0), 0.0)
    hi = np.where(ranged, np.minimum(np.round(centre + half, 3), params.domain), params.domain)
    return lo, np.where(hi == params.domain, just_above(params.domain), hi)


def draw_points(
    rng: np.random.Generator, population: Population, advertisement: np.ndarray
) -> np.ndarray:
    """A uniform point in the box of each advertisement."""
    boxes = population.advertisements
    lo, hi = boxes.lo[advertisement], boxes.hi[advertisement]
    point = lo + rng.random(lo.shape) * (hi - lo)
    result: np.ndarray = np.minimum(point, np.nextafter(hi, lo))  # rounding may reach the open end
    return result


# ---- clients at brokers


@dataclass(frozen=True)
class BrokersParams(RangedParams):
    """Table 5.1 of the thesis; ``rate`` is the mean rate of an advertisement."""

    brokers: int = option(450, "number of brokers", at_least=2)
    subscriptions: int = option(4500, "number of subscriptions", at_least=1)
    advertisements: int = option(1500, "number of advertisements", at_least=1)
    classes: int = option(4, "number of classes, each a topic", at_least=1)
    attributes: int = option(4, "attributes beside the class", at_least=1, at_most=16)
    bias: float = option(
        0.75, "chance that a client's broker prefers its class", at_least=0, at_most=1
    )
    centre_sd: float = option(3.0, "standard deviation of centres around their mean", at_least=0)
    broker_sd: float = option(
        3.0, "standard deviation of publishers around a third of brokers", at_least=0
    )
    same_class: bool = option(True, "advertisements prefer the class that subscriptions prefer")

    def relations(self) -> Iterator[Problem]:
        if self.advertisements < self.brokers:
            what = f"{self.advertisements} do not give each of {self.brokers} brokers one"
            yield Problem("advertisements", what, "Give at least as many as brokers")
        yield from super().relations()


def generate_brokers(params: BrokersParams, seed: int) -> Generated:
    """Clients at brokers, as tables; O(clients × attributes)."""
    made = populate_brokers(params, seed)
    return as_workload("brokers", made, params.capacity, params.message_bytes)


def populate_brokers(params: BrokersParams, seed: int) -> Population:
    """The clients of a seed as arrays, for those who need no files."""
    means, preferring, subscribing, advertising = streams(seed, 4)
    mean = means.uniform(0.0, params.domain, params.attributes)
    preference = preferring.integers(0, params.classes, params.brokers)
    offered = preference if params.same_class else other_classes(params, preferring, preference)
    advertisements = draw_advertisements(params, advertising, mean, offered)
    rates = with_mean(draw_shares(params, advertisements.broker), params.rate)
    return Population(
        topics=names("class", params.classes),
        brokers=names("b", params.brokers),
        domain=params.domain,
        subscriptions=draw_subscriptions(params, subscribing, mean, preference),
        advertisements=advertisements,
        # The ends of the Gaussian are rates that no table may have.
        rates=np.where(rates < LEAST_RATE, 0.0, rates),
    )


def draw_subscriptions(
    params: BrokersParams, rng: np.random.Generator, mean: np.ndarray, preference: np.ndarray
) -> Regions:
    """Classes by a uniform law, brokers by the bias, uniformly among those that qualify."""
    count = params.subscriptions
    topic = rng.integers(0, params.classes, count)
    lo, hi = draw_ranges(params, rng, mean, count)
    own = rng.random(count) < params.bias
    place = rng.random(count)
    broker = np.empty(count, np.int64)
    for one in range(params.classes):
        for prefers in (True, False):
            mine = (topic == one) & (own == prefers)
            group = qualified_brokers(preference, one, prefers)
            broker[mine] = group[(place[mine] * group.size).astype(np.int64)]
    return Regions(topic, lo, hi, broker)


def draw_advertisements(
    params: BrokersParams, rng: np.random.Generator, mean: np.ndarray, preference: np.ndarray
) -> Regions:
    """One for each broker, of any class; the rest as subscriptions, but brokers by a Gaussian
    around one third of those that qualify.

    "A minimum of one advertisement was assigned to each broker, with the remaining being
    distributed using the same bias scheme": the first is outside of it.
    """
    count, brokers = params.advertisements, params.brokers
    topic = rng.integers(0, params.classes, count)
    lo, hi = draw_ranges(params, rng, mean, count)
    own = rng.random(count) < params.bias
    broker = np.arange(count)
    offset = rng.normal(0.0, params.broker_sd, count)
    for i in range(brokers, count):
        group = qualified_brokers(preference, topic[i], own[i])
        broker[i] = group[near_third(group.size, offset[i])]
    return Regions(topic, lo, hi, broker)


def other_classes(
    params: BrokersParams, rng: np.random.Generator, preference: np.ndarray
) -> np.ndarray:
    """For each broker a class that it does not prefer; the same if there is but one."""
    step = rng.integers(1, max(params.classes, 2), preference.size)
    result: np.ndarray = (preference + step) % params.classes
    return result


def qualified_brokers(preference: np.ndarray, topic: int, prefers: bool) -> np.ndarray:
    """Brokers that prefer a class, or those that do not; all if there are none."""
    group = np.flatnonzero((preference == topic) == prefers)
    return group if group.size else np.arange(preference.size)


def near_third(size: int, offset: float) -> int:
    """A position at a third of a row, moved by an offset and kept in the row."""
    return int(np.clip(np.rint(size / 3 + offset), 0, size - 1))


def draw_ranges(
    params: BrokersParams, rng: np.random.Generator, mean: np.ndarray, count: int
) -> Ends:
    """Boxes with at least one range: every set of restricted attributes but the empty one.

    That is the law of an even chance for each attribute, given that one is restricted.
    """
    subset = rng.integers(1, 2**params.attributes, count)
    ranged = (subset[:, None] >> np.arange(params.attributes)) & 1 == 1
    centre = rng.normal(mean, params.centre_sd, (count, params.attributes))
    return draw_boxes(params, rng, centre, ranged)


def draw_shares(params: BrokersParams, broker: np.ndarray) -> np.ndarray:
    """Each advertisement's share of the publications: its broker's, split evenly."""
    chance = broker_chances(params)
    result: np.ndarray = chance[broker] / np.bincount(broker, minlength=params.brokers)[broker]
    return result


def broker_chances(params: BrokersParams) -> np.ndarray:
    """The chance that a publication enters at each broker: a Gaussian around one third of them.

    Section 5.4.2. What falls beyond an end counts for the last broker there.
    """
    if params.broker_sd == 0:
        there: np.ndarray = np.arange(params.brokers) == near_third(params.brokers, 0.0)
        return there.astype(np.float64)
    ends = (np.arange(1, params.brokers) - 0.5 - params.brokers / 3) / params.broker_sd
    below = [0.5 * (1.0 + math.erf(end / math.sqrt(2.0))) for end in ends]
    return np.diff([0.0, *below, 1.0])


def publications_by_rate(population: Population, count: int, seed: int) -> DrawnPublications:
    """``count`` publications at even distances in time, each by an advertisement by its rate."""
    choosing, placing = streams(seed, 2)
    share = population.rates / population.rates.sum()
    advertisement = choosing.choice(share.size, size=count, p=share)
    time = np.arange(count) / population.rates.sum()
    return DrawnPublications(advertisement, draw_points(placing, population, advertisement), time)


# ---- clients without brokers


@dataclass(frozen=True)
class ClientsParams(RangedParams):
    """Table 6.2 of the thesis, where a time unit is a second here."""

    rate: float = option(1.0, "rate of the slowest publishers, messages/s", above=0)
    advertisements: int = option(600, "publishers, with an advertisement each", at_least=1)
    subscriptions_each: int = option(3, "subscriptions per advertisement", at_least=1)
    brokers: int = option(1000, "brokers that may be used", at_least=1)
    classes: int = option(4, "number of classes, each a topic", at_least=1)
    attributes: int = option(2, "attributes beside the class", at_least=1, at_most=16)
    centre_sd: float = option(
        3.0, "standard deviation of centres around their class's mean", at_least=0
    )
    equal_capacity: bool = option(True, "capacities are equal, not drawn from 0 to that number")
    rate_ranks: int = option(
        10, "rate of the fastest publishers, if the slowest have 1", at_least=1
    )
    rate_skew: float = option(2.0, "Zipf exponent of the rates", at_least=0)


def generate_clients(params: ClientsParams, seed: int) -> Generated:
    """Clients without brokers, and brokers without clients, as tables; O(clients)."""
    made = populate_clients(params, seed)
    return as_workload("clients", made, broker_capacities(params, seed), params.message_bytes)


def broker_capacities(params: ClientsParams, seed: int) -> np.ndarray:
    """Messages per second of each broker: all alike, or uniform up to the largest."""
    if params.equal_capacity:
        return np.full(params.brokers, params.capacity)
    # Drawn from (0, 1]: a broker that can do nothing is none.
    return params.capacity * (1.0 - np.random.default_rng((seed, 5)).random(params.brokers))


def populate_clients(params: ClientsParams, seed: int) -> Population:
    """The clients of a seed as arrays, for those who need no files."""
    subscribing, advertising, rating, means = streams(seed, 4)
    count = params.advertisements
    mean = means.uniform(0.0, params.domain, (params.classes, params.attributes))
    rank = 1 + rating.choice(params.rate_ranks, count, p=zipf(params.rate_ranks, params.rate_skew))
    return Population(
        topics=names("class", params.classes),
        brokers=names("b", params.brokers),
        domain=params.domain,
        subscriptions=draw_clients(params, subscribing, mean, count * params.subscriptions_each),
        advertisements=draw_clients(params, advertising, mean, count),
        rates=params.rate * rank,
    )


def draw_clients(
    params: ClientsParams, rng: np.random.Generator, mean: np.ndarray, count: int
) -> Regions:
    """Boxes around the means of uniform classes, all attributes restricted."""
    topic = rng.integers(0, params.classes, count)
    centre = rng.normal(mean[topic], params.centre_sd)
    lo, hi = draw_boxes(params, rng, centre, np.ones(centre.shape, bool))
    return Regions(topic, lo, hi, np.full(count, NO_BROKER))


def publications_at_pace(population: Population, seconds: float, seed: int) -> DrawnPublications:
    """Every publisher at its own even pace for ``seconds``, from a random start; by time.

    Section 6.4.1: five messages per time unit are one every 200 ticks.
    """
    starting, placing = streams(seed, 2)
    phase = starting.random(population.rates.size)
    count = np.ceil(population.rates * seconds - phase).astype(np.int64)
    advertisement = np.repeat(np.arange(count.size), count)
    number = np.arange(advertisement.size) - np.repeat(np.cumsum(count) - count, count)
    time = (number + phase[advertisement]) / population.rates[advertisement]
    order = np.argsort(time, kind="stable")
    point = draw_points(placing, population, advertisement)
    return DrawnPublications(advertisement[order], point[order], time[order])


BROKERS = WorkloadKind(
    "brokers", "regional clients at given brokers", BrokersParams, generate_brokers
)
CLIENTS = WorkloadKind(
    "clients", "clients that have no brokers yet", ClientsParams, generate_clients
)
