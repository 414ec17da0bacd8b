"""Our tree: thesis trees improved by swaps of links against the predicted ledger."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fanplan.errors import InputError, Problem
from fanplan.evaluation.overlay_ledger import OverlayLedger, overlay_ledger
from fanplan.planners.overlay.halves import Linked
from fanplan.planners.overlay.infeasible import not_found, require_possible
from fanplan.planners.overlay.limits import (
    Excess,
    Rules,
    TreeLimits,
    excess,
    latencies,
    link_costs,
    rules_of,
)
from fanplan.planners.overlay.shallow import shallow_trees
from fanplan.planners.overlay.similar import SIMILAR
from fanplan.planners.overlay.swap import Offers, Prices, best_swap
from fanplan.planners.overlay.traffic import Traffic, some_routes, traffic_of
from fanplan.planners.overlay.tree import NONE, Tree, neighbours, tree_of
from fanplan.planners.stop import Stop
from fanplan.problem.overlay import OverlayProblem

STARTS = 2
"""Starts that are improved, the best first."""


@dataclass(frozen=True)
class ImproveParams:
    """What the search minimises: messages on links, delays of arrivals, and costs of links.

    A delay is in hops, or in milliseconds where links are given. A search looks at a random part of
    the routes if they have more ends than ``most_ends``; results are judged by all of them.
    """

    messages: float = 1.0
    delay: float = 0.1
    cost: float = 0.0
    most_ends: int = 2_000_000
    limits: TreeLimits = field(default_factory=TreeLimits)

    def __post_init__(self) -> None:
        if min(self.messages, self.delay, self.cost) < 0:
            what = "a weight is below 0, so worse would be better"
            raise InputError(Problem("weights", what, "Use weights of at least 0"))


@dataclass(frozen=True, eq=False)
class Judged:
    """A tree with its ledger, its objective, and by how much it breaks the rules."""

    tree: Tree
    ledger: OverlayLedger
    objective: float
    excess: Excess

    @property
    def rank(self) -> tuple[int, float]:
        """Obeying goes before cheap."""
        return self.excess.total, self.objective


@dataclass(frozen=True, eq=False)
class Search:
    """What stays the same while trees are improved."""

    problem: OverlayProblem
    params: ImproveParams
    rules: Rules
    traffic: Traffic
    prices: Prices
    offers: Offers


def improved_tree(problem: OverlayProblem, params: ImproveParams, seed: int, stop: Stop) -> Judged:
    """The best tree found from the two most promising starts; an error if none obeys the limits.

    Starts are the trees by similarity, and the shallowest trees with busy brokers inside.
    """
    require_possible(problem, params.limits)
    search = search_of(problem, params, seed)
    starts = [*(make(problem) for make in SIMILAR.values()), *shallow_trees(problem, search.rules)]
    ranked = sorted((judged(search, tree) for tree in starts), key=lambda start: start.rank)
    found = [
        judged(search, descend(search, start.tree, np.random.default_rng((seed, i)), stop))
        for i, start in enumerate(ranked[:STARTS])
    ]
    best = min((*found, ranked[0]), key=lambda tree: tree.rank)
    if best.excess.total:
        raise not_found(params.limits, best.tree, best.excess)
    return best


def search_of(problem: OverlayProblem, params: ImproveParams, seed: int) -> Search:
    """Prepare the arrays of a search; a sample of the routes depends on the seed."""
    traffic = traffic_of(some_routes(problem.routes, params.most_ends, seed), problem.size)
    links = problem.links
    nothing, none = np.empty(0), np.empty(0, dtype=np.int64)
    offers = Offers(none, none, nothing, nothing, nothing)
    longest, dearest = 1.0, 0.0
    if links is not None:
        most = links.bandwidth * problem.seconds
        offers = Offers(
            links.a.astype(np.int64), links.b.astype(np.int64), links.latency_ms, most, links.cost
        )
        longest, dearest = float(links.latency_ms.max()), float(links.cost.max())
    arrivals = float(np.repeat(traffic.messages, np.diff(traffic.starts) - 1).sum())
    worst = params.messages * traffic.messages.sum() + params.delay * arrivals * longest
    breach = 1.0 + problem.size * float(worst + params.cost * dearest)
    return Search(
        problem,
        params,
        rules_of(params.limits, problem.size),
        traffic,
        Prices(float(params.messages), float(params.delay), float(params.cost), breach),
        offers,
    )


def judged(search: Search, tree: Tree) -> Judged:
    """A tree with its ledger and objective, counted from nothing."""
    problem, params = search.problem, search.params
    edges = np.stack((tree.a, tree.b), axis=1)
    ledger = overlay_ledger(edges, latencies(problem, tree), problem.routes)
    objective = params.messages * ledger.link_messages + params.delay * ledger.delay
    objective += params.cost * link_costs(problem, tree)
    return Judged(tree, ledger, objective, excess(problem, tree, search.rules, ledger))


def descend(search: Search, start: Tree, random: np.random.Generator, stop: Stop) -> Tree:
    """Swap links as long as a swap helps, visiting the links in random order.

    Each visit finds the best link in place of one. O(links · (brokers + what crosses)) per pass.
    """
    tree, linked = start, linked_of(search.problem, start)
    left, objective = len(tree.a), judged(search, tree).objective
    least = 1e-9 * (1.0 + objective)
    queue = random.permutation(left)
    while left > 0 and not stop(objective):
        for link in queue:
            u, v = int(tree.a[link]), int(tree.b[link])
            swap = best_swap(
                linked, search.traffic, search.rules, search.prices, search.offers, u, v
            )
            left -= 1
            if swap.x != NONE and swap.change < -least:
                changed = replaced(tree, int(link), swap.x, swap.y)
                if carries(search, tree, changed):
                    tree, linked = changed, linked_of(search.problem, changed)
                    objective += swap.change
                    left = len(queue)
            if left <= 0 or stop(objective):
                break
    return tree_of(tree.a, tree.b)


def replaced(tree: Tree, link: int, x: int, y: int) -> Tree:
    """The tree with another link at the same place; places are kept until the search ends."""
    a, b = tree.a.copy(), tree.b.copy()
    a[link], b[link] = min(x, y), max(x, y)
    return Tree(a, b)


def carries(search: Search, old: Tree, new: Tree) -> bool:
    """Whether a swap leaves no more links crowded than before, also links it does not replace."""
    if not np.isfinite(search.offers.most).any():
        return True
    return judged(search, new).excess.total <= judged(search, old).excess.total


def linked_of(problem: OverlayProblem, tree: Tree) -> Linked:
    starts, near = neighbours(tree)
    length = latencies(problem, tree)
    ends, others = np.concatenate((tree.a, tree.b)), np.concatenate((tree.b, tree.a))
    return Linked(starts, near, np.concatenate((length, length))[np.lexsort((others, ends))])
