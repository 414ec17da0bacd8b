"""Our tree: the best starts improved by swaps of links against the predicted ledger."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fanplan.core.arrays import NONE, Longs
from fanplan.core.errors import InfeasibleError, Problem
from fanplan.core.stop import Stop
from fanplan.layers.overlay.published.similar import require_connected
from fanplan.layers.overlay.published.spanning import connected_parts, without_cycles
from fanplan.layers.overlay.search.judge import (
    NO_LIMIT,
    ImproveParams,
    JudgedTree,
    TreeLimits,
    TreeSearch,
    bandwidths,
    changed_links,
    judge_tree,
    load_of,
    rules_of,
    search_of,
)
from fanplan.layers.overlay.search.movable import movable_of
from fanplan.layers.overlay.search.starts import (
    fewest_hops,
    judged_starts,
    kept_links,
    least_diameter,
    repaired,
)
from fanplan.layers.overlay.search.swap import Swap, make_swap, next_swap, promise
from fanplan.network.brokers import OverlayProblem
from fanplan.network.trees import Tree, tree_of

RELIEFS = 8
"""Times that overloaded brokers are given fewer links."""
STARTS = 2
"""Starts that are improved, the best first."""
VISITS = 16
"""Links that are visited before the search asks again whether to stop."""


def improved_tree(
    problem: OverlayProblem, params: ImproveParams, seed: int, stop: Stop, start: Tree | None = None
) -> JudgedTree:
    """The best tree found from the most promising starts; an error if none obeys the limits.

    Starts are the trees by similarity, by common traffic, and the shallowest with busy brokers
    inside. ``start`` is an earlier tree to keep near to: links between positions, of which some
    may be missing because brokers came or went. Brokers process no more than their capacity if a
    tree is found in which that is so; else the one that comes nearest to it.
    """
    best = best_tree(problem, params, seed, stop, start)
    for _ in range(RELIEFS):
        eased = relieved(problem, params.limits, best)
        if eased is None or stop(best.objective):
            break
        try:
            found = best_tree(problem, replace(params, limits=eased), seed, stop, start)
        except InfeasibleError:
            break
        params = replace(params, limits=eased)
        best = min(best, found, key=lambda tree: tree.rank)
    return best


def best_tree(
    problem: OverlayProblem, params: ImproveParams, seed: int, stop: Stop, start: Tree | None
) -> JudgedTree:
    """The best tree found within the limits, whatever brokers can process."""
    require_possible_tree(problem, params.limits)
    if start is not None:
        require_changes(problem, params, start)
    search = search_of(problem, params, seed, start)
    before = [] if start is None else [judge_tree(search, repaired(problem, params.limits, start))]
    ranked = sorted(judged_starts(search), key=lambda tree: tree.rank)
    chosen = [*before, *ranked[: STARTS - len(before)]]
    found = [
        judge_tree(search, swap_down(search, one.tree, np.random.default_rng((seed, i)), stop))
        for i, one in enumerate(chosen)
    ]
    best = min((*found, *chosen), key=lambda tree: tree.rank)
    if sum(best.excess):
        raise not_found(problem, params.limits, best)
    return best


def relieved(problem: OverlayProblem, limits: TreeLimits, best: JudgedTree) -> TreeLimits | None:
    """Half as many links for every overloaded broker that forwards; None if there is none."""
    load = best.ledger.processed / problem.seconds
    forwards = best.tree.degrees > 1
    over = np.flatnonzero((load > problem.capacity * (1 + 1e-9)) & forwards)
    if not len(over):
        return None
    fewer = {int(broker): int(best.tree.degrees[broker]) // 2 for broker in over}
    return replace(limits, degrees=tuple((dict(limits.degrees) | fewer).items()))


def swap_down(search: TreeSearch, start: Tree, random: np.random.Generator, stop: Stop) -> Tree:
    """Swap links as long as a swap helps, visiting the links in random order.

    Each visit finds the best link in place of one; see ``swap`` for what it takes.
    """
    hung = movable_of(start, search.offers, search.rules.degree)
    tree, objective = start, judge_tree(search, start).objective
    least = 1e-9 * (1.0 + objective)
    queue = first_visits(search, start, random)
    at, left = 0, len(queue)
    spare = spare_changes(search, start)
    while left > 0 and not stop(objective):
        turn = queue[at : at + min(VISITS, left)]
        visited, swap = next_swap(hung, search.terms, turn, spare, least)
        at = (at + visited) % len(queue)
        left -= visited
        if swap.x != NONE and carries(search, tree, swap):
            make_swap(hung, search.offers, swap)
            tree, objective, left = Tree(hung.a, hung.b), objective + swap.change, len(queue)
            spare = spare_changes(search, tree)
    return tree_of(tree.a, tree.b)


def first_visits(search: TreeSearch, start: Tree, random: np.random.Generator) -> Longs:
    """Links in random order; where changes are limited, those with the best swaps first."""
    queue = random.permutation(len(start.a))
    if search.rules.changes == NO_LIMIT:
        return queue
    hung = movable_of(start, search.offers, search.rules.degree)
    gain = promise(hung, search.terms, queue)
    return queue[np.argsort(gain, kind="stable")]


def spare_changes(search: TreeSearch, tree: Tree) -> int:
    """How many more links may change."""
    if search.rules.changes == NO_LIMIT:
        return NO_LIMIT
    return search.rules.changes - changed_links(search.offers, tree)


def carries(search: TreeSearch, old: Tree, swap: Swap) -> bool:
    """Whether a swap leaves no more links crowded than before, also links it does not replace."""
    if not np.isfinite(search.offers.most).any():
        return True
    new = with_link_replaced(old, swap.link, swap.x, swap.y)
    return sum(judge_tree(search, new).excess) <= sum(judge_tree(search, old).excess)


def with_link_replaced(tree: Tree, link: int, x: int, y: int) -> Tree:
    """The tree with another link at the same place; places are kept until the search ends."""
    a, b = tree.a.copy(), tree.b.copy()
    a[link], b[link] = min(x, y), max(x, y)
    return Tree(a, b)


# ---- why no tree meets the limits, and what would do


def require_possible_tree(problem: OverlayProblem, limits: TreeLimits) -> None:
    """Raise if limits can be proved to rule out every tree."""
    require_connected(problem)
    if problem.size > 1:
        require_degrees(problem, limits)
        require_diameter(problem, limits)
        require_hops(problem, limits)


def require_degrees(problem: OverlayProblem, limits: TreeLimits) -> None:
    """A tree has n − 1 links, so the degrees must add up to twice that."""
    degree = np.minimum(rules_of(limits, problem.size).degree, problem.size - 1)
    needed, ends = 2 * (problem.size - 1), int(degree.sum())
    if ends < needed:
        what = f"the degree limits allow {ends} ends of links, but a tree has {needed}"
        raise infeasible("degree", 2, what, "Allow 2 for every broker, or more for some")


def require_diameter(problem: OverlayProblem, limits: TreeLimits) -> None:
    """The least diameter under the degree limits is known if any two brokers may be linked."""
    if limits.diameter is None or problem.links is not None:
        return
    degree = rules_of(limits, problem.size).degree
    tree = least_diameter(degree, np.zeros(problem.size))
    least = problem.size if tree is None else tree.diameter
    if limits.diameter < least:
        what = f"no tree of {problem.size} brokers has a diameter of {limits.diameter} or less"
        what += " under the degree limits" if degree.min() < problem.size - 1 else ""
        raise infeasible("diameter", least, what, f"Allow {least}, or higher degrees")


def require_hops(problem: OverlayProblem, limits: TreeLimits) -> None:
    """Pairs one hop apart must not form a cycle, and links must be short enough for each pair."""
    rules = rules_of(limits, problem.size)
    beside = np.flatnonzero(rules.hops == 1)
    a = np.minimum(rules.near, rules.far)[beside]
    b = np.maximum(rules.near, rules.far)[beside]
    pairs = np.unique(np.stack((a, b), axis=1), axis=0)
    room = np.full(problem.size, problem.size, dtype=np.int64)
    kept = without_cycles(pairs[:, 0].copy(), pairs[:, 1].copy(), room)
    if len(kept) < len(pairs):
        closing = np.setdiff1d(np.arange(len(pairs)), kept)[0]
        one, other = (quoted_name(problem, end) for end in pairs[closing])
        what = f"pairs one hop apart form a cycle, closed by {one} and {other}"
        raise infeasible("hops", 2, what, "Allow 2 hops for this pair")
    if problem.links is None:
        return
    for near, far, most in zip(rules.near, rules.far, rules.hops, strict=True):
        least = int(fewest_hops(problem, int(near)).hops(int(near))[far])
        if least > most:
            one, other = quoted_name(problem, near), quoted_name(problem, far)
            what = f"over the given links {one} and {other} are {least} hops apart at least"
            raise infeasible("hops", least, what, f"Allow {least}, or add links")


def require_changes(problem: OverlayProblem, params: ImproveParams, start: Tree) -> None:
    """Parts that the start leaves apart need a new link each, but one."""
    kept = kept_links(problem, start)
    apart = np.flatnonzero(connected_parts(kept.a, kept.b, problem.size) == np.arange(problem.size))
    if params.most_changes is not None and params.most_changes < len(apart) - 1:
        least = len(apart) - 1
        one, other = quoted_name(problem, apart[0]), quoted_name(problem, apart[1])
        what = f"the start leaves {len(apart)} parts, such as those of {one} and {other}"
        raise infeasible("changes", least, what, f"Allow {least} changed links")


def not_found(problem: OverlayProblem, limits: TreeLimits, best: JudgedTree) -> InfeasibleError:
    """The search found no tree within limits that may yet be possible; say what it came to."""
    tree, excess = best.tree, best.excess
    if excess.degree:
        over = tree.degrees - rules_of(limits, problem.size).degree
        broker, most = int(over.argmax()), int(tree.degrees[over.argmax()])
        what = f"in the best tree found {quoted_name(problem, broker)} has {most} links"
        return infeasible("degree", most, what, f"Allow {most} there, or relax the other limits")
    if excess.diameter:
        what = f"the best tree found has a diameter of {tree.diameter}"
        remedy = f"Allow {tree.diameter}, or relax the other limits"
        return infeasible("diameter", tree.diameter, what, remedy)
    if excess.hops:
        far = [(int(tree.hops(a)[b]) - most, a, b, most) for a, b, most in limits.hops]
        more, a, b, most = max(far)
        what = f"in the best tree found {quoted_name(problem, a)} and {quoted_name(problem, b)} are"
        what += f" {most + more} hops apart"
        remedy = f"Allow {most + more} for this pair, or relax the other limits"
        return infeasible("hops", most + more, what, remedy)
    if excess.changes:
        what = f"the best tree found changes {best.changed} links"
        remedy = f"Allow {best.changed}, or relax the other limits"
        return infeasible("changes", best.changed, what, remedy)
    return crowded(problem, best)


def crowded(problem: OverlayProblem, best: JudgedTree) -> InfeasibleError:
    """Links carry too much; name the one that does most, and what it would have to carry."""
    tree = best.tree
    load = load_of(problem, best.ledger)
    room = bandwidths(problem, tree)
    worst = int((load - room).argmax())
    one, other = quoted_name(problem, tree.a[worst]), quoted_name(problem, tree.b[worst])
    what = f"in the best tree found {best.excess.bandwidth} links carry more than their bandwidth,"
    what += (
        f" most of all that of {one} and {other}: {load[worst]:g} messages/s over {room[worst]:g}"
    )
    remedy = f"Widen it to {load[worst]:g}, or add links"
    return infeasible("bandwidth", float(load[worst]), what, remedy)


def quoted_name(problem: OverlayProblem, broker: int) -> str:
    """A broker by its name, in quotes."""
    return repr(problem.brokers[int(broker)].as_py())


def infeasible(limit: str, value: float, what: str, remedy: str) -> InfeasibleError:
    return InfeasibleError(limit, value, Problem(limit, what, remedy))
