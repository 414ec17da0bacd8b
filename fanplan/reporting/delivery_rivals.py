"""The delivery of a plan beside others on the same trees: other ways, other numbers of channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fanplan.evaluation.prices import LedgerPrices
from fanplan.plan.delivery.record import DeliveryRecord
from fanplan.plan.stored import StoredPlan
from fanplan.planners.delivery.joint import joint_delivery, judge, without_channels
from fanplan.planners.delivery.layers import layer_by_layer
from fanplan.planners.delivery.params import DeliveryParams
from fanplan.planners.stop import Stop, never
from fanplan.problem.delivery import DeliveryProblem
from fanplan.reporting.bars import Stack
from fanplan.reporting.curve import CurvePoint

SUBSCRIPTIONS = "subscriptions"
"""What descriptors cost that travel from broker to broker."""


def params_of(record: DeliveryRecord) -> DeliveryParams:
    """What delivery was planned with."""
    return DeliveryParams(
        channels=record.channels,
        entries=record.entries,
        unicast_limit=record.unicast_limit,
        direct=record.direct_allowed,
        prices=LedgerPrices(**record.prices.model_dump()),
    )


def own_parts(plan: StoredPlan) -> Stack:
    """What the plan's cost consists of, as it says itself."""
    return Stack("this plan", plan.delivery.parts | subscriptions(plan, marked=True))


def rivals(plan: StoredPlan, problem: DeliveryProblem) -> list[Stack]:
    """Content routing alone, and channels and groups one after the other; without marking."""
    params = params_of(plan.delivery)
    plain = replace(params, entries=0, channels=0)
    alone = judge(problem, plain, without_channels(problem, plain))
    layered = judge(problem, params, layer_by_layer(problem, params, plan.record.seed, never))
    naive = "content routing on the same tree" if plan.record.overlay else "all by unicast"
    more = subscriptions(plan, marked=False)
    return [
        Stack(naive, alone.ledger.parts(params.prices) | more),
        Stack("layer by layer", layered.ledger.parts(params.prices) | more),
    ]


def subscriptions(plan: StoredPlan, marked: bool) -> dict[str, float]:
    """On marked links, or everywhere; nothing is known of them where no links are marked."""
    marking = plan.record.marking
    if marking is None:
        return {}
    count = marking.cost if marked else marking.sub_everywhere
    return {SUBSCRIPTIONS: plan.delivery.prices.control * count}


def delivery_curve(
    plan: StoredPlan, problem: DeliveryProblem, numbers: Sequence[int], stop: Stop = never
) -> list[CurvePoint]:
    """All layers together, and one after the other, with other numbers of channels.

    Limits apply as they did. Takes as long as the search of the plan, for each number.
    """
    params = params_of(plan.delivery)
    marks = sum(subscriptions(plan, marked=True).values())
    points = []
    for number in numbers:
        wished = replace(params, channels=number)
        best, first = joint_delivery(problem, wished, plan.record.seed, stop)
        points.append(CurvePoint(number, best.cost + marks, (first.cost + marks,)))
    return points
