"""One sample: a scenario drawn, mapped by the paper's methods and ours, and 1,000 notifications.

Efficiency is desired of all received (section 5.3), over notifications drawn by the subjects'
throughput. The heavy part is mapped, the rest goes point to point, for every method.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from fanplan.core.prices import Weights
from fanplan.core.stop import never
from fanplan.data.build import from_pairs
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import analytic_ledger
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.published.genetic.genes import (
    map_costs,
    subscription_genes,
    used_channels,
)
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
    lists,
    one_per_subscriber,
)
from fanplan.layers.channels.published.genetic.weight import row_weight
from fanplan.layers.channels.search.kmodes import kmodes
from fanplan.papers.genetic.settings import size_name
from fanplan.workload.generators import load_kind

NOTIFICATIONS = 1000
RECEPTIONS = Weights(w2=1e-6)
"""The paper counts what is received, not what is sent."""

FEW = 8
"""Swaps of kmodes, whose searches without unicast are long; its default is 64."""
FITNESS_REPEATS = 200
SEARCH_SEED = 1000
"""Between the seeds of the searches of one run, so that runs share none."""


def sample_genetic(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """What one run of a setting measures, by its task."""
    tasks = {
        "efficiency": efficiencies,
        "tuning": varied_efficiencies,
        "fitness": fitness_times_and_ratios,
        "tables": table_costs,
    }
    return tasks[setting["task"]](setting, seed)


def draw_scenario(setting: dict[str, Any], seed: int) -> SubscriptionProblem:
    """The setting's workload (sections 5.1 and 5.2)."""
    options = {
        "subjects": setting["subjects"],
        "categories": setting["categories"],
        "subscribers": setting["subscribers"],
        "subjects_per_subscriber": setting["chosen"],
        "p": float(setting["p"]),
    }
    return kind_subscriptions(setting["kind"], options, seed)


def kind_subscriptions(name: str, options: dict[str, Any], seed: int) -> SubscriptionProblem:
    kind = load_kind(name)
    return generated_subscriptions(kind.generate(kind.params(**options), seed))


