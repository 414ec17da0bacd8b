"""From the naive system to the plan: what each step of the way costs, in the ledger's words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fanplan.planners.delivery.joint import Judged
    from fanplan.planners.delivery.params import DeliveryParams
    from fanplan.problem.delivery import DeliveryProblem

Steps = list[tuple[str, float]]


def broker_steps(naive: DeliveryProblem, planned: DeliveryProblem, params: DeliveryParams) -> Steps:
    """Flooding and routing on a random tree, then routing on the planned tree."""
    return [
        ("flooding on a random tree", flooding(naive, params)),
        ("content routing on a random tree", routed(naive, params)),
        ("planned tree", routed(planned, params)),
    ]


def flat_steps(problem: DeliveryProblem, params: DeliveryParams) -> Steps:
    """Everything to everybody, then each message to those who want it, one by one."""
    interest, prices = problem.interest, params.prices
    total = float(interest.messages.sum())
    everybody = prices.sent + prices.received * len(interest.subscribers) + prices.matched
    return [("broadcast", total * everybody), ("unicast", routed(problem, params))]


def flooding(problem: DeliveryProblem, params: DeliveryParams) -> float:
    """Every message visits and is matched at every broker; brokers serve their subscribers."""
    interest, prices = problem.interest, params.prices
    hops = (problem.trees.parent >= 0).sum(axis=1)[problem.tree]
    far = prices.forwarded * hops + prices.matched * (hops + 1)
    near = prices.unicast * interest.audience_sizes
    return float(problem.messages @ far + interest.messages @ near)


def routed(problem: DeliveryProblem, params: DeliveryParams) -> float:
    """Content-based routing, matched at every hop, without channels and groups."""
    from fanplan.planners.delivery.joint import judge, without_channels

    plain = replace(params, entries=0, channels=0, fixed_groups=None)
    return judge(problem, plain, without_channels(problem, plain)).cost


def channel_steps(problem: DeliveryProblem, params: DeliveryParams, first: Judged) -> Steps:
    """The channels of the layers one after the other, as if there were no groups."""
    from fanplan.planners.delivery.joint import judge
    from fanplan.planners.delivery.layers import with_groups

    made = first.delivery
    if not made.map.channels:
        return []
    alone = replace(params, entries=0, fixed_groups=None)
    on = with_groups(problem, alone, made.map, made.domain, made.direct)
    return [("channels", judge(problem, alone, on).cost)]


def with_descriptors(steps: Steps, amount: float) -> Steps:
    """The same with what descriptors cost at every step."""
    return [(name, cost + amount) for name, cost in steps]


def savings(steps: Steps) -> list[dict[str, float | str]]:
    """Each step with its cost, what it saves, and that in percent of the first."""
    costs = np.array([cost for _, cost in steps])
    saved = -np.diff(costs, prepend=costs[0])
    return [
        {"step": name, "cost": cost, "saved": float(gain), "percent": float(100 * gain / costs[0])}
        for (name, cost), gain in zip(steps, saved, strict=True)
    ]
