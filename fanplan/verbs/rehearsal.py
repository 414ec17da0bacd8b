"""A design of a tiny network, for the sake of its kernels: what it calls is compiled and kept.

Compiling takes longer than a small design itself. Run beside a design, it has kernels ready before
Spark has the data for them: ``python -m fanplan.verbs.rehearsal PART STAMP``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from fanplan.boxes import matching
from fanplan.boxes.extents import make_extents
from fanplan.core.arrays import Floats
from fanplan.core.stop import never
from fanplan.data.build import from_pairs
from fanplan.layers.delivery.problem import DeliveryProblem
from fanplan.layers.delivery.search.joint import joint_delivery
from fanplan.layers.delivery.search.params import DeliveryParams
from fanplan.layers.groups.problem.trees import hung_at
from fanplan.layers.marking.problem.covers import uncovered
from fanplan.layers.marking.problem.dataset import tree_table
from fanplan.layers.marking.problem.marking import MarkedNetwork
from fanplan.layers.marking.problem.trees import given_shared_problem
from fanplan.layers.marking.search.marking import exact_marking
from fanplan.layers.overlay.problem import owner_interest, owner_overlap
from fanplan.layers.overlay.published.similar import random_tree
from fanplan.layers.overlay.search.improve import improved_tree
from fanplan.layers.overlay.search.judge import ImproveParams
from fanplan.network.brokers import Links, OverlayProblem, Routes, no_similarity
from fanplan.network.trees import hang

BROKERS = 8
SUBSCRIBERS = 24
FLOWS = 40
BOXES = 60
NAMES = pa.array([f"b{b}" for b in range(BROKERS)])
PEOPLE = [f"s{s}" for s in range(SUBSCRIBERS)]
TREE = np.array([(b // 2, b) for b in range(1, BROKERS)], np.int32)


def rehearse_brokers(draw: np.random.Generator) -> None:
    """What a design comes to first: who wants what, and a tree of brokers."""
    rehearse_match(draw)
    compare(draw)
    connect(draw)


def rehearse_delivery(draw: np.random.Generator) -> None:
    """What it comes to then, on a tree."""
    deliver(draw)
    mark(draw)


PARTS = {"brokers": rehearse_brokers, "delivery": rehearse_delivery}
"""Parts that have few kernels in common, so that two processors are busy."""


def boxes(draw: np.random.Generator) -> tuple[Floats, Floats]:
    """Boxes with two axes."""
    lo = draw.random((BOXES, 2)) / 2
    return lo, lo + draw.random((BOXES, 2)) / 2


def rehearse_match(draw: np.random.Generator) -> None:
    """Who wants a publication."""
    topic, owner = draw.integers(0, 3, BOXES), draw.integers(0, SUBSCRIBERS, BOXES)
    index = matching.index_boxes(
        topic, np.full(BOXES, 2, np.int32), *boxes(draw), owner, np.arange(BOXES)
    )
    points, weight, hits = draw.random((BOXES, 2)), np.ones(BOXES), np.zeros(BOXES)
    matching.count_hits(index, topic, points, weight, hits)
    matching.count_candidates(index, topic, points)
    matching.find_audiences(index, topic, points)
    # Weights come from Arrow, which lets nobody write them; to numba that is another type.
    matching.wants(index, topic, points, pa.array(weight).to_numpy(), topic, 3)


def compare(draw: np.random.Generator) -> None:
    """How alike brokers are, and which of their regions others cover."""
    owner, topic = draw.integers(0, BROKERS, BOXES), draw.integers(0, 3, BOXES)
    lo, hi = boxes(draw)
    extents = make_extents(owner, np.arange(BOXES), topic, lo, hi)
    owner_overlap(extents, extents)
    owner_interest(extents, extents)
    uncovered(owner, lo, hi)


def connect(draw: np.random.Generator) -> None:
    """A tree of brokers that all send to some; links are given."""
    arrive = np.sort(np.argsort(draw.random((FLOWS, BROKERS)), axis=1)[:, :3], axis=1)
    routes = Routes(
        source=draw.integers(0, BROKERS, FLOWS).astype(np.int32),
        starts=3 * np.arange(FLOWS + 1),
        brokers=arrive.ravel().astype(np.int32),
        messages=draw.random(FLOWS),
        deliveries=draw.random(FLOWS),
    )
    a, b = (end.astype(np.int32) for end in np.triu_indices(BROKERS, 1))
    ones = np.ones(len(a))
    problem = OverlayProblem(
        brokers=NAMES,
        capacity=np.full(BROKERS, np.inf),
        cost=np.ones(BROKERS),
        routes=routes,
        similarity=no_similarity(BROKERS),
        links=Links(a, b, draw.random(len(a)), ones * np.inf, ones),
        seconds=1.0,
        source="",
    )
    random_tree(problem, 0)
    improved_tree(problem, ImproveParams(), 0, never)


def deliver(draw: np.random.Generator) -> None:
    """Channels on two sites, groups and unicast, on a tree hung at every broker."""
    flow, who = np.nonzero(draw.random((FLOWS, SUBSCRIBERS)) < 0.3)
    wanted = from_pairs(flow, who, draw.random(FLOWS), names=PEOPLE)
    roots = np.arange(BROKERS, dtype=np.int32)
    problem = DeliveryProblem(
        interest=wanted,
        brokers=NAMES,
        trees=hung_at(TREE, roots, BROKERS),
        home=draw.integers(0, BROKERS, SUBSCRIBERS).astype(np.int32),
        domain=roots % 2,
        row=np.arange(wanted.size, dtype=np.int32),
        tree=draw.integers(0, BROKERS, wanted.size).astype(np.int32),
        messages=wanted.messages,
    )
    joint_delivery(problem, DeliveryParams(channels=3), 0, never)


def mark(draw: np.random.Generator) -> None:
    """Marks on the tree."""
    table = tree_table(NAMES, hang(TREE, 0, BROKERS).parent)
    published, subscribed = draw.integers(1, 9, (2, BROKERS))
    exact_marking(given_shared_problem(MarkedNetwork(NAMES, published, subscribed), table))


if __name__ == "__main__":
    part, stamp = sys.argv[1:]
    PARTS[part](np.random.default_rng(0))
    Path(stamp).touch()
