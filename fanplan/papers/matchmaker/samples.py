"""What is sampled: the networks of Ge et al. (2002), section 4.1, and what they cost.

A run draws as many networks as the paper has samples, and sums up their costs. What the paper left
to future work is measured too: the signalling of the protocol of section 5, while the same
publishers and subscribers come and go under all three schemes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fanplan.core.arrays import Bools, Floats
from fanplan.layers.marking.ledger import (
    DescriptorCounts,
    pub_everywhere,
    sub_everywhere,
    violations,
)
from fanplan.layers.marking.problem.marking import MarkedNetwork, MarkingProblem, SourceTrees
from fanplan.layers.marking.problem.trees import shared_problem, source_problem
from fanplan.layers.marking.protocol.churn import MarkingChurn, marking_churn
from fanplan.layers.marking.protocol.messages import MESSAGES
from fanplan.layers.marking.protocol.node import Scheme
from fanplan.layers.marking.search.marking import Marking, exact_marking, shared_marking
from fanplan.network.brokers import Links
from fanplan.papers.matchmaker.examples import EXAMPLES, example_figures
from fanplan.workload.generators.networks import TransitStubParams, draw_transit_stub

TREES = ("shared", "per-source")
SCHEMES = ("PubE", "SubE", "MCM")
CLIENTS = ("subscribers", "publishers")

MIDDLE = 10
"""Publishers, and subscribers, where their number is not varied."""

COSTS = (*range(50, 500, 50), *range(500, 1000, 100), *range(1000, 3001, 200))
"""Where the distributions of Figures 8 and 11 are read off."""

RATIOS = tuple(percent / 100 for percent in range(5, 101, 5))
"""Where those of Figures 9 and 12 are."""


@dataclass(frozen=True)
class MatchmakerSizes:
    """How much is sampled."""

    networks: int
    """Networks of a run: the paper's samples."""
    clients: tuple[int, ...]
    """The horizontal axis of Figures 10 and 13, ``MIDDLE`` among them."""
    churned: int
    """Networks of a run in which clients come and go."""
    events: int
    """How many of them do so in each."""


FULL = MatchmakerSizes(1_000, (5, 10, 20, 30, 40, 50), 3, 40)
QUICK = MatchmakerSizes(50, (5, 10, 30, 50), 1, 20)


def matchmaker_settings(sizes: MatchmakerSizes) -> tuple[dict[str, Any], ...]:
    """All settings, the longest first."""
    varied = dict.fromkeys(
        pair for count in reversed(sizes.clients) for pair in ((count, MIDDLE), (MIDDLE, count))
    )
    return (
        *(churn_setting(sizes, trees) for trees in reversed(TREES)),
        *(networks_setting(sizes, *pair) for pair in varied),
        networks_setting(sizes, MIDDLE, MIDDLE, floor=True),
        {"name": EXAMPLES},
    )


def networks_setting(
    sizes: MatchmakerSizes, publishers: int, subscribers: int, floor: bool = False
) -> dict[str, Any]:
    return {
        "name": network_name(publishers, subscribers, floor),
        "networks": sizes.networks,
        "publishers": publishers,
        "subscribers": subscribers,
        "floor": int(floor),
    }


def churn_setting(sizes: MatchmakerSizes, trees: str) -> dict[str, Any]:
    """Clients that come and go, on one kind of trees."""
    return networks_setting(sizes, MIDDLE, MIDDLE) | {
        "name": churn_name(trees),
        "trees": trees,
        "networks": sizes.churned,
        "events": sizes.events,
    }


def churn_name(trees: str) -> str:
    return f"clients come and go, {trees} trees"


def network_name(publishers: int = MIDDLE, subscribers: int = MIDDLE, floor: bool = False) -> str:
    """The setting in which this many clients are measured."""
    law = ", rounded down" if floor else ""
    return f"{publishers} publishers, {subscribers} subscribers{law}"


def settings_along(sizes: MatchmakerSizes, clients: str) -> Iterator[tuple[int, str]]:
    """The numbers of one kind of clients, and the setting of each."""
    for count in sizes.clients:
        pair = (count, MIDDLE) if clients == "publishers" else (MIDDLE, count)
        yield count, network_name(*pair)


# ---- a run

CORE = 0
"""The first transit node: all are drawn alike, so that it is as good as any."""


