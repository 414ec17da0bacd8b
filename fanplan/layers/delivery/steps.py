"""From the naive system to the plan: what each step of the way costs, in the ledger's words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fanplan.layers.delivery.problem import DeliveryProblem
    from fanplan.layers.delivery.record import StepRecord
    from fanplan.layers.delivery.search.joint import JudgedDelivery
    from fanplan.layers.delivery.search.params import DeliveryParams
    from fanplan.network.brokers import Routes

Parts = dict[str, float]
Steps = list[tuple[str, Parts]]

SITES = "one broker per site"
"""The step from home brokers to any broker of a multicast domain."""

SUBSCRIPTIONS = "subscriptions"
"""What descriptors cost that travel from broker to broker."""


def broker_steps(
    naive: DeliveryProblem,
    planned: DeliveryProblem,
    params: DeliveryParams,
    asked: Routes | None = None,
) -> Steps:
    """Flooding and routing to home brokers on a random tree, then routing on the planned tree: to
    home brokers, and to one broker of each domain, where that serves all of it.

    Content routing goes by selectors. Where cells are coarser, ``asked`` says where they lead, and
    what a broker of each domain saves is in the step of channels.
    """
    naive, at_homes = replace(naive, homes=True), replace(planned, homes=True)
    steps = [
        ("flooding on a random tree", flooding(naive, params, asked)),
        ("content routing on a random tree", routed(naive, params, asked)),
        ("planned tree", routed(at_homes, params, asked)),
    ]
    if planned.homes or asked is not None:
        return steps
    return [*steps, (SITES, routed(planned, params))]


def flat_steps(
    problem: DeliveryProblem, params: DeliveryParams, heard: float | None = None
) -> Steps:
    """Everything to everybody, then each message to those who want it, one by one.

    Everything is what somebody asks for. Where cells are coarser than selectors, ``heard`` says how
    much that is.
    """
    interest, prices = problem.interest, params.prices
    total = float(interest.messages.sum()) if heard is None else heard
    each = prices.sent + prices.received * len(interest.subscribers)
    broadcast = {"multicast": total * each, "matching": prices.matched * total}
    alone = {"last hop": prices.unicast * float(interest.deliveries.sum())}
    matched = {"matching": prices.matched * total}
    return [("broadcast", broadcast), ("unicast", routed(problem, params) | alone | matched)]


def flooding(
    problem: DeliveryProblem, params: DeliveryParams, asked: Routes | None = None
) -> Parts:
    """Every message visits and is matched at every broker; brokers serve their subscribers."""
    interest, prices = problem.interest, params.prices
    below = (problem.trees.parent >= 0).sum(axis=1)
    messages, hops = problem.messages, below[problem.tree]
    if asked is not None:
        # Trees join all brokers, so that the same number lies below each root.
        messages, hops = asked.messages, np.repeat(below.max(initial=0), len(asked))
    return {
        "last hop": prices.unicast * float(interest.deliveries.sum()),
        "forwarding": prices.forwarded * float(messages @ hops),
        "matching": prices.matched * float(messages @ (hops + 1)),
    }


def routed(problem: DeliveryProblem, params: DeliveryParams, asked: Routes | None = None) -> Parts:
    """Content-based routing, matched at every hop, without channels and groups."""
    from fanplan.layers.delivery.search.joint import judge_delivery, without_channels

    if asked is not None:
        return routed_as_asked(problem, params, asked)
    plain = replace(params, entries=0, channels=0, fixed_groups=None)
    return judge_delivery(problem, plain, without_channels(problem, plain)).ledger.parts(
        params.prices
    )


def routed_as_asked(problem: DeliveryProblem, params: DeliveryParams, asked: Routes) -> Parts:
    """The same with routes by the selectors themselves."""
    from fanplan.layers.groups.ledger import groups_ledger
    from fanplan.layers.groups.problem.build import exact_groups

    prices, groups = params.prices, exact_groups(problem.brokers, problem.trees, asked)
    far = groups_ledger(groups, np.zeros(groups.size, bool))
    return {
        "last hop": prices.unicast * float(asked.deliveries.sum()),
        "forwarding": prices.forwarded * float(far.received.sum()),
        "matching": prices.matched * far.matches,
    }


def delivery_steps(
    problem: DeliveryProblem, params: DeliveryParams, first: JudgedDelivery, best: JudgedDelivery
) -> Steps:
    """Channels as if there were no groups, the layers one after the other, and all together."""
    from fanplan.layers.delivery.search.in_turn import with_groups
    from fanplan.layers.delivery.search.joint import judge_delivery

    made, prices = first.delivery, params.prices
    alone = replace(params, entries=0, fixed_groups=None)
    on = with_groups(problem, alone, made.map, made.domain, made.direct)
    channels = ("channels", judge_delivery(problem, alone, on).ledger.parts(prices))
    both = [
        ("layer by layer", first.ledger.parts(prices)),
        ("all together", best.ledger.parts(prices)),
    ]
    return [channels, *both] if made.map.channels else both


def marked_steps(steps: Steps, everywhere: float, marked: float) -> Steps:
    """The same with subscriptions that are sent everywhere, and a last step in which marks rule."""
    before = [(name, parts | {SUBSCRIPTIONS: everywhere}) for name, parts in steps]
    return [*before, ("marking", steps[-1][1] | {SUBSCRIPTIONS: marked})]


def step_savings(steps: Iterable[StepRecord]) -> list[dict[str, float | str]]:
    """Each step with its cost, what it saves, and that in percent of the first."""
    known = list(steps)
    costs = np.array([step.cost for step in known])
    saved = -np.diff(costs, prepend=costs[0])
    return [
        {
            "step": step.name,
            "cost": step.cost,
            "saved": float(gain),
            "percent": float(100 * gain / costs[0]),
        }
        for step, gain in zip(known, saved, strict=True)
    ]
