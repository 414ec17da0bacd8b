"""Allocations by the rankings of the thesis, to set beside a plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from fanplan.core.errors import InfeasibleError, InputError, Problem
from fanplan.layers.overlay.allocate import METHODS
from fanplan.layers.overlay.command import OverlayPlan

if TYPE_CHECKING:
    from fanplan.layers.overlay.allocation.allocation import Ranking


def compare_rankings(
    plan: OverlayPlan, rankings: Iterable[str], *, seed: int = 0
) -> list[dict[str, Any]]:
    """What other allocations by the same rule need, each with the tree that the thesis gives it.

    That is the overlap tree, and for the baseline, which ignores similarity, a random one.
    """
    from fanplan.layers.overlay.allocation.allocation import AllocationParams, ranked_allocation
    from fanplan.layers.overlay.allocation.phases import deployed
    from fanplan.layers.overlay.published.similar import overlap_tree, random_tree
    from fanplan.network.dataset import load_clients

    rule = plan.layer.record.allocation
    assert rule is not None
    problem, params = load_clients(plan.dataset.path), AllocationParams(rule.lcf, rule.load)
    rows = []
    for ranking in rankings:
        try:
            found = ranked_allocation(problem, cast("Ranking", ranking), params, seed)
        except InfeasibleError:
            continue
        tree = (lambda o: random_tree(o, seed)) if ranking == "baseline" else overlap_tree
        made = deployed(problem, found, tree)
        rows.append(
            {
                "ranking": ranking,
                "brokers": found.brokers,
                "cost": float(problem.cost[found.used].sum()),
                "link_messages": made.ledger.link_messages,
                "messages_per_publication": made.ledger.messages_per_publication,
                "delay_mean": made.ledger.delay_mean,
                "overloaded": len(made.overloaded),
            }
        )
    return rows


def require_rankings(names: Iterable[str]) -> None:
    """Every name must be that of a ranking."""
    for name in names:
        if name not in METHODS[1:]:
            remedy = f"Use some of: {', '.join(METHODS[1:])}"
            raise InputError(Problem("compare", f"{name!r} is unknown", remedy))
