"""Chapter 5 of Tajuddin (2011): trees of given brokers, simulated without congestion."""

from __future__ import annotations

from typing import Any

import numpy as np

from fanplan.core.stop import never
from fanplan.layers.overlay.problem import broker_similarity
from fanplan.layers.overlay.published.similar import (
    cover_tree,
    hybrid_tree,
    overlap_tree,
    random_tree,
)
from fanplan.layers.overlay.search.improve import improved_tree
from fanplan.layers.overlay.search.judge import ImproveParams, TreeLimits
from fanplan.network.brokers import OverlayProblem
from fanplan.network.generated import broker_routes
from fanplan.network.trees import Tree
from fanplan.papers.overlay.drawn import PUBLISHING, extents_of, links_of, messages_of
from fanplan.simulation.messages import Messages
from fanplan.simulation.params import SimulationParams
from fanplan.simulation.simulate import SimulationResult, simulate_tree
from fanplan.workload.generators import clients

DEGREES = (1, 2, 3, 4, 6, 8, 16, 32, 64, 128)
"""The horizontal axis of Figure 5.5b."""

FREE = SimulationParams(congestion="none")
"""Section 5.4.1: links of 100 ticks, and no congestion."""

MESSAGES, LATENCY = "messages per arrival", "latency"


def trees(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """All trees on one workload: the metrics of section 5.2 of each."""
    problem, messages = draw(setting, seed)
    result: dict[str, float] = {}
    for name, tree in planned(problem, seed).items():
        found = simulate_tree(problem, links_of(tree), messages, FREE)
        result |= {f"{name} {key}": value for key, value in metrics(found).items()}
    if setting["alphas"]:
        result |= hybrids(problem, messages, setting["alphas"])
    return result


def draw(setting: dict[str, Any], seed: int) -> tuple[OverlayProblem, Messages]:
    """The workload of section 5.4.2."""
    params = clients.BrokersParams(
        brokers=setting["brokers"],
        subscriptions=setting["subscriptions"],
        advertisements=setting["advertisements"],
        bias=setting["bias"],
    )
    population = clients.populate_brokers(params, seed)
    sent = clients.publications_by_rate(population, setting["publications"], PUBLISHING + seed)
    routes, route = broker_routes(population, sent)
    wanted, offered = population.subscriptions, population.advertisements
    similarity = broker_similarity(
        extents_of(wanted, wanted.broker), extents_of(offered, offered.broker), params.brokers
    )
    free = np.full(params.brokers, np.inf)
    seconds = len(sent) / float(population.rates.sum())
    cost = np.ones(params.brokers)
    problem = OverlayProblem(
        population.brokers, free, cost, routes, similarity, None, seconds, setting["name"]
    )
    return problem, messages_of(sent, route)


def planned(problem: OverlayProblem, seed: int) -> dict[str, Tree]:
    """The thesis' trees and ours; ``few links`` has degrees up to that of the overlap tree."""
    overlap = overlap_tree(problem)
    few = ImproveParams(limits=TreeLimits(degree=int(overlap.degrees.max())))
    return {
        "overlap": overlap,
        "cover": cover_tree(problem),
        "baseline": random_tree(problem, seed),
        "improved": improved_tree(problem, ImproveParams(), seed, never).tree,
        "few links": improved_tree(problem, few, seed, never).tree,
    }


def metrics(found: SimulationResult) -> dict[str, float]:
    """Section 5.2, and what Figures 5.5 and 5.6 show of it."""
    degree = found.degree
    return {
        MESSAGES: found.messages_per_arrival,
        "messages per publication": found.messages_per_publication,
        LATENCY: found.delay_mean_ms,
        "degree max": float(degree.max()),
        "degree 90": float(np.percentile(degree, 90, method="inverted_cdf")),
        **{f"degree up to {d}": float(np.mean(degree <= d)) for d in DEGREES},
        "processed mean": float(found.processed.mean()),
        "processed max": float(found.processed.max()),
        "processed max/mean": float(found.processed.max() / found.processed.mean()),
        "brokers mean": found.brokers_per_publication,
        "brokers max": float(found.brokers_max),
    }


def hybrids(problem: OverlayProblem, messages: Messages, alphas: list[float]) -> dict[str, float]:
    """Table 5.2: messages and latency by advertisement priority, and what the best one improves.

    ``least`` is over all priorities above 0, ``advised`` over 0.05 to 0.2, ``others`` over the
    rest, 0 included. An improvement is in percent of the number at 0.
    """
    result: dict[str, float] = {}
    found = {
        a: simulate_tree(problem, links_of(hybrid_tree(problem, a)), messages, FREE) for a in alphas
    }
    for what in (MESSAGES, LATENCY):
        by_alpha = {alpha: metrics(one)[what] for alpha, one in found.items()}
        result |= {f"hybrid {alpha:g} {what}": value for alpha, value in by_alpha.items()}
        least = min(value for alpha, value in by_alpha.items() if alpha > 0)
        result[f"least {what}"] = least
        result[f"improvement {what}"] = 100 * (1 - least / by_alpha[0.0])
        for name, advised in (("advised", True), ("others", False)):
            some = [value for alpha, value in by_alpha.items() if (0 < alpha <= 0.2) == advised]
            result[f"{name} {what}"] = min(some)
    return result
