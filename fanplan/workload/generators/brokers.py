"""Brokers with regional clients, after section 5.4.2 of Tajuddin (2011).

Every broker prefers one of a few classes, and so do its clients: a bias factor says how many. A
class is a topic, and the other attributes are those of all topics.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fanplan.core.errors import Problem
from fanplan.core.options import option
from fanplan.workload.generators.draws import names, streams, with_mean
from fanplan.workload.generators.generated import Generated, Kind
from fanplan.workload.generators.population import (
    Population,
    Regions,
    Sent,
    draw_boxes,
    draw_points,
    tables_of,
)
from fanplan.workload.generators.ranged import RangedParams


@dataclass(frozen=True)
class BrokersParams(RangedParams):
    """Table 5.1 of the thesis; ``rate`` is the mean rate of an advertisement."""

    brokers: int = option(450, "number of brokers", at_least=2)
    subscriptions: int = option(4500, "number of subscriptions", at_least=1)
    advertisements: int = option(1500, "number of advertisements", at_least=1)
    classes: int = option(4, "number of classes, each a topic", at_least=1)
    attributes: int = option(4, "attributes beside the class", at_least=1, at_most=16)
    bias: float = option(0.75, "chance of a broker that prefers the class", at_least=0, at_most=1)
    centre_sd: float = option(3.0, "how far centres lie from their mean", at_least=0)
    broker_sd: float = option(3.0, "how far publishers lie from a third of the brokers", at_least=0)

    def relations(self) -> Iterator[Problem]:
        if self.advertisements < self.brokers:
            what = f"{self.advertisements} do not give each of {self.brokers} brokers one"
            yield Problem("advertisements", what, "Give at least as many as brokers")
        yield from super().relations()


def generate(params: BrokersParams, seed: int) -> Generated:
    """Clients at brokers, as tables; O(clients × attributes)."""
    return tables_of(populate(params, seed), "brokers", params.capacity, params.message_bytes)


def populate(params: BrokersParams, seed: int) -> Population:
    """The clients of a seed as arrays, for those who need no files."""
    means, preferring, subscribing, advertising = streams(seed, 4)
    mean = means.uniform(0.0, params.domain, params.attributes)
    preference = preferring.integers(0, params.classes, params.brokers)
    advertisements = draw_advertisements(params, advertising, mean, preference)
    return Population(
        topics=names("class", params.classes),
        brokers=names("b", params.brokers),
        domain=params.domain,
        subscriptions=draw_subscriptions(params, subscribing, mean, preference),
        advertisements=advertisements,
        rates=with_mean(draw_shares(params, advertisements.broker), params.rate),
    )


def draw_subscriptions(
    params: BrokersParams, rng: np.random.Generator, mean: np.ndarray, preference: np.ndarray
) -> Regions:
    """Classes by a uniform law, brokers by the bias, uniformly among those that qualify."""
    count = params.subscriptions
    topic = rng.integers(0, params.classes, count)
    lo, hi = draw_regions(params, rng, mean, count)
    own = rng.random(count) < params.bias
    place = rng.random(count)
    broker = np.empty(count, np.int64)
    for one in range(params.classes):
        for prefers in (True, False):
            mine = (topic == one) & (own == prefers)
            group = candidates(preference, one, prefers)
            broker[mine] = group[(place[mine] * group.size).astype(np.int64)]
    return Regions(topic, lo, hi, broker)


def draw_advertisements(
    params: BrokersParams, rng: np.random.Generator, mean: np.ndarray, preference: np.ndarray
) -> Regions:
    """One for each broker, of a class by the bias; the rest as subscriptions, but brokers by a
    Gaussian around one third of those that qualify.
    """
    count, brokers = params.advertisements, params.brokers
    topic = rng.integers(0, params.classes, count)
    lo, hi = draw_regions(params, rng, mean, count)
    own = rng.random(count) < params.bias
    other = (preference + rng.integers(1, max(params.classes, 2), brokers)) % params.classes
    topic[:brokers] = np.where(own[:brokers], preference, other)
    broker = np.arange(count)
    offset = rng.normal(0.0, params.broker_sd, count)
    for i in range(brokers, count):
        group = candidates(preference, topic[i], own[i])
        broker[i] = group[near_third(group.size, offset[i])]
    return Regions(topic, lo, hi, broker)


def candidates(preference: np.ndarray, topic: int, prefers: bool) -> np.ndarray:
    """Brokers that prefer a class, or those that do not; all if there are none."""
    group = np.flatnonzero((preference == topic) == prefers)
    return group if group.size else np.arange(preference.size)


def near_third(size: int, offset: float) -> int:
    """A position at a third of a row, moved by an offset and kept in the row."""
    return int(np.clip(np.rint(size / 3 + offset), 0, size - 1))


def draw_regions(
    params: BrokersParams, rng: np.random.Generator, mean: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Boxes with at least one range: every set of restricted attributes but the empty one.

    That is the law of an even chance for each attribute, given that one is restricted.
    """
    subset = rng.integers(1, 2**params.attributes, count)
    ranged = (subset[:, None] >> np.arange(params.attributes)) & 1 == 1
    centre = rng.normal(mean, params.centre_sd, (count, params.attributes))
    return draw_boxes(rng, centre, ranged, params.shape)


def draw_shares(params: BrokersParams, broker: np.ndarray) -> np.ndarray:
    """Each advertisement's share of the publications: its broker's, split evenly."""
    chance = broker_chances(params)
    return chance[broker] / np.bincount(broker, minlength=params.brokers)[broker]


def broker_chances(params: BrokersParams) -> np.ndarray:
    """The chance that a publication enters at each broker: a Gaussian around one third of them.

    Tajuddin (2011), section 5.4.2. What falls beyond an end counts for the last broker there.
    """
    if params.broker_sd == 0:
        return (np.arange(params.brokers) == near_third(params.brokers, 0.0)).astype(np.float64)
    ends = (np.arange(1, params.brokers) - 0.5 - params.brokers / 3) / params.broker_sd
    below = [0.5 * (1.0 + math.erf(end / math.sqrt(2.0))) for end in ends]
    return np.diff([0.0, *below, 1.0])


def publications(population: Population, count: int, seed: int) -> Sent:
    """``count`` publications at even distances in time, each by an advertisement by its rate."""
    choosing, placing = streams(seed, 2)
    share = population.rates / population.rates.sum()
    advertisement = choosing.choice(share.size, size=count, p=share)
    time = np.arange(count) / population.rates.sum()
    return Sent(advertisement, draw_points(placing, population, advertisement), time)


KIND = Kind("brokers", "regional clients at given brokers", BrokersParams, generate)
