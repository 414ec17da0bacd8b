"""How trees spread load and delay: the plan's own beside a random one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from fanplan.evaluation.overlay_ledger import OverlayLedger
from fanplan.plan.overlay.build import trees_ledger
from fanplan.plan.overlay.types import Trees, trees_of
from fanplan.plan.stored import StoredPlan
from fanplan.planners.overlay.similar import random_tree
from fanplan.problem.overlay import OverlayProblem
from fanplan.simulation.stored import read_overlay

SOURCES = 256
"""Brokers whose distances to all others are held at once."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """The ledger of trees, and the delays of arrivals: so many ``arrivals`` take each ``delay``."""

    words: str
    ledger: OverlayLedger
    load: Floats
    """messages per second of each broker"""
    delay: Floats
    arrivals: Floats


def spreads(plan: StoredPlan, dataset: Path) -> tuple[Spread, Spread]:
    """The plan's trees and a random tree, drawn with the plan's seed, for the same traffic."""
    stored = read_overlay(plan, dataset)
    problem = stored.problem
    drawn = random_tree(problem, plan.record.seed)
    chance = trees_of((drawn.edges,), np.zeros(problem.size, np.int32))
    return spread("this plan", problem, stored.trees), spread("a random tree", problem, chance)


def spread(words: str, problem: OverlayProblem, trees: Trees) -> Spread:
    ledger = trees_ledger(problem, trees)
    delay, arrivals = delays(problem, trees)
    return Spread(words, ledger, ledger.processed / problem.seconds, delay, arrivals)


def delays(problem: OverlayProblem, trees: Trees) -> tuple[Floats, Floats]:
    """Different delays on an idle network, ascending, and the arrivals that take them."""
    routes, latency = problem.routes, problem.latencies(trees.links)
    route = np.repeat(np.arange(len(routes)), np.diff(routes.starts))
    source, messages = routes.source[route], routes.messages[route]
    taken = np.zeros(len(route))
    for number, member in enumerate(trees.members):
        graph = as_graph(trees.links[member], latency[member], problem.size)
        mine = np.flatnonzero(trees.of[source] == number)
        taken[mine] = distances(graph, source[mine], routes.brokers[mine])
    different, where = np.unique(np.round(taken, 6), return_inverse=True)
    return different, np.bincount(where, messages, len(different)).astype(np.float64)


def as_graph(links: np.ndarray, latency: Floats, size: int) -> csr_array:
    # A link that takes no time is still a link: an exact 0 would not be stored as one.
    weight = np.maximum(latency, 1e-9)
    return csr_array((weight, (links[:, 0], links[:, 1])), shape=(size, size))


def distances(graph: csr_array, source: np.ndarray, target: np.ndarray) -> Floats:
    """From each source to its target, a bounded number of sources at a time."""
    result = np.zeros(len(source))
    different, where = np.unique(source, return_inverse=True)
    for first in range(0, len(different), SOURCES):
        rows = dijkstra(graph, directed=False, indices=different[first : first + SOURCES])
        mine = np.flatnonzero((where >= first) & (where < first + SOURCES))
        result[mine] = rows[where[mine] - first, target[mine]]
    return result
