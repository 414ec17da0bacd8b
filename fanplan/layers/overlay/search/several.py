"""General overlays: several trees over the same brokers, if they lower the ledger."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fanplan.core.arrays import Floats, Ints
from fanplan.core.stop import Stop
from fanplan.layers.overlay.search.improve import improved_tree, swap_down
from fanplan.layers.overlay.search.judge import (
    ImproveParams,
    TreeSearch,
    bandwidths,
    chosen_routes,
    judge_tree,
    link_price,
    load_of,
    merged_links,
    offers_of,
    rules_of,
    search_of,
    too_many_hops,
)
from fanplan.layers.overlay.search.starts import judged_starts
from fanplan.network.brokers import Links, OverlayProblem, Routes
from fanplan.network.carried import OverlayLedger, overlay_ledger, route_costs, trees_ledger
from fanplan.network.trees import Tree, Trees, trees_of

ROUNDS = 8
"""Times that sources are dealt out again, at most."""


@dataclass(frozen=True, eq=False)
class Overlay:
    """Trees over the same brokers; ``shape`` tells which share which links, and who takes which.

    The rows of the ledger's ``link`` are those of the links of ``shape``.
    """

    trees: tuple[Tree, ...]
    shape: Trees
    ledger: OverlayLedger
    objective: float

    @property
    def links(self) -> Tree:
        """Each link of any tree once."""
        return Tree(*self.shape.links.T)


def general_overlay(
    problem: OverlayProblem, params: ImproveParams, trees: int, seed: int, stop: Stop
) -> Overlay:
    """Up to this many trees, begun with the improved one; fewer if more do not lower the objective.

    A link that several trees use costs once, takes room once, and carries the messages of all.
    Diameter and hops are limited in every tree. Only what holds to the limits is taken.
    """
    search = SeveralTrees(problem, params, seed, stop)
    first = improved_tree(problem, params, seed, stop).tree
    best = overlay_of(problem, params, (first,), np.zeros(problem.size, dtype=np.int32))
    while len(best.trees) < trees and not stop(best.objective):
        found = [search.settled(one) for one in search.divided(best)]
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
    shape = trees_of(tuple(tree.edges for tree in kept), of)
    ledger = trees_ledger(problem, shape)
    objective = params.messages * ledger.link_messages + params.delay * ledger.delay
    objective += link_price(offers_of(problem, params.cost, 0.0), Tree(*shape.links.T))
    return Overlay(kept, shape, ledger, objective)


@dataclass(frozen=True, eq=False)
class SeveralTrees:
    """A search for several trees: what stays the same meanwhile."""

    problem: OverlayProblem
    params: ImproveParams
    seed: int
    stop: Stop

    def divided(self, overlay: Overlay) -> list[Overlay]:
        """The overlay with one more tree, for the source that loses most, or half of all losses.

        A source's loss is what it costs above the least: one message for each end but the first.
        """
        of = overlay.shape.of
        now = self.source_costs(overlay.trees)[of, np.arange(self.problem.size)]
        loss = now - self.least_costs()
        worst = np.argsort(-loss, kind="stable")
        half = int(np.searchsorted(np.cumsum(loss[worst]), 0.5 * loss.sum())) + 1
        found = []
        for count in sorted({1, half}):
            other = of.copy()
            other[worst[:count]] = len(overlay.trees)
            # It begins as the tree that the worst source has, which is then no dearer for it.
            trees = (*overlay.trees, *(overlay.trees[tree] for tree in of[worst[:1]]))
            found.append(overlay_of(self.problem, self.params, trees, other))
        return found

    def source_costs(self, trees: tuple[Tree, ...]) -> Floats:
        """What the routes of each broker cost on each tree: trees × brokers."""
        problem, params = self.problem, self.params
        costs = np.empty((len(trees), problem.size))
        for number, tree in enumerate(trees):
            latency = problem.latencies(tree.edges)
            crossed, delay = route_costs(tree.edges, latency, problem.routes)
            cost = params.messages * crossed + params.delay * delay
            costs[number] = np.bincount(problem.routes.source, cost, problem.size)
        return costs

    def least_costs(self) -> Floats:
        """What the routes of each broker cost at least: a message and the least delay per end."""
        problem, routes = self.problem, self.problem.routes
        row = np.repeat(np.arange(len(routes)), np.diff(routes.starts))
        away = routes.brokers != routes.source[row]
        ends = routes.messages * np.bincount(row[away], minlength=len(routes))
        delay = 1.0 if problem.links is None else float(problem.links.latency_ms.min())
        per_end = self.params.messages + self.params.delay * delay
        return np.asarray(np.bincount(routes.source, per_end * ends, problem.size), np.float64)

    def settled(self, overlay: Overlay) -> Overlay:
        """Improve each tree for its sources, let each source take its cheapest tree, and again."""
        for _ in range(ROUNDS):
            before = overlay
            for tree in range(len(overlay.trees)):
                overlay = self.with_better_tree(overlay, tree)
            of = self.source_costs(overlay.trees).argmin(axis=0).astype(np.int32)
            overlay = self.better(overlay, overlay.trees, of)
            no_better = overlay.objective >= before.objective * (1 - 1e-9)
            if no_better or self.stop(overlay.objective):
                break
        return overlay

    def better(self, overlay: Overlay, trees: tuple[Tree, ...], of: Ints) -> Overlay:
        """Other trees if they cost less and hold to the limits, else what there is."""
        found = overlay_of(self.problem, self.params, trees, of)
        return found if found.objective < overlay.objective and self.obeys(found) else overlay

    def with_better_tree(self, overlay: Overlay, tree: int) -> Overlay:
        """The overlay with one tree improved for the messages that take it."""
        search = self.search_beside(overlay, tree)
        begun = [judge_tree(search, overlay.trees[tree]), *judged_starts(search)]
        start = min(begun, key=lambda one: one.rank).tree
        improved = swap_down(search, start, np.random.default_rng((self.seed, tree)), self.stop)
        trees = (*overlay.trees[:tree], improved, *overlay.trees[tree + 1 :])
        return self.better(overlay, trees, overlay.shape.of)

    def search_beside(self, overlay: Overlay, tree: int) -> TreeSearch:
        """A search for one tree: its messages, and what others leave of degrees and bandwidth."""
        problem, routes = self.problem, self.problem.routes
        mine = chosen_routes(routes, overlay.shape.of[routes.source] == tree)
        others = merged_links(*(one for i, one in enumerate(overlay.trees) if i != tree))
        rest = replace(problem, routes=mine, links=self.links_left(overlay, tree, mine))
        search = search_of(rest, self.params, self.seed, shared=others)
        taken = np.bincount(np.concatenate(others), minlength=problem.size)
        rules = search.rules._replace(degree=search.rules.degree - taken)
        return replace(search, terms=search.terms._replace(rules=rules))

    def links_left(self, overlay: Overlay, tree: int, mine: Routes) -> Links | None:
        """The given links with the bandwidth that the messages of the other trees leave."""
        problem = self.problem
        if problem.links is None:
            return None
        edges = overlay.trees[tree].edges
        own = overlay_ledger(edges, problem.latencies(edges), mine)
        load = load_of(problem, overlay.ledger)
        load[overlay.shape.members[tree]] -= load_of(problem, own)
        bandwidth = problem.links.bandwidth.copy()
        bandwidth[problem.given(overlay.shape.links)] -= load
        return replace(problem.links, bandwidth=np.maximum(bandwidth, 0.0))

    def obeys(self, overlay: Overlay) -> bool:
        """Whether all trees together hold to the limits."""
        rules = rules_of(self.params.limits, self.problem.size)
        degrees = np.bincount(overlay.shape.links.ravel(), minlength=self.problem.size)
        room = bandwidths(self.problem, overlay.links) * (1 + 1e-9)
        return bool(
            (degrees <= rules.degree).all()
            and (load_of(self.problem, overlay.ledger) <= room).all()
            and all(tree.diameter <= rules.diameter for tree in overlay.trees)
            and not any(too_many_hops(tree, rules) for tree in overlay.trees)
        )
