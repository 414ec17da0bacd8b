"""One sample: a scenario drawn, mapped by the paper's methods and ours, and 1,000 notifications.

Efficiency is desired of all received (section 5.3), over notifications drawn by the subjects'
throughput. The heavy part is mapped, the rest goes point to point, for every method.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from fanplan.core.prices import Weights
from fanplan.core.stop import never
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import analytic_ledger
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.params import KmodesParams
from fanplan.layers.channels.published.genetic.genes import map_costs, subscription_genes
from fanplan.layers.channels.published.genetic.params import AtomicParams, GeneticParams
from fanplan.layers.channels.published.genetic.plan import (
    genetic,
    genetic_atomic,
    heavy_subscriptions,
    map_rest,
    map_subscriptions,
    wanted_of,
)
from fanplan.layers.channels.published.genetic.problem import (
    SubscriptionProblem,
    generated_subscriptions,
)
from fanplan.layers.channels.published.genetic.weight import row_weight
from fanplan.layers.channels.search.kmodes import kmodes
from fanplan.papers.genetic.settings import size_name
from fanplan.papers.genetic.tables import table_costs
from fanplan.workload.generators import load_kind

NOTIFICATIONS = 1000
RECEPTIONS = Weights(w2=1e-6)
"""The paper counts what is received, not what is sent."""

FITNESS_REPEATS = 200
SEARCH_SEED = 1000
"""Between the seeds of the searches of one run, so that runs share none."""


def sample(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """What one run of a setting measures, by its task."""
    tasks = {
        "efficiency": efficiency,
        "tuning": tuning,
        "fitness": fitness,
        "tables": table_costs,
    }
    return tasks[setting["task"]](setting, seed)


def draw(setting: dict[str, Any], seed: int) -> SubscriptionProblem:
    """The setting's workload (sections 5.1 and 5.2)."""
    options = {
        "subjects": setting["subjects"],
        "categories": setting["categories"],
        "subscribers": setting["subscribers"],
        "subjects_per_subscriber": setting["chosen"],
        "p": float(setting["p"]),
    }
    return generated(setting["kind"], options, seed)


def generated(name: str, options: dict[str, Any], seed: int) -> SubscriptionProblem:
    kind = load_kind(name)
    return generated_subscriptions(kind.generate(kind.params(**options), seed))


