"""The check of delivery: channels stay in their domains, limits hold, and costs add up.

That channels reach everybody, and groups all brokers that are needed, is checked with those layers;
here is what binds them together.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fanplan.core.errors import InputError, Problem
from fanplan.core.prices import LedgerPrices
from fanplan.data.integrity import DamagedError
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.delivery.check.claims import check_claims
from fanplan.layers.delivery.check.steps import check_steps
from fanplan.layers.delivery.params import CHANNELS
from fanplan.layers.delivery.read import StoredDelivery, read_delivery
from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.delivery.recount import beyond, reached_by_channels, sent_beyond
from fanplan.layers.groups.read import read_groups
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.marking.record import MarkingRecord
from fanplan.network.dataset import read_brokers
from fanplan.plan.findings import EXAMPLES, TOLERANCE, Findings, require_close
from fanplan.plan.stored import PLAN_AGAIN, StoredPlan


def check_delivery(plan: StoredPlan, dataset: Path, findings: Findings) -> None:
    """Add what is wrong."""
    try:
        trees = None
        if plan.has(GroupsRecord):
            trees = read_groups(plan, read_brokers(dataset).names).trees
        stored = read_delivery(plan, dataset, trees)
        require_ledgers(plan)
    except DamagedError:
        raise
    except InputError as error:
        for wrong in error.problems:
            findings.violate("delivery", 1, [wrong.what])
        return
    check_domains(stored, findings)
    check_direct(stored, findings)
    check_delivery_limits(plan, stored, findings)
    check_delivery_costs(plan, stored, findings)
    check_steps(plan, stored, findings)
    check_claims(plan, dataset, stored, findings)


def require_ledgers(plan: StoredPlan) -> None:
    """Costs are sums over the ledgers of other layers, whose own checks count them."""
    near = {"sent_multicast", "sent_unicast", "received_wanted", "received_unwanted"}
    far = {"link_messages", "matches_total", "entries", "overhead"}
    lacking = near - plan.section(ChannelsRecord).ledger.keys()
    if plan.has(GroupsRecord):
        lacking |= far - plan.section(GroupsRecord).ledger.keys()
    if lacking:
        what = f"no ledger has {', '.join(sorted(lacking))}"
        raise InputError(Problem("plan.json", what, PLAN_AGAIN))


def check_domains(stored: StoredDelivery, findings: Findings) -> None:
    """Members of a channel are in its domain."""
    problem = stored.problem
    home = problem.home[stored.members.right]
    outside = np.flatnonzero(problem.domain[home] != stored.domain[stored.members.left])
    people = problem.interest.subscribers
    names = [
        f"channel {stored.members.left[row]}, {people[int(stored.members.right[row])].as_py()!r}"
        for row in outside[:EXAMPLES]
    ]
    findings.violate("channels: a member is in another domain", len(outside), names)


def check_direct(stored: StoredDelivery, findings: Findings) -> None:
    """What goes past the brokers is on no channel."""
    both = np.unique(stored.assigned.left[stored.direct[stored.assigned.left]])
    findings.violate("direct_classes: on a channel too", len(both), [f"class {c}" for c in both])


def check_delivery_limits(plan: StoredPlan, stored: StoredDelivery, findings: Findings) -> None:
    """What was asked of the design is stated by each layer alike, and holds.

    Channels are counted in their own check, by domain.
    """
    record, near = plan.section(DeliveryRecord), plan.section(ChannelsRecord).params
    stated: list[tuple[str, float | None, float | None]] = [
        ("channels", record.channels, near.channels),
        ("unicast_limit", record.params.unicast_limit, near.unicast_limit),
    ]
    # Channels that were taken from another plan are as many as they are.
    if CHANNELS not in record.params.fixed:
        stated.append(("channels", record.params.channels, record.channels))
    for name, asked, said in stated:
        findings.violate(f"plan.json: {name}", int(asked != said), [f"{asked} here, {said} there"])
    entries = plan.section(GroupsRecord).ledger["entries"] if plan.has(GroupsRecord) else 0
    if record.params.most_entries is not None and entries > record.params.most_entries:
        findings.violate(
            "entries: too many", 1, [f"{entries} are more than {record.params.most_entries}"]
        )
    limit = record.params.unicast_limit
    if limit is not None and record.unicast_counted > limit * (1 + TOLERANCE):
        what = f"{record.unicast_counted} of what is sent is more than {limit}"
        findings.violate("unicast: too much that several want", 1, [what])
    if stored.direct.any() and not record.params.direct:
        findings.violate("direct_classes: not allowed", int(stored.direct.sum()), [])


def check_delivery_costs(plan: StoredPlan, stored: StoredDelivery, findings: Findings) -> None:
    """Parts from the ledgers of the layers, which their own checks have counted."""
    record, counted = plan.section(DeliveryRecord), cost_parts(plan, stored)
    prices = record.params.prices
    total = sum(counted.values())
    for name in sorted(counted.keys() | record.parts.keys()):
        said, found = record.parts.get(name, np.nan), counted.get(name, np.nan)
        require_close(f"plan.json: delivery.parts.{name}", said, found, total, findings)
    ledger = plan.section(ChannelsRecord).ledger
    sent = ledger["sent_multicast"] + ledger["sent_unicast"]
    figures = {
        "cost": total,
        "classes": stored.problem.interest.size,
        "direct": stored.direct.sum(),
        "unicast_fraction": ledger["sent_unicast"] / sent if sent else 0.0,
        "unicast_counted": counted_unicast(stored) / sent if sent else 0.0,
    }
    for name, value in figures.items():
        stated = getattr(record, name)
        require_close(f"plan.json: delivery.{name}", stated, float(value), total, findings)
    last = total + (
        prices.control * plan.section(MarkingRecord).cost if plan.has(MarkingRecord) else 0.0
    )
    if record.steps:
        what = "plan.json: delivery.steps, the last"
        require_close(what, record.steps[-1].cost, last, total, findings)
    for step in record.steps:
        what, own = f"plan.json: delivery.steps, {step.name}", sum(step.parts.values())
        require_close(what, step.cost, own, total, findings)
    require_close(
        "plan.json: delivery.bound", record.bound, lowest(stored, prices), total, findings
    )
    if record.cost > record.layered * (1 + TOLERANCE):
        what = f"{record.cost} is above {record.layered}"
        findings.violate("plan.json: delivery.layered", 1, [what])


def lowest(stored: StoredDelivery, prices: LedgerPrices) -> float:
    """No delivery costs less: each message is matched once, and sent to each subscriber directly,
    or once to each domain, and to all who are in none, after a link to each place but one."""
    problem, interest = stored.problem, stored.problem.interest
    row = interest.pair_rows
    home = problem.home[interest.audience].astype(np.int64)
    domain = problem.domain[home].astype(np.int64)
    place = np.where(domain >= 0, domain, -1 - home)
    order = np.lexsort((place, row))
    new = np.append(True, (np.diff(row[order]) != 0) | (np.diff(place[order]) != 0))[: len(row)]
    first, at = row[order][new], place[order][new]
    places = np.bincount(first, minlength=interest.size)
    sent = np.bincount(np.append(first[at >= 0], row[domain < 0]), minlength=interest.size)
    links = np.maximum(places, 1) - 1
    routed = prices.received * interest.audience_sizes + prices.sent * sent
    routed = (routed + prices.forwarded * links)[problem.row]
    far = (prices.direct - 1) * beyond(problem)
    direct = (prices.sent + prices.received) * (interest.audience_sizes[problem.row] + far)
    return float((problem.messages * (prices.matched + np.minimum(routed, direct))).sum())


def cost_parts(plan: StoredPlan, stored: StoredDelivery) -> dict[str, float]:
    """What each part of the ledger costs."""
    problem, interest = stored.problem, stored.problem.interest
    far = plan.section(GroupsRecord).ledger if plan.has(GroupsRecord) else {}
    row = interest.pair_rows
    past = stored.direct[row]
    direct = float(sent_beyond(problem, row[past], interest.audience[past]).sum())
    total = float(interest.messages.sum())
    return priced_parts(
        plan.section(DeliveryRecord).params.prices,
        plan.section(ChannelsRecord).ledger,
        direct,
        far,
        total,
    )


def counted_unicast(stored: StoredDelivery) -> float:
    """Messages by unicast to somebody in whose domain others want them too."""
    problem, interest = stored.problem, stored.problem.interest
    row = interest.pair_rows
    domain = problem.domain[problem.home[interest.audience]].astype(np.int64)
    key = row * (problem.domains + 1) + domain + 1
    _, at, times = np.unique(key, return_inverse=True, return_counts=True)
    channels = len(stored.domain)
    served = reached_by_channels(problem, stored.assigned, stored.members, channels)
    alone = np.asarray(served[row, interest.audience]).ravel() == 0
    return float(interest.messages[row[alone & (domain >= 0) & (times[at] > 1)]].sum())


def priced_parts(
    prices: LedgerPrices,
    near: Mapping[str, float],
    direct: float,
    far: Mapping[str, float],
    messages: float,
) -> dict[str, float]:
    """The parts of the cost: ``near`` is the ledger of channels, ``far`` that of brokers, if any.

    Of what is sent by unicast, ``direct`` goes past brokers to another domain; ``messages`` enter.
    """
    received = near["received_wanted"] + near["received_unwanted"] - near["sent_unicast"]
    lone = prices.sent + prices.received
    return {
        "multicast": prices.sent * near["sent_multicast"] + prices.received * received,
        "last hop": lone * (near["sent_unicast"] - direct),
        "direct unicast": prices.direct * lone * direct,
        "forwarding": prices.forwarded * far.get("link_messages", 0.0),
        "matching": prices.matched * far.get("matches_total", messages),
        "state": prices.entry * far.get("entries", 0.0),
        "control": prices.control * far.get("overhead", 0.0),
    }
