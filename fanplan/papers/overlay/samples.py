"""One sample: a workload drawn, planned by the thesis' methods and ours, and simulated.

Chapter 5 of Tajuddin (2011) builds trees of given brokers, simulated without congestion. Chapter 6
allocates clients to brokers, simulated with congestion.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np

from fanplan.boxes.extents import Extents, make_extents
from fanplan.layers.overlay.allocation.allocation import (
    Allocation,
    AllocationParams,
    Load,
    Ranking,
    ranked_allocation,
)
from fanplan.layers.overlay.allocation.best import best_allocation
from fanplan.layers.overlay.allocation.bound import fewest_brokers
from fanplan.layers.overlay.allocation.phases import deployed_overlay, local_matches
from fanplan.layers.overlay.problem import (
    broker_similarity,
    client_similarity,
    covered_interest,
    different_owners,
    owner_matrix,
)
from fanplan.layers.overlay.published.similar import (
    cover_tree,
    hybrid_tree,
    overlap_tree,
    random_tree,
)
from fanplan.layers.overlay.search.improve import improved_tree
from fanplan.layers.overlay.search.judge import ImproveParams, TreeLimits
from fanplan.network.brokers import ClientProblem, OverlayProblem
from fanplan.network.generated import broker_routes, client_routes
from fanplan.network.trees import Tree
from fanplan.papers.overlay.examples import example_topologies
from fanplan.papers.overlay.settings import EXAMPLES
from fanplan.simulation.messages import Messages, as_publications
from fanplan.simulation.params import SimulationParams
from fanplan.simulation.simulate import SimulationResult, simulate_tree
from fanplan.workload.generators import clients
from fanplan.workload.generators.draws import names
from fanplan.workload.generators.population import DrawnPublications, Population, Regions

PUBLISHING = 1_000_000
"""Between the seeds of clients and of their publications, so that runs share none."""


def sample_overlay(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """What one run of a setting measures, by its task."""
    if setting["task"] == EXAMPLES:
        return example_topologies()
    tasks = {"trees": simulated_trees, "allocations": simulated_allocations}
    return tasks[setting["task"]](setting, seed)


def extents_of(regions: Regions, owner: np.ndarray) -> Extents:
    """The boxes of clients, for the brokers or clients that they belong to."""
    return make_extents(owner, np.arange(len(regions)), regions.topic, regions.lo, regions.hi)


def messages_of(sent: DrawnPublications, route: np.ndarray) -> Messages:
    """Publications at their times; a second is the thesis' time unit of 1,000 ticks."""
    return as_publications(1000.0 * sent.time, route)


# ---- chapter 5

DEGREES = (1, 2, 3, 4, 6, 8, 16, 32, 64, 128)
"""The horizontal axis of Figure 5.5b."""

FREE = SimulationParams(congestion="none")
"""Section 5.4.1: links of 100 ticks, and no congestion."""

TREE_QUESTIONS = 100
"""Questions after which a search of trees stops: 450 brokers are then nearly as good as ever."""

MESSAGES, LATENCY = "messages per arrival", "latency"