def efficiency(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """Efficiency and seconds of each method at each number of groups, and how groups help."""
    compile_all()
    problem, result = draw(setting, seed), {}
    sent = notifications(problem, seed)
    for groups in setting["groups"]:
        for name, method in METHODS.items():
            begin = time.perf_counter()
            made = method(problem, groups, seed)
            result[f"{name} seconds @ {groups}"] = time.perf_counter() - begin
            result[f"{name} @ {groups}"] = desired(sent, made)
        result[f"ratio @ {groups}"] = (
            result[f"genetic @ {groups}"] / result[f"round-robin @ {groups}"]
        )
    first, last = setting["groups"][0], setting["groups"][-1]
    for name in ("genetic", "round-robin"):
        result[f"{name} gain"] = result[f"{name} @ {last}"] - result[f"{name} @ {first}"]
    return result


def notifications(problem: SubscriptionProblem, seed: int) -> InterestProblem:
    """The rows with the number of notifications that fall on each (section 5.2)."""
    total = problem.topic_messages.sum()
    share = problem.interest.messages / total
    unwanted = max(0.0, 1.0 - share.sum())
    drawn = np.random.default_rng([seed, 1]).multinomial(NOTIFICATIONS, [*share, unwanted])
    return replace(problem.interest, messages=drawn[:-1].astype(np.float64))


def desired(sent: InterestProblem, made: ChannelMap) -> float:
    """Desired of all received; a second copy is received, but not desired again."""
    ledger = analytic_ledger(sent, made)
    return ledger.received_wanted / (ledger.received_wanted + ledger.received_unwanted)


def params(groups: int) -> GeneticParams:
    """The paper's; its notifications are uniform over a subject, so volumes are right."""
    return GeneticParams(groups, probability="volume")


def by_genetic(problem: SubscriptionProblem, groups: int, seed: int) -> ChannelMap:
    return genetic(problem, params(groups), seed, never)


def by_broadcast(problem: SubscriptionProblem, groups: int, seed: int) -> ChannelMap:
    chosen = heavy_subscriptions(problem, params(groups))
    return map_subscriptions(problem, chosen, np.zeros(len(chosen), dtype=np.int32), 1)


def by_round_robin(problem: SubscriptionProblem, groups: int, seed: int) -> ChannelMap:
    """Section 5.2: subjects are dealt to groups in turn, with all their subscriptions."""
    chosen = heavy_subscriptions(problem, params(groups))
    subject = np.unique(problem.topic[chosen], return_inverse=True)[1]
    return map_subscriptions(problem, chosen, (subject % groups).astype(np.int32), groups)


def by_atomic(problem: SubscriptionProblem, groups: int, seed: int) -> ChannelMap:
    rows, heavy = wanted_of(problem, heavy_subscriptions(problem, params(groups)))
    made = genetic_atomic(heavy, AtomicParams(groups), seed, never)
    return map_rest(problem.interest, rows, made)


def by_kmodes(problem: SubscriptionProblem, groups: int, seed: int) -> ChannelMap:
    rows, heavy = wanted_of(problem, heavy_subscriptions(problem, params(groups)))
    limits = KmodesParams(groups, RECEPTIONS, unicast_limit=0.0)
    return map_rest(problem.interest, rows, kmodes(heavy, limits, seed, never))


METHODS: dict[str, Callable[[SubscriptionProblem, int, int], ChannelMap]] = {
    "broadcast": by_broadcast,
    "round-robin": by_round_robin,
    "genetic": by_genetic,
    "genetic-atomic": by_atomic,
    "kmodes": by_kmodes,
}


@cache
def compile_all() -> None:
    """Compile before anything is timed."""
    tiny = {"subjects": 6, "categories": 2, "subscribers": 6, "subjects_per_subscriber": 2}
    for method in METHODS.values():
        method(generated("subjects", tiny, 0), 2, 0)


def tuning(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """Efficiency of the genetic map with each value of each varied parameter (section 5.3)."""
    problem = draw(setting, seed)
    sent, groups = notifications(problem, seed), setting["groups"][0]
    result = {}
    for name, values in setting["varied"].items():
        for value in values:
            told = replace(params(groups), **{name: value})
            found = [
                desired(sent, genetic(problem, told, SEARCH_SEED * search + seed, never))
                for search in range(setting["searches"])
            ]
            result[f"{name} {value:g}"] = float(np.mean(found))
    return result


def fitness(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """Table 4: seconds for the fitness of a population, and in units of the first line's."""
    seconds = {size_name(size): fitness_seconds(size, seed) for size in setting["sizes"]}
    unit = next(iter(seconds.values()))
    return {
        f"{name} {what}": value / by
        for name, value in seconds.items()
        for what, by in (("seconds", 1.0), ("ratio", unit))
    }


def fitness_seconds(size: Sequence[int], seed: int) -> float:
    """The fitness of random maps, each computed in full; the least of several times."""
    population, groups, receivers, subscriptions = size
    options = {"subjects": subscriptions, "subscribers": receivers, "categories": 1}
    problem = generated("subjects", options, seed)
    genes = subscription_genes(problem, np.arange(problem.size), row_weight(problem, "volume", 1))
    rng = np.random.default_rng(seed)
    maps = rng.integers(groups, size=(population, problem.size), dtype=np.int32)
    map_costs(genes, maps, groups)
    times = []
    for _ in range(FITNESS_REPEATS):
        begin = time.perf_counter()
        map_costs(genes, maps, groups)
        times.append(time.perf_counter() - begin)
    return min(times)
