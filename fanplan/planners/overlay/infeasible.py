"""Why no tree meets the limits, and what would do."""

from __future__ import annotations

import numpy as np

from fanplan.errors import InfeasibleError, InputError, Problem
from fanplan.planners.overlay.limits import Excess, TreeLimits, rules_of
from fanplan.planners.overlay.shallow import fewest_hops, least_diameter
from fanplan.planners.overlay.similar import require_connected
from fanplan.planners.overlay.spanning import without_cycles
from fanplan.planners.overlay.tree import Tree
from fanplan.problem.overlay import OverlayProblem


def require_possible(problem: OverlayProblem, limits: TreeLimits) -> None:
    """Raise if limits can be proved to rule out every tree."""
    require_known(problem, limits)
    require_connected(problem)
    if problem.size > 1:
        require_degrees(problem, limits)
        require_diameter(problem, limits)
        require_hops(problem, limits)


def require_known(problem: OverlayProblem, limits: TreeLimits) -> None:
    named = [broker for broker, _ in limits.degrees]
    named += [broker for pair in limits.hops for broker in pair[:2]]
    unknown = [broker for broker in named if not 0 <= broker < problem.size]
    if unknown:
        what = f"broker {unknown[0]} is not among the {problem.size} brokers"
        raise InputError(Problem("limits", what, "Name brokers of the problem"))


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
    kept = without_cycles(pairs[:, 0].copy(), pairs[:, 1].copy(), problem.size)
    if len(kept) < len(pairs):
        closing = np.setdiff1d(np.arange(len(pairs)), kept)[0]
        one, other = (problem.brokers[int(end)].as_py() for end in pairs[closing])
        what = f"pairs one hop apart form a cycle, closed by {one!r} and {other!r}"
        raise infeasible("hops", 2, what, "Allow 2 hops for this pair")
    if problem.links is None:
        return
    for near, far, most in zip(rules.near, rules.far, rules.hops, strict=True):
        least = int(fewest_hops(problem, int(near)).hops(int(near))[far])
        if least > most:
            one, other = problem.brokers[int(near)].as_py(), problem.brokers[int(far)].as_py()
            what = f"over the given links {one!r} and {other!r} are {least} hops apart at least"
            raise infeasible("hops", least, what, f"Allow {least}, or add links")


def not_found(limits: TreeLimits, tree: Tree, excess: Excess) -> InfeasibleError:
    """The search found no tree within limits that may yet be possible; say what it came to."""
    if excess.degree:
        most = int(tree.degrees.max())
        what = f"the best tree found has a broker with {most} links"
        return infeasible("degree", most, what, f"Allow {most}, or relax the other limits")
    if excess.diameter:
        what = f"the best tree found has a diameter of {tree.diameter}"
        remedy = f"Allow {tree.diameter}, or relax the other limits"
        return infeasible("diameter", tree.diameter, what, remedy)
    if excess.hops:
        over = {(a, b): int(tree.hops(a)[b]) - most for a, b, most in limits.hops}
        (one, other), more = max(over.items(), key=lambda item: item[1])
        what = f"in the best tree found brokers {one} and {other} are {more} hops too far apart"
        remedy = f"Allow {more} more for each pair, or relax the other limits"
        return infeasible("hops", more, what, remedy)
    what = f"{excess.bandwidth} links of the best tree found carry more than their bandwidth"
    return infeasible("bandwidth", excess.bandwidth, what, "Widen them, or add links")


def infeasible(limit: str, value: float, what: str, remedy: str) -> InfeasibleError:
    return InfeasibleError(limit, value, Problem(limit, what, remedy))
