"""Chapter 6 of Tajuddin (2011): clients allocated to brokers, simulated with congestion."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np

from fanplan.layers.overlay.allocation.allocation import (
    Allocation,
    AllocationParams,
    Load,
    Ranking,
    ranked_allocation,
)
from fanplan.layers.overlay.allocation.best import best_allocation
from fanplan.layers.overlay.allocation.bound import fewest_brokers
from fanplan.layers.overlay.allocation.phases import deployed_overlay
from fanplan.layers.overlay.problem import client_similarity
from fanplan.layers.overlay.published.similar import overlap_tree, random_tree
from fanplan.network.brokers import ClientProblem
from fanplan.network.generated import client_routes
from fanplan.papers.overlay.drawn import PUBLISHING, Steps, extents_of, links_of, messages_of
from fanplan.simulation.messages import Messages
from fanplan.simulation.params import SimulationParams
from fanplan.simulation.simulate import SimulationResult, simulate_tree
from fanplan.workload.generators import clients
from fanplan.workload.generators.draws import names

UNITS = 10.0
"""Table 6.2: time units in which publishers send; a second here."""

STEPS = 420
"""Questions after which our search stops: with 4,000 clients they take a minute."""

CONGESTED = SimulationParams(congestion="rule")
"""Section 6.4.1: links of 100 ticks, and a delay for what exceeds a broker's capacity."""

BASELINE, BOUND = "baseline", "bound"


def allocations(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """Allocations of one workload: the metrics of section 6.4.3 of each, or the bound."""
    problem, messages = draw(setting, seed)
    params = AllocationParams(lcf=setting["lcf"])
    result: dict[str, float] = {}
    for method in setting["methods"]:
        if method == BOUND:
            result[f"{method} brokers"] = float(fewest_brokers(problem, params))
            continue
        allocation = allocated(method, problem, params, seed)
        found = simulated(problem, allocation, messages, method == BASELINE, seed)
        result[f"{method} brokers"] = float(allocation.brokers)
        result |= {f"{method} {key}": value for key, value in metrics(found).items()}
    return result


def draw(setting: dict[str, Any], seed: int) -> tuple[ClientProblem, Messages]:
    """The workload of section 6.4.2: one advertisement per publisher, three subscribers each."""
    params = clients.ClientsParams(advertisements=setting["publishers"])
    population = clients.populate_clients(params, seed)
    sent = clients.publications_at_pace(population, UNITS, PUBLISHING + seed)
    routes, route = client_routes(population, sent)
    wanted, offered = population.subscriptions, population.advertisements
    subscribers, publishers = len(wanted), len(offered)
    interest, common = client_similarity(
        extents_of(wanted, np.arange(subscribers)),
        extents_of(offered, np.arange(publishers)),
        subscribers,
        publishers,
    )
    problem = ClientProblem(
        publishers=names("p", publishers),
        subscribers=names("u", subscribers),
        rates=population.rates,
        interest=interest,
        common=common,
        routes=routes,
        brokers=population.brokers,
        capacity=np.full(params.brokers, params.capacity),
        cost=np.ones(params.brokers),
        seconds=UNITS,
        source=setting["name"],
    )
    return problem, messages_of(sent, route)


def allocated(
    method: str, problem: ClientProblem, params: AllocationParams, seed: int
) -> Allocation:
    """One of the rankings of section 6.3.1, or ours: by the same estimate of load, or exactly."""
    if method in ("best", "exact"):
        load: Load = "exact" if method == "exact" else "estimate"
        return best_allocation(problem, replace(params, load=load), seed, Steps(STEPS))
    ranking = next(known for known in get_args(Ranking) if known == method)
    return ranked_allocation(problem, ranking, params, seed)


def simulated(
    problem: ClientProblem, allocation: Allocation, messages: Messages, random: bool, seed: int
) -> SimulationResult:
    """An allocation on the overlap tree (section 6.3.2); the baseline knows no similarity."""
    overlay = deployed_overlay(problem, allocation)
    tree = random_tree(overlay, seed) if random else overlap_tree(overlay)
    return simulate_tree(overlay, links_of(tree), messages, CONGESTED)


def metrics(found: SimulationResult) -> dict[str, float]:
    """Section 6.4.3. Pure forwarding is read in two ways: per broker, and of all messages."""
    return {
        "messages": found.messages_per_publication,
        "latency": found.delay_mean_ms,
        "forwarding": 100 * found.forwarding_ratio,
        "forwarded": 100 * float(found.forwarded.sum() / found.processed.sum()),
        "peak mean": found.peak_mean,
        "peak max": float(found.peak.max()),
        "delay": found.processing_delay_ms,
    }