def simulated_trees(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """All trees on one workload: the metrics of section 5.2 of each."""
    problem, messages = draw_brokers(setting, seed)
    result: dict[str, float] = {}
    for name, tree in compared_trees(problem, seed).items():
        found = simulate_tree(problem, tree.edges, messages, FREE)
        result |= {f"{name} {key}": value for key, value in tree_metrics(found).items()}
    if setting["alphas"]:
        result |= hybrid_metrics(problem, messages, setting["alphas"])
        result |= variant_metrics(problem, messages, setting, seed)
    return result


def variant_metrics(
    problem: OverlayProblem, messages: Messages, setting: dict[str, Any], seed: int
) -> dict[str, float]:
    """Table 5.2 with interest divided by each broker's own maximum, and with cover-based interest.

    Section 5.3.2 leaves the second to future work.
    """
    covered = covering_problem(problem, setting, seed)
    result: dict[str, float] = {}
    for alpha in setting["variants"]:
        trees = {"own": hybrid_tree(problem, alpha, "own"), "covered": hybrid_tree(covered, alpha)}
        for name, tree in trees.items():
            found = tree_metrics(simulate_tree(problem, tree.edges, messages, FREE))
            result |= {f"{name} {alpha:g} {key}": found[key] for key in (MESSAGES, LATENCY)}
    return result


def covering_problem(problem: OverlayProblem, setting: dict[str, Any], seed: int) -> OverlayProblem:
    """The same with interest by covering."""
    population = draw_population(setting, seed)
    wanted, offered = population.subscriptions, population.advertisements
    pairs = covered_interest(extents_of(offered, offered.broker), extents_of(wanted, wanted.broker))
    interest = owner_matrix(different_owners(pairs), (problem.size, problem.size))
    return replace(problem, similarity=replace(problem.similarity, interest=interest))


def draw_population(setting: dict[str, Any], seed: int) -> Population:
    """The clients of section 5.4.2."""
    return clients.populate_brokers(brokers_params(setting), seed)


def brokers_params(setting: dict[str, Any]) -> clients.BrokersParams:
    return clients.BrokersParams(
        brokers=setting["brokers"],
        subscriptions=setting["subscriptions"],
        advertisements=setting["advertisements"],
        bias=setting["bias"],
    )


def draw_brokers(setting: dict[str, Any], seed: int) -> tuple[OverlayProblem, Messages]:
    """The workload of section 5.4.2."""
    params, population = brokers_params(setting), draw_population(setting, seed)
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


def compared_trees(problem: OverlayProblem, seed: int) -> dict[str, Tree]:
    """The thesis' trees and ours; ``few links`` has degrees up to that of the overlap tree."""
    overlap = overlap_tree(problem)
    few = ImproveParams(limits=TreeLimits(degree=int(overlap.degrees.max())))
    return {
        "overlap": overlap,
        "cover": cover_tree(problem),
        "baseline": random_tree(problem, seed),
        "improved": searched_tree(problem, ImproveParams(), seed),
        "few links": searched_tree(problem, few, seed),
    }


def searched_tree(problem: OverlayProblem, params: ImproveParams, seed: int) -> Tree:
    """Our tree, after a search of the same length on every machine."""
    return improved_tree(problem, params, seed, QuestionLimit(TREE_QUESTIONS)).tree


def tree_metrics(found: SimulationResult) -> dict[str, float]:
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


def hybrid_metrics(
    problem: OverlayProblem, messages: Messages, alphas: list[float]
) -> dict[str, float]:
    """Table 5.2: messages and latency by advertisement priority, and what the best one improves.

    ``least`` is over all priorities above 0, ``advised`` over 0.05 to 0.2, ``others`` over the
    rest, 0 included. An improvement is in percent of the number at 0.
    """
    result: dict[str, float] = {}
    found = {
        a: simulate_tree(problem, hybrid_tree(problem, a).edges, messages, FREE) for a in alphas
    }
    for what in (MESSAGES, LATENCY):
        by_alpha = {alpha: tree_metrics(one)[what] for alpha, one in found.items()}
        result |= {f"hybrid {alpha:g} {what}": value for alpha, value in by_alpha.items()}
        least = min(value for alpha, value in by_alpha.items() if alpha > 0)
        result[f"least {what}"] = least
        result[f"improvement {what}"] = 100 * (1 - least / by_alpha[0.0])
        for name, advised in (("advised", True), ("others", False)):
            some = [value for alpha, value in by_alpha.items() if (0 < alpha <= 0.2) == advised]
            result[f"{name} {what}"] = min(some)
    return result


# ---- chapter 6

UNITS = 10.0
"""Table 6.2: time units in which publishers send; a second here."""

QUESTIONS = 120
"""Questions after which our search stops: with 4,000 clients they take half a minute."""

CONGESTED = SimulationParams(congestion="rule")
"""Section 6.4.1: links of 100 ticks, and a delay for what exceeds a broker's capacity."""

BASELINE, BOUND = "baseline", "bound"


class QuestionLimit:
    """Stop a search after this many questions: unlike a time limit, the same on every machine."""

    def __init__(self, most: int) -> None:
        self.left = most

    def __call__(self, _best_cost: float) -> bool:
        self.left -= 1
        return self.left < 0


def simulated_allocations(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """Allocations of one workload: the metrics of section 6.4.3 of each, or the bound."""
    problem, messages = draw_problem(setting, seed)
    params = AllocationParams(lcf=setting["lcf"])
    result: dict[str, float] = {}
    for method in setting["methods"]:
        if method == BOUND:
            result[f"{method} brokers"] = float(fewest_brokers(problem, params))
            continue
        allocation = allocation_by(method, problem, params, seed)
        found = simulated_allocation(problem, allocation, messages, method == BASELINE, seed)
        result[f"{method} brokers"] = float(allocation.brokers)
        result |= {f"{method} {key}": value for key, value in allocation_metrics(found).items()}
    return result


def draw_problem(setting: dict[str, Any], seed: int) -> tuple[ClientProblem, Messages]:
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


def allocation_by(
    method: str, problem: ClientProblem, params: AllocationParams, seed: int
) -> Allocation:
    """One of the rankings of section 6.3.1, or ours: by the same estimate of load, or exactly."""
    if method in ("best", "exact"):
        load: Load = "exact" if method == "exact" else "estimate"
        return best_allocation(problem, replace(params, load=load), seed, QuestionLimit(QUESTIONS))
    ranking = next(known for known in get_args(Ranking) if known == method)
    return ranked_allocation(problem, ranking, params, seed)


def simulated_allocation(
    problem: ClientProblem, allocation: Allocation, messages: Messages, random: bool, seed: int
) -> SimulationResult:
    """An allocation on the overlap tree (section 6.3.2); the baseline knows no similarity."""
    overlay = deployed_overlay(problem, allocation)
    tree = random_tree(overlay, seed) if random else overlap_tree(overlay)
    matches = local_matches(problem, allocation)
    return simulate_tree(overlay, tree.edges, messages, CONGESTED, matches)


def allocation_metrics(found: SimulationResult) -> dict[str, float]:
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
