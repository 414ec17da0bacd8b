"""Cost of all layers against the number of channels of each multicast domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fanplan.core.stop import never
from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.channels.report.curve import CurveWords, Level, curve_picture, other_numbers
from fanplan.layers.delivery.problem import DeliveryProblem
from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.delivery.report.section import least_words
from fanplan.layers.delivery.report.ways import count_ways
from fanplan.layers.delivery.search.joint import joint_delivery
from fanplan.layers.delivery.search.params import DeliveryParams
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.marking.record import MarkingRecord
from fanplan.page.content import Picture
from fanplan.page.material import CurvePoint
from fanplan.plan.stored import StoredPlan

CAPTION = (
    "On the same tree and with the same limits. No plan on any tree can be below the dotted line, "
    "however many channels it has."
)


def delivery_curve(
    plan: StoredPlan, problem: DeliveryProblem, numbers: Sequence[int]
) -> list[CurvePoint]:
    """All layers together, and one after the other, with other numbers of channels.

    Limits apply as they did. Takes as long as the search of the plan, for each number.
    """
    params, marks = delivery_params_of(plan.section(DeliveryRecord)), priced_marking(plan)
    points = []
    for number in numbers:
        wished = replace(params, channels=number)
        best, first = joint_delivery(problem, wished, plan.record.seed, never)
        points.append(CurvePoint(number, best.cost + marks, (first.cost + marks,)))
    return points


def delivery_curve_picture(name: str, plan: StoredPlan, points: Sequence[CurvePoint]) -> Picture:
    record, marks = plan.section(DeliveryRecord), priced_marking(plan)
    chosen = CurvePoint(record.channels, record.cost + marks, (record.layered + marks,))
    each = " on each site" if any(record.domains) else ""
    words = CurveWords(
        x_title=f"number of channels{each}",
        y_title="cost of all layers",
        caption=CAPTION,
        beside=(("naive", "planned layer by layer"),),
        levels=(Level(record.bound, least_words(record), "left"),),
    )
    return curve_picture(f"{name}-curve", points, chosen, words)


def delivery_params_of(record: DeliveryRecord) -> DeliveryParams:
    """What delivery was planned with."""
    return DeliveryParams(
        channels=record.channels,
        entries=record.params.most_entries,
        unicast_limit=record.params.unicast_limit,
        direct=record.params.direct,
        prices=record.params.prices,
    )


def priced_marking(plan: StoredPlan) -> float:
    """What descriptors cost as they are marked."""
    marking = plan.find(MarkingRecord)
    return plan.section(DeliveryRecord).params.prices.control * marking.cost if marking else 0.0


def wants_curve(plan: StoredPlan) -> bool:
    """Whether the plan has channels whose number can be another."""
    record = plan.section(DeliveryRecord)
    fixed = {ChannelsRecord.layer, GroupsRecord.layer} & set(record.params.fixed)
    return record.channels > 0 and not fixed


def designed_curve(plan: StoredPlan, dataset: Dataset, _: Engine) -> list[CurvePoint]:
    """All layers planned together with other numbers of channels, on the plan's own trees."""
    problem = count_ways(plan, dataset.path).stored.problem
    channels, flows = plan.section(DeliveryRecord).channels, plan.section(ChannelsRecord).flows
    return delivery_curve(plan, problem, other_numbers(channels, flows))
