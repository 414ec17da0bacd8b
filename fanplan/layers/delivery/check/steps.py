"""The steps from the naive system to the plan: recounted where the tables tell what they cost.

A random tree is not stored, nor is what the layers came to one after the other: of these steps only
what does not depend on them is proved.
"""

from __future__ import annotations

from collections.abc import Iterator

from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.delivery.read import StoredDelivery
from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.marking.record import MarkingRecord
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.plan.findings import TOLERANCE, Findings, require_close
from fanplan.plan.stored import StoredPlan

FLAT = ("broadcast", "unicast")
BROKERS = ("flooding on a random tree", "content routing on a random tree", "planned tree")
SITES, TOGETHER, LAYERED, MARKED = (
    "one broker per site", "all together", "layer by layer", "marking",
)  # fmt: skip
ORDER = (*FLAT, *BROKERS, SITES, "channels", LAYERED, TOGETHER, MARKED)

Counted = Iterator[tuple[str, str, float]]
"""Steps, their parts, and what these cost."""


def check_steps(plan: StoredPlan, stored: StoredDelivery, findings: Findings) -> None:
    """Add what is wrong with the steps."""
    record = plan.section(DeliveryRecord)
    stated = {step.name: step.parts for step in record.steps}
    first = BROKERS if plan.has(OverlayRecord) else FLAT
    marked = (MARKED,) if plan.has(MarkingRecord) else ()
    needed = {*first, LAYERED, TOGETHER, *marked}
    may = needed | {"channels"} | ({SITES} if plan.has(OverlayRecord) else set())
    expected = tuple(name for name in ORDER if name in may and name in needed | stated.keys())
    if expected != tuple(step.name for step in record.steps):
        findings.violate("plan.json: delivery.steps", 1, [f"not {', '.join(expected)}"])
        return
    for name, part, cost in (*naive_parts(plan, stored), *planned_parts(plan)):
        what = f"plan.json: delivery.steps, {name}: {part}"
        require_close(what, stated[name].get(part, 0.0), cost, record.cost, findings)
    check_random(stated, first, findings)


def naive_parts(plan: StoredPlan, stored: StoredDelivery) -> Counted:
    """Parts of what comes before channels. Each wanted copy is sent alone by the last broker."""
    record, interest = plan.section(DeliveryRecord), stored.problem.interest
    prices, ledger = record.params.prices, plan.section(ChannelsRecord).ledger
    lone = (prices.sent + prices.received) * ledger["received_wanted"]
    overlay, exact = plan.find(OverlayRecord), plan.record.input.exact
    total = float(interest.messages.sum())
    if overlay is None:
        yield FLAT[1], "last hop", lone
        if exact:
            everybody = prices.sent + prices.received * len(interest.subscribers)
            yield FLAT[0], "multicast", total * everybody
            for name in FLAT:
                yield name, "matching", prices.matched * total
        return
    for name in BROKERS:
        yield name, "last hop", lone
    if exact:
        yield BROKERS[0], "forwarding", prices.forwarded * total * (overlay.brokers - 1)
        yield BROKERS[0], "matching", prices.matched * total * overlay.brokers


def planned_parts(plan: StoredPlan) -> Counted:
    """Parts of the plan itself, and of subscriptions where links are marked."""
    record, marking = plan.section(DeliveryRecord), plan.find(MarkingRecord)
    for part, cost in record.parts.items():
        yield TOGETHER, part, cost
    if marking is not None:
        control = record.params.prices.control
        yield MARKED, "subscriptions", control * marking.cost
        for step in record.steps[:-1]:
            yield step.name, "subscriptions", control * marking.sub_everywhere
    layered = next(step for step in record.steps if step.name == LAYERED)
    yield LAYERED, "subscriptions", layered.cost - record.layered


def check_random(
    stated: dict[str, dict[str, float]], first: tuple[str, ...], findings: Findings
) -> None:
    """Content routing on a random tree, whichever it is, is within flooding."""
    if first is not BROKERS:
        return
    for part in ("forwarding", "matching"):
        routed, flooded = (stated[name].get(part, 0.0) for name in (BROKERS[1], BROKERS[0]))
        if routed > flooded * (1 + TOLERANCE):
            what = f"{routed} is above the {flooded} of flooding"
            findings.violate(f"plan.json: delivery.steps, {BROKERS[1]}: {part}", 1, [what])
