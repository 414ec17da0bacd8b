"""Routes of a generated population, matched in memory: for tests, experiments and small problems.

Every publication is compared with every subscription to its topic.
"""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Floats, Longs, Words, listed_by
from fanplan.core.bits import pairs_of_bits, set_bit
from fanplan.core.kernels import compiled
from fanplan.network.brokers import Routes
from fanplan.workload.generators.population import DrawnPublications, Population


def broker_routes(population: Population, sent: DrawnPublications) -> tuple[Routes, Longs]:
    """Routes between brokers, and the route of each publication.

    Time O(publications × subscriptions × attributes), memory a bit per publication and broker.
    """
    source = population.advertisements.broker[sent.advertisement]
    return matched_routes(population, sent, source, population.subscriptions.broker)


def client_routes(population: Population, sent: DrawnPublications) -> tuple[Routes, Longs]:
    """Routes from publishers to sets of subscribers, and the route of each publication."""
    subscribers = np.arange(len(population.subscriptions))
    return matched_routes(population, sent, sent.advertisement, subscribers)


def matched_routes(
    population: Population, sent: DrawnPublications, source: Longs, owner: Longs
) -> tuple[Routes, Longs]:
    """Routes to the owners of matching subscriptions, ordered by source, and each one's route."""
    wanted = population.subscriptions
    first, by_topic = listed_by(wanted.topic, len(population.topics))
    topic = population.advertisements.topic[sent.advertisement]
    reached, deliveries = match(
        sent.point, topic, first, wanted.lo[by_topic], wanted.hi[by_topic], owner[by_topic],
        int(owner.max()) + 1,
    )  # fmt: skip
    octets = reached.astype("<u8", copy=False).view(np.uint8)
    keys = np.concatenate((source.astype(">i8")[:, None].view(np.uint8), octets), axis=1)
    rows = np.ascontiguousarray(keys).view(f"V{keys.shape[1]}").ravel()
    _, example, route = np.unique(rows, return_index=True, return_inverse=True)
    row, brokers = pairs_of_bits(reached[example])
    routes = Routes(
        source=source[example].astype(np.int32),
        starts=np.searchsorted(row, np.arange(len(example) + 1)),
        brokers=brokers,
        messages=np.bincount(route).astype(np.float64),
        deliveries=np.bincount(route, weights=deliveries).astype(np.float64),
    )
    return routes, route


@compiled
def match(
    point: Floats, topic: Longs, first: Longs, lo: Floats, hi: Floats, owner: Longs, owners: int
) -> tuple[Words, Longs]:
    """The owners that each point reaches, a bit each, and how many boxes hold it.

    ``first[t]:first[t + 1]`` are the boxes of topic t.
    """
    reached = np.zeros((len(point), (owners + 63) // 64), np.uint64)
    boxes = np.zeros(len(point), np.int64)
    for i in range(len(point)):
        for box in range(first[topic[i]], first[topic[i] + 1]):
            inside = True
            for axis in range(point.shape[1]):
                if not lo[box, axis] <= point[i, axis] < hi[box, axis]:
                    inside = False
                    break
            if inside:
                boxes[i] += 1
                set_bit(reached[i], owner[box])
    return reached, boxes
