"""What a tree is worth to a search: its ledger, its objective, and the rules that it breaks."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fanplan.core.errors import InputError, Problem
from fanplan.layers.overlay.search.limits import Excess, Rules, TreeLimits, excess, rules_of
from fanplan.layers.overlay.search.offers import Offers, changes, link_price, offers_of, own_degrees
from fanplan.layers.overlay.search.swap import Prices
from fanplan.layers.overlay.search.traffic import Traffic, some_routes, traffic_of
from fanplan.network.brokers import OverlayProblem
from fanplan.network.carried import OverlayLedger, overlay_ledger
from fanplan.network.trees import Tree


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


@dataclass(frozen=True, eq=False)
class Judged:
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


@dataclass(frozen=True, eq=False)
class Search:
    """What stays the same while a tree is improved."""

    problem: OverlayProblem
    params: ImproveParams
    rules: Rules
    traffic: Traffic
    prices: Prices
    offers: Offers


def search_of(
    problem: OverlayProblem,
    params: ImproveParams,
    seed: int,
    start: Tree | None = None,
    shared: Tree | None = None,
) -> Search:
    """Prepare the arrays of a search; a sample of the routes depends on the seed.

    Changes are counted from ``start``; links of ``shared`` are there anyway, for other trees.
    """
    traffic = traffic_of(some_routes(problem.routes, params.most_ends, seed), problem.size)
    offers = offers_of(problem, params.cost, params.change_price, start, shared)
    arrivals = float(np.repeat(traffic.messages, np.diff(traffic.starts) - 1).sum())
    longest = max(1.0, float(offers.latency.max(initial=0.0)))
    worst = params.messages * float(traffic.messages.sum()) + params.delay * arrivals * longest
    worst += max(offers.fresh, float(offers.price.max(initial=0.0)))
    return Search(
        problem,
        params,
        rules_of(params.limits, problem.size, params.most_changes),
        traffic,
        Prices(float(params.messages), float(params.delay), 1.0 + problem.size * worst),
        offers,
    )


def judged(search: Search, tree: Tree) -> Judged:
    """A tree with its ledger and objective, counted from nothing."""
    problem, params, offers = search.problem, search.params, search.offers
    ledger = overlay_ledger(tree.edges, problem.latencies(tree.edges), problem.routes)
    objective = params.messages * ledger.link_messages + params.delay * ledger.delay
    objective += link_price(offers, tree)
    changed, degrees = changes(offers, tree), own_degrees(offers, tree)
    broken = excess(problem, tree, search.rules, ledger, degrees, changed)
    over = np.maximum(ledger.processed / problem.seconds - problem.capacity, 0.0)
    return Judged(tree, ledger, objective, broken, changed, float(over.sum()))
