"""One run: as many networks drawn as the paper has samples, and their costs summed up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fanplan.core.arrays import Bools, Floats
from fanplan.layers.marking.ledger import Counts, pub_everywhere, sub_everywhere, violations
from fanplan.layers.marking.problem.marking import MarkingProblem, Network, SourceTrees
from fanplan.layers.marking.problem.trees import shared_problem, source_problem
from fanplan.layers.marking.search.marking import Marking, exact_marking, shared_marking
from fanplan.papers.matchmaker.examples import examples
from fanplan.papers.matchmaker.networks import CORE, drawn_network
from fanplan.papers.matchmaker.settings import CLIENTS, COSTS, EXAMPLES, RATIOS, SCHEMES
from fanplan.papers.matchmaker.signalling import signalling


def sample(setting: dict[str, Any], seed: int) -> dict[str, float]:
    """What one run shows: medians, means and shares over its networks."""
    if setting["name"] == EXAMPLES:
        return examples()
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


def core_problem(network: Network) -> MarkingProblem:
    return shared_problem(network, network.name(CORE))


SOLVED: tuple[
    tuple[str, Callable[[Network], MarkingProblem], Callable[[MarkingProblem], Marking]], ...
] = (
    ("shared", core_problem, shared_marking),
    ("per-source", source_problem, exact_marking),
)
"""Kinds of trees, how they are made, and how they are marked best."""


def scheme_costs(problem: MarkingProblem, best: Marking) -> list[float]:
    """Descriptors sent by PubE, SubE and MCM."""
    counts = Counts(best.sigma, best.tau)
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
        for what, value in shares(mask).items()
    }


def shares(masks: list[Bools]) -> dict[str, float]:
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
