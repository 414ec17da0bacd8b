"""Why no tree meets the limits, and what would do."""

from __future__ import annotations

import numpy as np

from fanplan.core.errors import InfeasibleError, Problem
from fanplan.layers.overlay.published.similar import require_connected
from fanplan.layers.overlay.published.spanning import connected_parts, without_cycles
from fanplan.layers.overlay.search.judge import (
    ImproveParams,
    JudgedTree,
    TreeLimits,
    bandwidths,
    load_of,
    rules_of,
)
from fanplan.layers.overlay.search.starts import fewest_hops, kept_links, least_diameter
from fanplan.network.brokers import OverlayProblem
from fanplan.network.trees import Tree


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
        one, other = (name_of(problem, end) for end in pairs[closing])
        what = f"pairs one hop apart form a cycle, closed by {one} and {other}"
        raise infeasible("hops", 2, what, "Allow 2 hops for this pair")
    if problem.links is None:
        return
    for near, far, most in zip(rules.near, rules.far, rules.hops, strict=True):
        least = int(fewest_hops(problem, int(near)).hops(int(near))[far])
        if least > most:
            one, other = name_of(problem, near), name_of(problem, far)
            what = f"over the given links {one} and {other} are {least} hops apart at least"
            raise infeasible("hops", least, what, f"Allow {least}, or add links")


def require_changes(problem: OverlayProblem, params: ImproveParams, start: Tree) -> None:
    """Parts that the start leaves apart need a new link each, but one."""
    kept = kept_links(problem, start)
    apart = np.flatnonzero(connected_parts(kept.a, kept.b, problem.size) == np.arange(problem.size))
    if params.most_changes is not None and params.most_changes < len(apart) - 1:
        least = len(apart) - 1
        one, other = name_of(problem, apart[0]), name_of(problem, apart[1])
        what = f"the start leaves {len(apart)} parts, such as those of {one} and {other}"
        raise infeasible("changes", least, what, f"Allow {least} changed links")


def not_found(problem: OverlayProblem, limits: TreeLimits, best: JudgedTree) -> InfeasibleError:
    """The search found no tree within limits that may yet be possible; say what it came to."""
    tree, excess = best.tree, best.excess
    if excess.degree:
        over = tree.degrees - rules_of(limits, problem.size).degree
        broker, most = int(over.argmax()), int(tree.degrees[over.argmax()])
        what = f"in the best tree found {name_of(problem, broker)} has {most} links"
        return infeasible("degree", most, what, f"Allow {most} there, or relax the other limits")
    if excess.diameter:
        what = f"the best tree found has a diameter of {tree.diameter}"
        remedy = f"Allow {tree.diameter}, or relax the other limits"
        return infeasible("diameter", tree.diameter, what, remedy)
    if excess.hops:
        far = [(int(tree.hops(a)[b]) - most, a, b, most) for a, b, most in limits.hops]
        more, a, b, most = max(far)
        what = f"in the best tree found {name_of(problem, a)} and {name_of(problem, b)} are"
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
    one, other = name_of(problem, tree.a[worst]), name_of(problem, tree.b[worst])
    what = f"in the best tree found {best.excess.bandwidth} links carry more than their bandwidth,"
    what += (
        f" most of all that of {one} and {other}: {load[worst]:g} messages/s over {room[worst]:g}"
    )
    remedy = f"Widen it to {load[worst]:g}, or add links"
    return infeasible("bandwidth", float(load[worst]), what, remedy)


def name_of(problem: OverlayProblem, broker: int) -> str:
    """A broker by its name, in quotes."""
    return repr(problem.brokers[int(broker)].as_py())


def infeasible(limit: str, value: float, what: str, remedy: str) -> InfeasibleError:
    return InfeasibleError(limit, value, Problem(limit, what, remedy))
