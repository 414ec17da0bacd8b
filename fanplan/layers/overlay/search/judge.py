"""What a tree of brokers must obey, what it is worth, and how far it is from obeying."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.layers.overlay.search.offers import (
    Offers,
    TreeTraffic,
    changed_links,
    link_price,
    offers_of,
    own_degrees,
    some_routes,
    traffic_of,
)
from fanplan.network.brokers import OverlayProblem
from fanplan.network.carried import OverlayLedger, overlay_ledger
from fanplan.network.trees import Tree

NO_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class TreeLimits:
    """Limits of a tree; None and empty mean there is none.

    ``degree`` is for all brokers, ``degrees`` for single ones by position. ``hops`` are (broker,
    broker, most hops between them), by position.
    """

    degree: int | None = None
    degrees: tuple[tuple[int, int], ...] = ()
    diameter: int | None = None
    hops: tuple[tuple[int, int, int], ...] = ()

    def __post_init__(self) -> None:
        least = min([n for n in (self.degree, self.diameter) if n is not None], default=1)
        least = min([least, *(n for _, n in self.degrees), *(n for _, _, n in self.hops)])
        if least < 1:
            what = f"{least} is no limit that a tree can meet"
            raise InputError(Problem("limits", what, "Use degrees, diameters and hops from 1"))


@dataclass(frozen=True)
class ImproveParams:
    """What the search minimises: messages on links, delays of arrivals, and costs of links.

    A delay is in hops, or in milliseconds where links are given; a link costs 1 where none are. A
    search looks at a random part of the routes if they have more ends than ``most_ends``; results
    are judged by all of them. With a start, at most ``most_changes`` links may differ from it, and
    each of them costs ``change_price``.
    """

    messages: float = 1.0
    delay: float = 0.1
    cost: float = 0.0
    most_ends: int = 2_000_000
    limits: TreeLimits = field(default_factory=TreeLimits)
    most_changes: int | None = None
    change_price: float = 0.0

    def __post_init__(self) -> None:
        if min(self.messages, self.delay, self.cost, self.change_price) < 0:
            what = "a weight is below 0, so worse would be better"
            raise InputError(Problem("weights", what, "Use weights of at least 0"))
        if self.most_changes is not None and self.most_changes < 0:
            what = f"{self.most_changes} links cannot change"
            raise InputError(Problem("changes", what, "Use 0 or more"))


class TreeRules(NamedTuple):
    """Limits as a search reads them: a degree for each broker, and pairs with their most hops."""

    degree: Longs
    diameter: int
    near: Ints
    far: Ints
    hops: Ints
    changes: int


class SwapPrices(NamedTuple):
    """What a message on a link and a unit of delay add to the objective.

    ``breach`` is for each unit by which a rule is broken: more than any tree costs.
    """

    message: float
    delay: float
    breach: float


class SwapTerms(NamedTuple):
    """What swaps of links are judged by."""

    traffic: TreeTraffic
    rules: TreeRules
    prices: SwapPrices
    offers: Offers


@dataclass(frozen=True, eq=False)
class TreeSearch:
    """What stays the same while a tree is improved."""

    problem: OverlayProblem
    params: ImproveParams
    terms: SwapTerms

    @property
    def rules(self) -> TreeRules:
        return self.terms.rules

    @property
    def offers(self) -> Offers:
        return self.terms.offers


@dataclass(frozen=True)
class Excess:
    """By how much a tree breaks each rule; 0 where it holds."""

    degree: int
    diameter: int
    hops: int
    bandwidth: int
    """links with more messages than they carry"""
    changes: int = 0

    @property
    def total(self) -> int:
        return self.degree + self.diameter + self.hops + self.bandwidth + self.changes


@dataclass(frozen=True, eq=False)
class JudgedTree:
    """A tree with its ledger, its objective, and by how much it breaks the rules.

    ``changed`` is how many of its links are not in the start; 0 without one. ``overload`` adds up
    what brokers process beyond their capacity, in messages per second.
    """

    tree: Tree
    ledger: OverlayLedger
    objective: float
    excess: Excess
    changed: int
    overload: float

    @property
    def rank(self) -> tuple[int, float, float]:
        """Obeying goes before what brokers can take, and that before cheap."""
        return self.excess.total, self.overload, self.objective


def search_of(
    problem: OverlayProblem,
    params: ImproveParams,
    seed: int,
    start: Tree | None = None,
    shared: Tree | None = None,
) -> TreeSearch:
    """Prepare the arrays of a search; a sample of the routes depends on the seed.

    Changes are counted from ``start``; links of ``shared`` are there anyway, for other trees.
    """
    traffic = traffic_of(some_routes(problem.routes, params.most_ends, seed), problem.size)
    offers = offers_of(problem, params.cost, params.change_price, start, shared)
    arrivals = float(np.repeat(traffic.messages, np.diff(traffic.starts) - 1).sum())
    longest = max(1.0, float(offers.latency.max(initial=0.0)))
    worst = params.messages * float(traffic.messages.sum()) + params.delay * arrivals * longest
    worst += max(offers.fresh, float(offers.price.max(initial=0.0)))
    rules = rules_of(params.limits, problem.size, params.most_changes)
    prices = SwapPrices(float(params.messages), float(params.delay), 1.0 + problem.size * worst)
    return TreeSearch(problem, params, SwapTerms(traffic, rules, prices, offers))


def rules_of(limits: TreeLimits, brokers: int, most_changes: int | None = None) -> TreeRules:
    degree = np.full(brokers, NO_LIMIT if limits.degree is None else limits.degree, dtype=np.int64)
    for broker, most in limits.degrees:
        degree[broker] = most
    pairs = np.array(limits.hops, dtype=np.int32).reshape(-1, 3)
    apart = pairs[pairs[:, 0] != pairs[:, 1]]
    diameter = NO_LIMIT if limits.diameter is None else limits.diameter
    near, far, hops = (np.ascontiguousarray(column) for column in apart.T)
    changes = NO_LIMIT if most_changes is None else most_changes
    return TreeRules(degree, diameter, near, far, hops, changes)


def judge_tree(search: TreeSearch, tree: Tree) -> JudgedTree:
    """A tree with its ledger and objective, counted from nothing."""
    problem, params, offers = search.problem, search.params, search.offers
    ledger = overlay_ledger(tree.edges, problem.latencies(tree.edges), problem.routes)
    objective = params.messages * ledger.link_messages + params.delay * ledger.delay
    objective += link_price(offers, tree)
    changed, degrees = changed_links(offers, tree), own_degrees(offers, tree)
    broken = tree_excess(problem, tree, search.rules, ledger, degrees, changed)
    over = np.maximum(ledger.processed / problem.seconds - problem.capacity, 0.0)
    return JudgedTree(tree, ledger, objective, broken, changed, float(over.sum()))


def tree_excess(
    problem: OverlayProblem,
    tree: Tree,
    rules: TreeRules,
    ledger: OverlayLedger,
    degrees: Longs,
    changed: int,
) -> Excess:
    """How far a tree is from obeying, given the links that count at each broker.

    O(brokers × pairs).
    """
    return Excess(
        int(np.maximum(degrees - rules.degree, 0).sum()),
        max(0, tree.diameter - rules.diameter) if rules.diameter < NO_LIMIT else 0,
        too_many_hops(tree, rules),
        int((load_of(problem, ledger) > bandwidths(problem, tree) * (1 + 1e-12)).sum()),
        max(0, changed - rules.changes),
    )


def too_many_hops(tree: Tree, rules: TreeRules) -> int:
    """By how many hops in all pairs are further apart than they may be."""
    pairs = zip(rules.near, rules.far, rules.hops, strict=True)
    return sum(max(0, int(tree.hops(near)[far]) - int(most)) for near, far, most in pairs)


def load_of(problem: OverlayProblem, ledger: OverlayLedger) -> Floats:
    """Messages per second on each link, both ways together."""
    return np.asarray(ledger.link.sum(axis=1) / problem.seconds)


def bandwidths(problem: OverlayProblem, tree: Tree) -> Floats:
    """Messages per second that each link of a tree can carry."""
    links = problem.links
    if links is None:
        return np.full(len(tree.a), np.inf)
    return links.bandwidth[problem.given(tree.edges)]
