"""One sample: a workload of section 5.1 drawn, its groups chosen, and all four metrics counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from fanplan.layers.groups.ledger import GroupsLedger, groups_ledger
from fanplan.layers.groups.params import EntryBudget, GroupChoice, GroupPrices, Rank, Top
from fanplan.layers.groups.problem.build import exact_groups
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.problem.trees import hung_at
from fanplan.layers.groups.search.choose import Candidates, candidates_of, choose_among
from fanplan.network.brokers import Routes
from fanplan.workload.generators.draws import names
from fanplan.workload.generators.networks import TreeGridParams, draw_tree_grid

SCENARIOS = {"uni-uni": (0, 0), "zipf-uni": (1, 0), "zipf-zipf": (1, 1)}
"""Whether leaves per cell, and messages per cell, follow Zipf's law (section 5.1)."""

SHARES = (10, 20, 100)
"""Percent of the groups that are set up."""

DEFAULT, HYBRID, SHORT = "content-based", "hybrid", "hybrid+shortcuts"
WAYS = (DEFAULT, HYBRID, SHORT)

RANKS: tuple[Rank, ...] = ("nc", "fc")


def hyper_settings() -> tuple[dict[str, Any], ...]:
    return tuple(
        {"name": name, "zipf_leaves": leaves, "zipf_messages": messages}
        for name, (leaves, messages) in SCENARIOS.items()
    )


def sample_hyper(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """What one workload shows: a number for each way, share and metric."""
    problem = paper_problem(setting["zipf_leaves"], setting["zipf_messages"], seed)
    result: dict[str, float] = {"groups": float(problem.size)}
    plain, short = (candidates_of(problem, shortcuts) for shortcuts in (False, True))
    for share in SHARES:
        for way in WAYS:
            ledger = ledger_of_way(problem, short if way == SHORT else plain, way, share)
            figures = {**ledger.summary(), **dict(by_server(ledger))}
            result |= {f"{way} {share} {key}": value for key, value in figures.items()}
        for rank in RANKS if share < 100 else ():
            theirs, ours = at_equal_state(problem, short, rank, share)
            result |= {f"{rank} {share} cost": theirs, f"{rank} {share} ours": ours}
    return result


def paper_problem(zipf_leaves: int, zipf_messages: int, seed: int) -> GroupsProblem:
    """The cells of a seed as routes from the root: cells are atomic, so groups are exact."""
    params = TreeGridParams(zipf_leaves=zipf_leaves, zipf_messages=zipf_messages)
    world = draw_tree_grid(params, seed)
    child = np.arange(1, params.brokers)
    links = np.stack((world.parent[child], child), axis=1)
    routes = Routes(
        source=np.zeros(params.cells, np.int32),
        starts=world.starts,
        brokers=world.leaves,
        messages=world.messages,
        deliveries=world.messages * np.diff(world.starts),
    )
    brokers: pa.Array = names("b", params.brokers)
    return exact_groups(brokers, hung_at(links, np.array([0]), params.brokers), routes)


def ledger_of_way(
    problem: GroupsProblem, candidates: Candidates, way: str, share: int
) -> GroupsLedger:
    """The paper's selection: the best by leaves × messages, which fits its tables."""
    wanted = 0.0 if way == DEFAULT else share / 100
    chosen = choose_among(candidates, GroupChoice(Top(wanted), "nc"))
    return groups_ledger(problem, chosen.selected, way == SHORT)


def by_server(ledger: GroupsLedger) -> Iterator[tuple[str, float]]:
    """Figures 8 to 25: each leaf, and each inner server, from the lowest figure to the highest.

    Leaves are alike but for chance, and so are servers of a level: by number, means of many runs
    would hide what the figures show.
    """
    leaf = ledger.arrived > 0
    inner = ledger.inner
    for key, values in (
        ("delay", ledger.delay[leaf] / ledger.arrived[leaf]),
        ("messages", ledger.received[inner] / ledger.publications),
        ("matches", ledger.matched[inner] / ledger.publications),
    ):
        for place, value in enumerate(np.sort(values), start=1):
            yield f"{key} of {place}", float(value)


def at_equal_state(
    problem: GroupsProblem, candidates: Candidates, rank: Rank, share: int
) -> tuple[float, float]:
    """The cost of the best share by a benefit, and of our choice for as many entries.

    In percent of the cost of default routing.
    """
    theirs = choose_among(candidates, GroupChoice(Top(share / 100), rank))
    ledger = groups_ledger(problem, theirs.selected)
    ours = choose_among(candidates, GroupChoice(EntryBudget(ledger.entries)))
    default = priced_cost(groups_ledger(problem, np.zeros(problem.size, bool)))
    return (
        100 * priced_cost(ledger) / default,
        100 * priced_cost(groups_ledger(problem, ours.selected)) / default,
    )


def priced_cost(ledger: GroupsLedger) -> float:
    """Matches, messages, entries and control messages together, at the prices of the choice."""
    prices = GroupPrices()
    return (
        prices.matched * ledger.matches
        + prices.forwarded * float(ledger.received.sum())
        + prices.entry * ledger.entries
        + prices.control * ledger.control
    )
