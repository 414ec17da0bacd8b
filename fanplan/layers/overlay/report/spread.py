"""How trees spread load and delay: the plan's own beside a random one, and what channels leave."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fanplan.core.arrays import Floats
from fanplan.data.links import HOP
from fanplan.layers.overlay.bound import OverlayBound, Passages, arriving
from fanplan.layers.overlay.published.similar import random_tree
from fanplan.layers.overlay.simulated import read_overlay
from fanplan.network.brokers import OverlayProblem
from fanplan.network.carried import OverlayLedger, trees_ledger
from fanplan.network.latency import Timing
from fanplan.network.trees import Trees, breadth_first, distances, near_of, one_tree
from fanplan.plan.stored import StoredPlan
from fanplan.simulation.legs import DelayCounts, delay_counts


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

    ``left`` is what channels and direct unicast leave to brokers, without shortcuts of groups, but
    with the delays of all deliveries on their own ways; None if they leave all. ``brokers`` and
    ``links`` say what the numbers in the spreads mean, ``unknown`` what was assumed of latencies.
    """

    brokers: pa.Array
    links: NDArray[np.int32]
    own: Spread
    random: Spread
    left: Spread | None = None
    unknown: tuple[str, ...] = ()


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
        passing, taken, less = bound.left(dataset, problem)
        left = spread_of("this plan", less, trees, taken)
    own = spread_of("this tree", problem, trees, delays(problem, trees, passing))
    random = spread_of("a random tree", problem, chance, delays(problem, chance, passing))
    return Spreads(problem.brokers, trees.links, own, random, left, unknown(problem, trees))


def unknown(problem: OverlayProblem, trees: Trees) -> tuple[str, ...]:
    """For how many links of the trees a latency was assumed, if others have one."""
    timing = Timing(problem.size, problem.links, HOP)
    assumed = int(timing.over_links(trees.links).assumed.sum()) if problem.timed else 0
    if not assumed:
        return ()
    told = f"{assumed} of {len(trees.links)} links of this plan have no latency in the input"
    return (f"{told}: {timing.assumed_ms:g} ms is assumed for each, the median of the others.",)


def spread_of(words: str, problem: OverlayProblem, trees: Trees, taken: DelayCounts) -> Spread:
    ledger = trees_ledger(problem, trees)
    load, rates = ledger.processed / problem.seconds, ledger.link.sum(axis=1) / problem.seconds
    return Spread(words, ledger, load, rates, taken.ms, taken.count)


def delays(problem: OverlayProblem, trees: Trees, passing: Passages) -> DelayCounts:
    """How long arrivals take on an idle network, on the trees alone."""
    source, target = passing.source, passing.target
    latency, taken = problem.latencies(trees.links), np.zeros(len(source))
    near = [near_of(trees.links[member], problem.size) for member in trees.members]
    order = np.argsort(source, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(source[order])) + 1):
        for root in source[rows[:1]]:
            number = trees.of[root]
            far = distances(breadth_first(near[number], root), latency[trees.members[number]])
            taken[rows] = far[target[rows]]
    return delay_counts(taken, passing.arrivals)