def efficiencies(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """Efficiency and seconds of each method at each number of groups, and how groups help."""
    compile_all()
    problem, result = draw_scenario(setting, seed), {}
    sent = notifications(problem, seed)
    for groups in setting["groups"]:
        for name, method in METHODS.items():
            begin = time.perf_counter()
            made = method(problem, groups, seed)
            result[f"{name} seconds @ {groups}"] = time.perf_counter() - begin
            result[f"{name} @ {groups}"] = desired(sent, made)
        genetic_, dealt = (result[f"{name} @ {groups}"] for name in ("genetic", "round-robin"))
        result[f"ratio @ {groups}"] = genetic_ / dealt
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


def paper_params(groups: int) -> GeneticParams:
    """The paper's; its notifications are uniform over a subject, so volumes are right."""
    return GeneticParams(groups, probability="volume")


def by_genetic(problem: SubscriptionProblem, groups: int, seed: int) -> ChannelMap:
    return genetic(problem, paper_params(groups), seed, never)


def by_broadcast(problem: SubscriptionProblem, groups: int, _seed: int) -> ChannelMap:
    chosen = heavy_subscriptions(problem, paper_params(groups))
    return map_subscriptions(problem, chosen, np.zeros(len(chosen), dtype=np.int32), 1)


def by_round_robin(problem: SubscriptionProblem, groups: int, _seed: int) -> ChannelMap:
    """Section 5.2: subjects are dealt to groups in turn, with all their subscriptions."""
    chosen = heavy_subscriptions(problem, paper_params(groups))
    subject = np.unique(problem.topic[chosen], return_inverse=True)[1]
    return map_subscriptions(problem, chosen, (subject % groups).astype(np.int32), groups)


def by_atomic(problem: SubscriptionProblem, groups: int, seed: int) -> ChannelMap:
    rows, heavy = wanted_of(problem, heavy_subscriptions(problem, paper_params(groups)))
    made = genetic_atomic(heavy, AtomicParams(groups), seed, never)
    return map_rest(problem.interest, rows, made)


def by_kmodes(problem: SubscriptionProblem, groups: int, seed: int) -> ChannelMap:
    rows, heavy = wanted_of(problem, heavy_subscriptions(problem, paper_params(groups)))
    limits = KmodesParams(groups, RECEPTIONS, unicast_limit=0.0, lone=True, swaps=FEW)
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
        method(kind_subscriptions("subjects", tiny, 0), 2, 0)


def varied_efficiencies(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """Efficiency of the genetic map with each value of each varied parameter (section 5.3)."""
    problem = draw_scenario(setting, seed)
    sent, groups = notifications(problem, seed), setting["groups"][0]
    result = {}
    for name, values in setting["varied"].items():
        for value in values:
            told = replace(paper_params(groups), **{name: value})
            found = [
                desired(sent, genetic(problem, told, SEARCH_SEED * search + seed, never))
                for search in range(setting["searches"])
            ]
            result[f"{name} {value:g}"] = float(np.mean(found))
    return result


def fitness_times_and_ratios(setting: dict[str, Any], seed: int) -> dict[str, float]:
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
    problem = kind_subscriptions("subjects", options, seed)
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


# ---- Tables 1 to 3: a subscription set, two maps, and their costs

TABLE_1 = "a:ABG b:A c:BG d:A e:D g:C h:C i:CD t:EHI u:FJK v:BG x:FJK z:EHI"
SUBSCRIPTIONS = dict(pair.split(":") for pair in TABLE_1.split())
"""Table 1: the subscribers of each subject."""

MAPS = {
    "a": "a:ABG bd:A cv:BG gh:C ei:CD ux:FJK tz:EHI",
    "b": "acv:BG abd:A ghi:C ei:D ux:FJK tz:EHI",
}
"""Table 2: the subjects and the members of each group."""

SUBSCRIBERS = "ABCDEFGHIJK"
SUBJECTS = "".join(SUBSCRIPTIONS)


def table_costs(_setting: dict[str, Any], _seed: int) -> dict[str, float]:
    """Table 3: the cost of both maps in units of W(e), and the groups that they use."""
    weights = np.exp2(np.arange(len(SUBJECTS), dtype=np.float64))
    problem = one_per_subscriber(subscription_set())
    genes = subscription_genes(problem, np.arange(problem.size), weights)
    result = {}
    for name, told in MAPS.items():
        groups = [group.split(":") for group in told.split()]
        map = np.array([[*group_numbers(problem, groups)]], dtype=np.int32)
        cost = map_costs(genes, map, len(groups)).sum()
        result[f"map {name}, cost"] = float(cost / weights[SUBJECTS.index("e")])
        result[f"map {name}, groups"] = float(used_channels(map, len(groups))[0])
    return result


def subscription_set() -> SubscriptionProblem:
    """Table 1; every subject sends the same."""
    pairs = [(s, SUBSCRIBERS.index(w)) for s, own in enumerate(SUBSCRIPTIONS.values()) for w in own]
    subject, who = np.array(pairs, dtype=np.int32).T
    numbers, ones = np.arange(len(SUBJECTS)), np.ones(len(SUBJECTS))
    single = lists(numbers, numbers, len(SUBJECTS))
    return SubscriptionProblem(
        topic=numbers.astype(np.int32),
        boxes=single,
        lo=np.zeros((len(SUBJECTS), 1)),
        hi=np.ones((len(SUBJECTS), 1)),
        subscribers=lists(subject, who, len(SUBJECTS)),
        rows=single,
        hits=np.ones(len(SUBJECTS), dtype=np.int64),
        interest=from_pairs(subject, who, ones, names=pa.array(SUBSCRIBERS), kind="flow"),
        row_topic=numbers,
        row_volume=ones,
        topic_messages=ones,
        topic_volume=ones,
        root_hits=ones,
    )


def group_numbers(problem: SubscriptionProblem, groups: Sequence[Sequence[str]]) -> Iterator[int]:
    """Which group has both the subject and the subscriber of each single subscription."""
    for subject, who in zip(problem.topic, problem.subscribers.values, strict=True):
        names = SUBJECTS[subject], SUBSCRIBERS[who]
        found = (names[0] in subjects and names[1] in members for subjects, members in groups)
        yield list(found).index(True)