def sample_matchmaker(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """What one run shows: medians, means and shares over its networks."""
    if setting["name"] == EXAMPLES:
        return example_figures()
    if "events" in setting:
        return signalling(setting, seed)
    many = setting["networks"]
    drawn = [drawn_network(setting, seed * many + i) for i in range(many)]
    result: dict[str, float] = {}
    for trees, problem_of, mark in SOLVED:
        problems = [problem_of(network) for network in drawn]
        solved = [(problem, mark(problem)) for problem in problems]
        costs = np.array([scheme_costs(*pair) for pair in solved])
        figures = {**dict(cost_figures(costs, setting)), **dict(ratio_figures(costs))}
        if trees == "per-source":
            figures |= entangled_figures(solved)
        result |= {f"{trees} {key}": value for key, value in figures.items()}
    return result


def drawn_network(setting: dict[str, Any], seed: int) -> MarkedNetwork:
    """100 nodes of a transit-stub network, with the clients that the setting names."""
    params = TransitStubParams(
        publishers=setting["publishers"], subscribers=setting["subscribers"], floor=setting["floor"]
    )
    world = draw_transit_stub(params, seed)
    ones = np.ones(len(world.a))
    links = Links(world.a, world.b, world.latency_ms, ones * np.inf, ones)
    return MarkedNetwork(world.nodes, world.published, world.subscribed, links)


def core_problem(network: MarkedNetwork) -> MarkingProblem:
    return shared_problem(network, network.name(CORE))


SOLVED: tuple[
    tuple[str, Callable[[MarkedNetwork], MarkingProblem], Callable[[MarkingProblem], Marking]], ...
] = (("shared", core_problem, shared_marking), ("per-source", source_problem, exact_marking))
"""Kinds of trees, how they are made, and how they are marked best."""


def scheme_costs(problem: MarkingProblem, best: Marking) -> list[float]:
    """Descriptors sent by PubE, SubE and MCM."""
    counts = DescriptorCounts(best.sigma, best.tau)
    return [pub_everywhere(problem, counts), sub_everywhere(problem, counts), best.cost]


def cost_figures(costs: Floats, setting: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Figures 8, 10, 11 and 13; ``costs`` is networks × schemes."""
    for scheme, cost in zip(SCHEMES, costs.T, strict=True):
        yield f"{scheme} median", float(np.median(cost))
        yield f"{scheme} 90 %", float(np.quantile(cost, 0.9))
        yield f"{scheme} mean", float(cost.mean())
        for clients in CLIENTS:
            yield f"{scheme} mean per {clients}", float(cost.mean() / setting[clients])
        for most in COSTS:
            yield f"{scheme} up to {most}", float((cost <= most).mean())


def ratio_figures(costs: Floats) -> Iterator[tuple[str, float]]:
    """Figures 9 and 12: MCM against each of the others, and against the cheaper of them.

    Without a link in use all cost nothing, and nothing is saved.
    """
    best = costs[:, 2]
    others = {"PubE": costs[:, 0], "SubE": costs[:, 1], "cheaper": costs[:, :2].min(axis=1)}
    for name, other in others.items():
        ratio = np.divide(best, other, out=np.ones_like(best), where=other > 0)
        for most in RATIOS:
            yield f"of {name} below {most:g}", float((ratio < most).mean())


# ---- section 5: how often links cannot be decided each on its own


def entangled_figures(solved: list[tuple[MarkingProblem, Marking]]) -> dict[str, float]:
    """Shares of the networks, and of the links of those networks that are concerned."""
    masks = {
        "not monotone": [out_of_order(problem, best) for problem, best in solved],
        "greedy invalid": [broken_links(problem, best) for problem, best in solved],
        "entangled": [best.part >= 0 for _, best in solved],
    }
    return {
        f"{name} {what}": value
        for name, mask in masks.items()
        for what, value in network_and_link_shares(mask).items()
    }


def network_and_link_shares(masks: list[Bools]) -> dict[str, float]:
    """How many networks have any such link, and how many links such networks have of them."""
    some = [mask for mask in masks if mask.any()]
    links = float(np.concatenate(some).mean()) if some else 0.0
    return {"networks": len(some) / len(masks), "links": links}


def out_of_order(problem: MarkingProblem, best: Marking) -> Bools:
    """Links before or behind which σ falls or τ rises: property 3 of section 3.2 is violated."""
    trees = problem.trees
    assert isinstance(trees, SourceTrees)
    inner = np.flatnonzero(trees.above >= 0)
    link, before = trees.link[inner], trees.link[trees.above[inner]]
    wrong = (best.sigma[before] > best.sigma[link]) | (best.tau[before] < best.tau[link])
    mask = np.zeros(problem.size, bool)
    mask[link[wrong]] = mask[before[wrong]] = True
    return mask


def broken_links(problem: MarkingProblem, best: Marking) -> Bools:
    """P-links behind s-links if every link takes the cheaper mark, as on a shared tree."""
    mask = np.zeros(problem.size, bool)
    mask[violations(problem, best.sigma < best.tau)] = True
    return mask


# ---- section 6: signalling

PROTOCOL_SCHEMES: dict[str, Scheme] = {
    "PubE": "pub_everywhere",
    "SubE": "sub_everywhere",
    "MCM": "best",
}

PURPOSES = {
    "trees": ("source", "graft"),
    "counts and marks": ("count", "mark", "gather", "solve"),
    "descriptors": ("advertise", "subscribe", "withdraw"),
    "data path": ("signal", "release"),
    "all": MESSAGES,
}
"""What messages are for, by their kinds; nothing is lost here, so that nothing is repeated."""


def signalling(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """Means over a few networks, each with events of its own."""
    many = setting["networks"]
    runs = [dict(churn_figures(setting, seed * many + i)) for i in range(many)]
    return {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}


def churn_figures(setting: dict[str, Any], seed: int) -> Iterator[tuple[str, float]]:
    """Messages for each event, and descriptors stored on average whenever the network rests."""
    network = drawn_network(setting, seed)
    trees = f"shared:{network.name(CORE)}" if setting["trees"] == "shared" else setting["trees"]
    churn = MarkingChurn(events=setting["events"], seed=seed, trees=trees)
    schemes = marking_churn(network, churn).summary()["schemes"]
    for name, scheme in PROTOCOL_SCHEMES.items():
        figures = schemes[scheme]
        yield f"{name} stored", figures["stored_mean"]
        sent = figures["by_kind_per_event"]
        for purpose, kinds in PURPOSES.items():
            yield f"{name} {purpose}", sum(sent.get(kind, 0.0) for kind in kinds)
