"""What samples of both chapters share: seeds, extents of drawn clients, and links of trees."""

from __future__ import annotations

import numpy as np

from fanplan.boxes.extents import Extents, make_extents
from fanplan.core.arrays import Ints
from fanplan.network.trees import Tree
from fanplan.simulation.messages import Messages, as_publications
from fanplan.workload.generators.population import Regions, SentPoints

PUBLISHING = 1_000_000
"""Between the seeds of clients and of their publications, so that runs share none."""


class Steps:
    """Stop a search after so many questions: unlike a time limit, the same on every machine."""

    def __init__(self, most: int) -> None:
        self.left = most

    def __call__(self, best_cost: float) -> bool:
        self.left -= 1
        return self.left < 0


def extents_of(regions: Regions, owner: np.ndarray) -> Extents:
    """The boxes of clients, for the brokers or clients that they belong to."""
    return make_extents(owner, np.arange(len(regions)), regions.topic, regions.lo, regions.hi)


def messages_of(sent: SentPoints, route: np.ndarray) -> Messages:
    """Publications at their times; a second is the thesis' time unit of 1,000 ticks."""
    return as_publications(1000.0 * sent.time, route)


def links_of(tree: Tree) -> Ints:
    return np.stack((tree.a, tree.b), axis=1)
