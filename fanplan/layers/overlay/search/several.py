"""General overlays: several trees over the same brokers, if they lower the ledger."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.stop import Stop
from fanplan.layers.overlay.search.improve import descend, improved_tree
from fanplan.layers.overlay.search.judge import (
    ImproveParams,
    TreeSearch,
    bandwidths,
    judge_tree,
    load_of,
    rules_of,
    search_of,
    too_many_hops,
)
from fanplan.layers.overlay.search.offers import chosen_routes, link_price, merged_links, offers_of
from fanplan.layers.overlay.search.starts import judged_starts
from fanplan.network.brokers import Links, OverlayProblem, Routes
from fanplan.network.carried import (
    OverlayLedger,
    overlay_ledger,
    overlay_ledger_of,
    route_costs,
)
from fanplan.network.trees import Tree

ROUNDS = 8
"""Times that sources are dealt out again, at most."""


@dataclass(frozen=True, eq=False)
class Overlay:
    """Trees over the same brokers; what enters at broker i takes ``trees[tree_of[i]]``.

    ``links`` has each link of any tree once; the rows of the ledger's ``link`` are its.
    """

    trees: tuple[Tree, ...]
    tree_of: Ints
    links: Tree
    ledger: OverlayLedger
    objective: float

    def member(self, tree: int) -> Longs:
        """Where the links of a tree stand among all links."""
        return link_positions(self.links, self.trees[tree])


def general_overlay(
    problem: OverlayProblem, params: ImproveParams, trees: int, seed: int, stop: Stop
) -> Overlay:
    """Up to so many trees, begun with the improved one; fewer if more do not lower the objective.

    A link that several trees use costs once, takes room once, and carries the messages of all.
    Diameter and hops are limited in every tree. Only what holds to the limits is taken.
    """
    first = improved_tree(problem, params, seed, stop).tree
    best = overlay_of(problem, params, (first,), np.zeros(problem.size, dtype=np.int32))
    while len(best.trees) < trees and not stop(best.objective):
        found = [
            settled_trees(problem, params, one, seed, stop)
            for one in divided(problem, params, best)
        ]
        better = min(found, key=lambda one: one.objective, default=best)
        if better.objective >= best.objective * (1 - 1e-9):
            break
        best = better
    return best


def overlay_of(
    problem: OverlayProblem, params: ImproveParams, trees: tuple[Tree, ...], tree_of: Ints
) -> Overlay:
    """Trees with their ledger and objective; those that no message takes are left out."""
    taken, number = np.unique(tree_of[problem.routes.source], return_inverse=True)
    taken = taken if len(taken) else np.zeros(1, dtype=np.int32)
    kept = tuple(trees[tree] for tree in taken)
    of = np.zeros(problem.size, dtype=np.int32)
    of[problem.routes.source] = number
    links = merged_links(*kept)
    edges, members = links.edges, [link_positions(links, tree) for tree in kept]
    ledger = overlay_ledger_of(edges, problem.latencies(edges), members, of, problem.routes)
    objective = params.messages * ledger.link_messages + params.delay * ledger.delay
    objective += link_price(offers_of(problem, params.cost, 0.0), links)
    return Overlay(kept, of, links, ledger, objective)


def link_positions(links: Tree, tree: Tree) -> Longs:
    """Where the links of a tree stand among links that have them all."""
    size = int(links.b.max(initial=0)) + 1
    return np.searchsorted(
        links.a.astype(np.int64) * size + links.b, tree.a.astype(np.int64) * size + tree.b
    )


def divided(problem: OverlayProblem, params: ImproveParams, overlay: Overlay) -> list[Overlay]:
    """The overlay with one more tree, for the source that loses most, or for half of all losses.

    A source's loss is what it costs above the least: one message for each end but the first.
    """
    costs = source_costs(problem, params, overlay.trees)
    now = costs[overlay.tree_of, np.arange(problem.size)]
    loss = now - least_costs(problem, params)
    worst = np.argsort(-loss, kind="stable")
    half = int(np.searchsorted(np.cumsum(loss[worst]), 0.5 * loss.sum())) + 1
    found = []
    for count in sorted({1, half}):
        of = overlay.tree_of.copy()
        of[worst[:count]] = len(overlay.trees)
        trees = tuple(overlay.trees[tree] for tree in overlay.tree_of[worst[:1]])
        found.append(overlay_of(problem, params, (*overlay.trees, *trees), of))
    return found


def source_costs(problem: OverlayProblem, params: ImproveParams, trees: tuple[Tree, ...]) -> Floats:
    """What the routes of each broker cost on each tree: trees × brokers."""
    costs = np.empty((len(trees), problem.size))
    for number, tree in enumerate(trees):
        latency = problem.latencies(tree.edges)
        crossed, delay = route_costs(tree.edges, latency, problem.routes)
        cost = params.messages * crossed + params.delay * delay
        costs[number] = np.bincount(problem.routes.source, cost, problem.size)
    return costs


def least_costs(problem: OverlayProblem, params: ImproveParams) -> Floats:
    """What the routes of each broker cost at least: a message and the least delay per end."""
    routes = problem.routes
    row = np.repeat(np.arange(len(routes)), np.diff(routes.starts))
    away = routes.brokers != routes.source[row]
    ends = routes.messages * np.bincount(row[away], minlength=len(routes))
    delay = 1.0 if problem.links is None else float(problem.links.latency_ms.min())
    per_end = params.messages + params.delay * delay
    return np.asarray(np.bincount(routes.source, per_end * ends, problem.size), dtype=np.float64)


def settled_trees(
    problem: OverlayProblem, params: ImproveParams, overlay: Overlay, seed: int, stop: Stop
) -> Overlay:
    """Improve each tree for its sources, let each source take its cheapest tree, and again."""
    for _ in range(ROUNDS):
        before = overlay
        for tree in range(len(overlay.trees)):
            overlay = with_better_tree(problem, params, overlay, tree, seed, stop)
        of = source_costs(problem, params, overlay.trees).argmin(axis=0).astype(np.int32)
        dealt = overlay_of(problem, params, overlay.trees, of)
        if dealt.objective < overlay.objective and obeys(problem, params, dealt):
            overlay = dealt
        if overlay.objective >= before.objective * (1 - 1e-9) or stop(overlay.objective):
            break
    return overlay


def with_better_tree(
    problem: OverlayProblem,
    params: ImproveParams,
    overlay: Overlay,
    tree: int,
    seed: int,
    stop: Stop,
) -> Overlay:
    """The overlay with one tree improved for the messages that take it."""
    search = search_beside(problem, params, overlay, tree, seed)
    begun = [judge_tree(search, overlay.trees[tree]), *judged_starts(search)]
    start = min(begun, key=lambda one: one.rank).tree
    better = descend(search, start, np.random.default_rng((seed, tree)), stop)
    trees = (*overlay.trees[:tree], better, *overlay.trees[tree + 1 :])
    found = overlay_of(problem, params, trees, overlay.tree_of)
    good = found.objective < overlay.objective and obeys(problem, params, found)
    return found if good else overlay


def search_beside(
    problem: OverlayProblem, params: ImproveParams, overlay: Overlay, tree: int, seed: int
) -> TreeSearch:
    """A search for one tree: its messages, and what the others leave of degrees and bandwidth."""
    routes = problem.routes
    mine = chosen_routes(routes, overlay.tree_of[routes.source] == tree)
    others = merged_links(*(one for i, one in enumerate(overlay.trees) if i != tree))
    rest = replace(problem, routes=mine, links=links_left(problem, overlay, tree, mine))
    search = search_of(rest, params, seed, shared=others)
    taken = np.bincount(np.concatenate(others), minlength=problem.size)
    rules = search.rules._replace(degree=search.rules.degree - taken)
    return replace(search, terms=search.terms._replace(rules=rules))


def links_left(problem: OverlayProblem, overlay: Overlay, tree: int, mine: Routes) -> Links | None:
    """The given links with the bandwidth that the messages of the other trees leave."""
    if problem.links is None:
        return None
    edges = overlay.trees[tree].edges
    own = overlay_ledger(edges, problem.latencies(edges), mine)
    load = load_of(problem, overlay.ledger)
    load[overlay.member(tree)] -= load_of(problem, own)
    bandwidth = problem.links.bandwidth.copy()
    bandwidth[problem.given(overlay.links.edges)] -= load
    return replace(problem.links, bandwidth=np.maximum(bandwidth, 0.0))


def obeys(problem: OverlayProblem, params: ImproveParams, overlay: Overlay) -> bool:
    """Whether all trees together hold to the limits."""
    rules = rules_of(params.limits, problem.size)
    degrees = np.bincount(np.concatenate(overlay.links), minlength=problem.size)
    room = bandwidths(problem, overlay.links) * (1 + 1e-9)
    return bool(
        (degrees <= rules.degree).all()
        and (load_of(problem, overlay.ledger) <= room).all()
        and all(tree.diameter <= rules.diameter for tree in overlay.trees)
        and not any(too_many_hops(tree, rules) for tree in overlay.trees)
    )
