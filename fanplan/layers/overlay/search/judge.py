"""What a search over trees is given: limits, traffic and links; and what a tree is worth to it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Bools, Floats, Ints, Longs, places_among, starts_of
from fanplan.network.brokers import OverlayProblem, Routes
from fanplan.network.carried import OverlayLedger, overlay_ledger
from fanplan.network.trees import Tree, tree_of

NO_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class TreeLimits:
    """Limits of a tree, from 1; None and empty mean there is none.

    ``degree`` is for all brokers, ``degrees`` for single ones by position. ``hops`` are (broker,
    broker, most hops between them), by position.
    """

    degree: int | None = None
    degrees: tuple[tuple[int, int], ...] = ()
    diameter: int | None = None
    hops: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class ImproveParams:
    """What the search minimises: messages on links, delays of arrivals, and costs of links.

    A delay is in hops, or in milliseconds where links are given; a link costs 1 where none are. A
    search looks at a random part of the routes if they have more ends than ``most_ends``; results
    are judged by all of them. With a start, at most ``most_changes`` links may differ from it, and
    each of them costs ``change_price``. No weight is below 0.
    """

    messages: float = 1.0
    delay: float = 0.1
    cost: float = 0.0
    most_ends: int = 2_000_000
    limits: TreeLimits = field(default_factory=TreeLimits)
    most_changes: int | None = None
    change_price: float = 0.0


class TreeRules(NamedTuple):
    """Limits as a search reads them: a degree for each broker, and pairs with their most hops."""

    degree: Longs
    diameter: int
    near: Ints
    far: Ints
    hops: Ints
    changes: int


class SwapTerms(NamedTuple):
    """What swaps of links are judged by.

    ``message`` and ``delay`` are what a message on a link and a unit of delay add to the objective.
    ``breach`` is for each unit by which a rule is broken: more than any tree costs.
    """

    traffic: TreeTraffic
    rules: TreeRules
    offers: Offers
    message: float
    delay: float
    breach: float


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
    traffic = crossing(some_routes(problem.routes, params.most_ends, seed), problem.size)
    offers = offers_of(problem, params.cost, params.change_price, start, shared)
    if not offers.open:
        # Where nothing passes, any link would do for the price: an engineer takes the quickest.
        sent = max(1.0, float(traffic.messages.sum()))
        idle = IDLE * params.messages * sent * offers.latency
        offers = offers._replace(price=offers.price + np.where(offers.shared, 0.0, idle))
    arrivals = float(np.repeat(traffic.messages, np.diff(traffic.starts) - 1).sum())
    longest = max(1.0, float(offers.latency.max(initial=0.0)))
    worst = params.messages * float(traffic.messages.sum()) + params.delay * arrivals * longest
    worst += max(offers.fresh, float(offers.price.max(initial=0.0)))
    rules = rules_of(params.limits, problem.size, params.most_changes)
    # No tree costs as much as one breach, so a single number ranks trees (decision 15).
    prices = float(params.messages), float(params.delay), 1.0 + problem.size * worst
    return TreeSearch(problem, params, SwapTerms(traffic, rules, offers, *prices))


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


# ---- what a tree is worth


class Excess(NamedTuple):
    """By how much a tree breaks each rule; 0 where it holds."""

    degree: int
    diameter: int
    hops: int
    bandwidth: int
    """links with more messages than they carry"""
    changes: int


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
        return sum(self.excess), self.overload, self.objective


def judge_tree(search: TreeSearch, tree: Tree) -> JudgedTree:
    """A tree with its ledger and objective, counted from nothing. O(brokers × pairs)."""
    problem, params, offers, rules = search.problem, search.params, search.offers, search.rules
    ledger = overlay_ledger(tree.edges, problem.latencies(tree.edges), problem.routes)
    objective = params.messages * ledger.link_messages + params.delay * ledger.delay
    objective += link_price(offers, tree)
    changed = changed_links(offers, tree)
    excess = Excess(
        int(np.maximum(own_degrees(offers, tree) - rules.degree, 0).sum()),
        max(0, tree.diameter - rules.diameter) if rules.diameter < NO_LIMIT else 0,
        too_many_hops(tree, rules),
        int((load_of(problem, ledger) > bandwidths(problem, tree) * (1 + 1e-12)).sum()),
        max(0, changed - rules.changes),
    )
    over = np.maximum(ledger.processed / problem.seconds - problem.capacity, 0.0)
    return JudgedTree(tree, ledger, objective, excess, changed, float(over.sum()))


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


# ---- traffic by its ends


class TreeTraffic(NamedTuple):
    """Routes by their ends: the source and the destinations, each broker once.

    The ends of route i are ``ends[starts[i]:starts[i + 1]]``, the source first. ``at`` and
    ``routes`` list the routes of each broker.
    """

    starts: Longs
    ends: Ints
    messages: Floats
    at: Longs
    routes: Ints


def crossing(routes: Routes, brokers: int) -> TreeTraffic:
    """Routes with a link to cross; the others cost nothing on any tree."""
    sizes = np.diff(routes.starts)
    row = np.repeat(np.arange(len(routes)), sizes)
    away = routes.brokers != routes.source[row]
    kept = np.flatnonzero(np.bincount(row[away], minlength=len(routes)) > 0)
    number = np.full(len(routes), NONE)
    number[kept] = np.arange(len(kept))
    rows = np.concatenate((np.arange(len(kept)), number[row[away]]))
    order = np.argsort(rows, kind="stable")
    ends = np.concatenate((routes.source[kept], routes.brokers[away]))[order].astype(np.int32)
    by_broker = np.argsort(ends, kind="stable")
    return TreeTraffic(
        starts_of(np.bincount(rows, minlength=len(kept))),
        ends,
        routes.messages[kept].astype(np.float64),
        starts_of(np.bincount(ends, minlength=brokers)),
        rows[order][by_broker].astype(np.int32),
    )


def some_routes(routes: Routes, most_ends: int, seed: int) -> Routes:
    """All routes, or a random part of them with about this many ends and as many messages."""
    share = most_ends / max(len(routes.brokers) + len(routes), 1)
    if share >= 1:
        return routes
    chosen = np.random.default_rng((seed, 0)).random(len(routes)) < share
    part = chosen_routes(routes, chosen)
    return replace(part, messages=part.messages / share, deliveries=part.deliveries / share)


def chosen_routes(routes: Routes, chosen: Bools) -> Routes:
    """The routes with a mark."""
    sizes = np.diff(routes.starts)
    return Routes(
        routes.source[chosen],
        starts_of(sizes[chosen]),
        routes.brokers[np.repeat(chosen, sizes)],
        routes.messages[chosen],
        routes.deliveries[chosen],
    )


# ---- links at their price


IDLE = 1e-6
"""What a millisecond of a link costs, as a share of all messages: it decides between equals."""


class Offers(NamedTuple):
    """Links with something known of them: given ones, those of the start, those of other trees.

    ``most`` are messages over the window, ``price`` is what a link adds to the objective by being
    used. ``new`` marks changes since the start, ``shared`` links that another tree has: they take
    no room. ``at`` and ``near`` list the offers at each broker. If ``open``, any two other brokers
    may be linked too, with delay 1, at ``fresh``; if ``tracked``, that is a change.
    """

    a: Longs
    b: Longs
    latency: Floats
    most: Floats
    price: Floats
    new: Bools
    shared: Bools
    at: Longs
    near: Longs
    open: bool
    fresh: float
    tracked: bool


def offers_of(
    problem: OverlayProblem,
    cost: float,
    change_price: float,
    start: Tree | None = None,
    shared: Tree | None = None,
) -> Offers:
    """What may be linked: the given links, or any two brokers, each of which costs 1 then.

    Links of the start cost no ``change_price``; links of other trees cost nothing at all.
    """
    size, links = problem.size, problem.links
    if links is None:
        a, b = merged_links(start, shared)
        latency = np.ones(len(a))
        most, price = np.full(len(a), np.inf), np.full(len(a), cost)
    else:
        a, b, latency = links.a, links.b, links.latency_ms.astype(np.float64)
        most, price = links.bandwidth * problem.seconds, cost * links.cost
    new = ~whether_in_tree(a, b, start, size) if start is not None else np.zeros(len(a), dtype=bool)
    common = whether_in_tree(a, b, shared, size)
    price = np.where(common, 0.0, price) + change_price * new
    ends = np.concatenate((a, b))
    # Ends i and i + len(a) are those of offer i.
    near = np.argsort(ends, kind="stable") % max(len(a), 1)
    fresh = float(cost + (0.0 if start is None else change_price))
    at = starts_of(np.bincount(ends, minlength=size))
    return Offers(a.astype(np.int64), b.astype(np.int64), latency, most, price, new, common, at,
                  near, links is None, fresh, start is not None)  # fmt: skip


def merged_links(*trees: Tree | None) -> Tree:
    """The different links of some trees."""
    found = [tree.edges for tree in trees if tree is not None]
    pairs = np.concatenate([np.empty((0, 2), dtype=np.int32), *found])
    pairs = np.unique(pairs, axis=0)
    return tree_of(pairs[:, 0], pairs[:, 1])


def whether_in_tree(a: Ints, b: Ints, tree: Tree | None, size: int) -> Bools:
    """Whether each of some links is one of a tree."""
    if tree is None:
        return np.zeros(len(a), dtype=bool)
    return np.isin(a.astype(np.int64) * size + b, tree.a.astype(np.int64) * size + tree.b)


def offer_positions(offers: Offers, tree: Tree) -> Longs:
    """Where the links of a tree stand among the offers; NONE where they are none of them."""
    size = max(int(offers.b.max(initial=0)), int(tree.b.max(initial=0))) + 1
    return places_among(offers.a * size + offers.b, tree.a.astype(np.int64) * size + tree.b)


def link_price(offers: Offers, tree: Tree) -> float:
    """What the links of a tree add to the objective by being there."""
    offer = offer_positions(offers, tree)
    known = offer[offer != NONE]
    return float(offers.price[known].sum() + offers.fresh * (len(offer) - len(known)))


def changed_links(offers: Offers, tree: Tree) -> int:
    """How many links of a tree are not in the start; 0 without a start."""
    offer = offer_positions(offers, tree)
    known = offer[offer != NONE]
    return int(offers.new[known].sum()) + (len(offer) - len(known)) * offers.tracked


def own_degrees(offers: Offers, tree: Tree) -> Longs:
    """The links of each broker that no other tree has."""
    offer = offer_positions(offers, tree)
    own = np.ones(len(offer), dtype=bool)
    own[offer != NONE] = ~offers.shared[offer[offer != NONE]]
    ends = np.concatenate((tree.a[own], tree.b[own]))
    return np.bincount(ends, minlength=tree.size).astype(np.int64)
