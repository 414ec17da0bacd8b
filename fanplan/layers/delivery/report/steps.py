"""From the naive system to the plan of all layers, in words."""

from __future__ import annotations

from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.groups.record import GroupsRecord
from fanplan.page.bars import Stack
from fanplan.page.material import Planned
from fanplan.page.saving import Saving, Step
from fanplan.plan.stored import StoredPlan

UNIT = "cost of messages, matches and state"
LEAST = "what no plan can undercut"
TOGETHER, MARKED = "all together", "marking"
SYSTEMS = {
    "planned tree": "content routing on the planned tree",
    "channels": "with multicast channels",
    "layer by layer": "layers planned one by one",
    TOGETHER: "layers planned together",
}
"""What the steps of a plan are called as systems, unless by their own name."""

GAINS = {
    "content routing on a random tree": "routing on interest",
    "planned tree": "the planned tree",
    "channels": "multicast channels",
    "unicast": "sending on interest",
    TOGETHER: "planning all together",
    MARKED: "marking links",
}
"""What each step is due to; short, as a figure stands beside it, also on a phone."""


def saving_of(planned: Planned) -> Saving:
    """One cost for all layers, from flooding or broadcast to the plan."""
    record = planned.plan.section(DeliveryRecord)
    return Saving(
        name=planned.name,
        layer="All layers",
        plan=planned.folder,
        unit=UNIT,
        steps=tuple(
            Step(words, step.cost)
            for words, step in zip(words_of(record), record.steps, strict=True)
        ),
        gains=tuple(gain(step.name, planned.plan) for step in record.steps[1:]),
        least=Step(LEAST, record.bound),
    )


def stacks_of(record: DeliveryRecord) -> list[Stack]:
    """What the cost consists of at every step."""
    named = zip(words_of(record), record.steps, strict=True)
    return [Stack(words, step.parts) for words, step in named]


def words_of(record: DeliveryRecord) -> list[str]:
    """The steps as systems; the last is the plan."""
    return [*(SYSTEMS.get(step.name, step.name) for step in record.steps[:-1]), "this plan"]


def gain(name: str, plan: StoredPlan) -> str:
    """Layer by layer is what groups add to channels, or channels where there are no brokers."""
    if name == "layer by layer":
        return "groups matched once" if plan.has(GroupsRecord) else "multicast channels"
    return GAINS.get(name, name)
