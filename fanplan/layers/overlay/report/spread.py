"""How trees spread load and delay: the plan's own beside a random one, and what channels leave."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fanplan.core.arrays import Floats
from fanplan.layers.overlay.bound import OverlayBound, Passages, arriving
from fanplan.layers.overlay.published.similar import random_tree
from fanplan.layers.overlay.simulated import read_overlay
from fanplan.network.brokers import OverlayProblem
from fanplan.network.carried import OverlayLedger, trees_ledger
from fanplan.network.trees import Trees, breadth_first, distances, near_of, one_tree
from fanplan.plan.stored import StoredPlan


@dataclass(frozen=True)
class Spread:
    """The ledger of trees, and the delays of arrivals: so many ``arrivals`` take each ``delay``."""

    words: str
    ledger: OverlayLedger
    load: Floats
    """messages per second of each broker"""
    rates: Floats
    """messages per second on each link, both ways"""
    delay: Floats
    arrivals: Floats


@dataclass(frozen=True)
class Spreads:
    """The plan's trees and a random tree for the same traffic; and the plan's with what is left.

    ``left`` is what channels and direct unicast leave to brokers, without shortcuts of groups;
    None if they leave all. ``brokers`` and ``links`` say what the numbers in the spreads mean.
    """

    brokers: pa.Array
    links: NDArray[np.int32]
    own: Spread
    random: Spread
    left: Spread | None = None


def spreads(plan: StoredPlan, dataset: Path, bound: OverlayBound | None = None) -> Spreads:
    """Count the plan's trees and a random tree, which is drawn with the plan's seed.

    Arrivals are those at brokers, or in a plan of all layers deliveries to subscribers.
    """
    stored = read_overlay(plan, dataset)
    problem, trees = stored.problem, stored.trees
    chance = one_tree(random_tree(problem, plan.record.seed))
    if bound is None:
        passing, left = arriving(problem.routes), None
    else:
        passing, fewer, less = bound.left(dataset, problem)
        left = spread_of("this plan", less, trees, fewer)
    own = spread_of("this tree", problem, trees, passing)
    random = spread_of("a random tree", problem, chance, passing)
    return Spreads(problem.brokers, trees.links, own, random, left)


def spread_of(words: str, problem: OverlayProblem, trees: Trees, passing: Passages) -> Spread:
    ledger = trees_ledger(problem, trees)
    delay, arrivals = delays(problem, trees, passing)
    load, rates = ledger.processed / problem.seconds, ledger.link.sum(axis=1) / problem.seconds
    return Spread(words, ledger, load, rates, delay, arrivals)


def delays(problem: OverlayProblem, trees: Trees, passing: Passages) -> tuple[Floats, Floats]:
    """Different delays on an idle network, ascending, and the arrivals that take them."""
    source, target = passing.source, passing.target
    latency, taken = problem.latencies(trees.links), np.zeros(len(source))
    near = [near_of(trees.links[member], problem.size) for member in trees.members]
    order = np.argsort(source, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(source[order])) + 1):
        for root in source[rows[:1]]:
            number = trees.of[root]
            far = distances(breadth_first(near[number], root), latency[trees.members[number]])
            taken[rows] = far[target[rows]]
    different, where = np.unique(np.round(taken, 6), return_inverse=True)
    return different, np.bincount(where, passing.arrivals, len(different)).astype(np.float64)
