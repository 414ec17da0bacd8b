"""From the naive system to the plan of all layers, in words."""

from __future__ import annotations

from fanplan.plan.stored import StoredPlan
from fanplan.reporting.material import Planned
from fanplan.reporting.saving import Saving, Step

UNIT = "cost of messages, matches and state"
LEAST = "what no plan can undercut"
TOGETHER, MARKED = "all together", "marking"
SYSTEMS = {
    "planned tree": "content routing on the planned tree",
    "channels": "multicast channels on the planned tree",
    "layer by layer": "layers planned one after the other",
    TOGETHER: "layers planned together, links not marked",
}
"""What the steps of a plan are called as systems, unless by their own name."""

GAINS = {
    "content routing on a random tree": "sending only where it is wanted",
    "planned tree": "the planned tree of brokers",
    "channels": "multicast channels",
    "unicast": "sending only to who wants it",
    TOGETHER: "planning all layers together",
    MARKED: "marking links",
}
"""What each step is due to."""


def saving_of(planned: Planned) -> Saving:
    """One cost for all layers, from flooding or broadcast to the plan."""
    record = planned.plan.delivery
    names = [step.name for step in record.steps]
    words = [*(SYSTEMS.get(name, name) for name in names[:-1]), "this plan"]
    costs = [step.cost for step in record.steps]
    return Saving(
        name=planned.name,
        layer="All layers",
        plan=planned.folder,
        unit=UNIT,
        steps=tuple(Step(*one) for one in zip(words, costs, strict=True)),
        gains=tuple(gain(name, planned.plan) for name in names[1:]),
        least=Step(LEAST, record.bound),
    )


def gain(name: str, plan: StoredPlan) -> str:
    """Layer by layer is what groups add to channels, or channels where there are no brokers."""
    if name == "layer by layer":
        return "groups that are matched once" if plan.record.groups else "multicast channels"
    return GAINS.get(name, name)
