"""The check of channels: is every interested subscriber served, at the cost that is stated?

Its count is apart from the cost model on purpose: sorted lists and binary search here, bitmaps
there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Bools, Bytes, Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.data.described import wanted_words
from fanplan.layers.channels.bound import Reach
from fanplan.layers.channels.check.bounds import check_bounds
from fanplan.layers.channels.check.evidence import (
    ChannelTruth,
    Decisions,
    PlanRelation,
    read_channel_truth,
    read_decisions,
)
from fanplan.layers.channels.check.limits import check_limits, named_flows
from fanplan.layers.channels.check.switches import check_switches
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.plan.axis import Axis, whole
from fanplan.plan.findings import (
    EXAMPLES,
    TOLERANCE,
    Findings,
    Missed,
    require_close,
)
from fanplan.plan.stored import StoredPlan
from fanplan.plan.tables import PLAN_FLOWS

UNWANTED, NEEDED, DOUBLE = 0, 1, 2

FEWEST = 2
"""Members of a channel. With fewer it is unicast under another name."""


@dataclass(frozen=True)
class Service:
    """Who is served. ``reached`` is per flow; the flags stand beside the plan's own pairs."""

    reached: Longs
    unserved: Longs
    """the first (flow, subscriber) pairs that nothing serves"""
    useful_channels: Bytes
    """per (flow, channel): 1 if a member wants the flow"""
    useful_members: Bytes
    """per (channel, subscriber): 1 if the member wants something on the channel"""
    unicast_use: Bytes
    """per (flow, subscriber): unwanted, needed, or a double of what a channel brings"""


def check_channels(
    plan: StoredPlan, dataset: Path, findings: Findings, reach: Reach | None = None
) -> Missed:
    """Add what is wrong; the (flow, interested subscriber) pairs not served, and the first of them.

    ``reach`` tells where channels reach if another layer binds them. Time is linear in flows times
    audience and in the plan's tables, memory in the latter.
    """
    record, truth = plan.section(ChannelsRecord), read_channel_truth(dataset)
    check_channel_sizes(record, truth, findings)
    words = wanted_words(dataset)
    check_flows(plan, truth, words, findings)
    decisions = read_decisions(plan, truth, findings)
    check_shared(record, truth, decisions, reach, findings)
    check_limits(record, truth, decisions, reach, findings)
    check_switches(plan, dataset, truth, decisions, findings)
    service = find_service(truth, decisions)
    missed, unserved = check_served(truth, words, service, findings)
    if reach is None:
        check_unicast(record, truth, decisions, findings)
    check_channel_costs(record, truth, decisions, service, findings)
    several = bool((np.diff(decisions.channels.starts) > 1).any())
    most = record.params.channels if reach is None else record.channels
    check_bounds(plan, truth, most, several, reach is None, findings)
    warn_of_waste(record, truth, decisions, service, findings)
    return Missed(missed, unserved)


def check_channel_sizes(record: ChannelsRecord, truth: ChannelTruth, findings: Findings) -> None:
    expected = {
        "flows": len(truth.messages),
        "audience_classes": len(truth.audience_starts) - 1,
        "seconds": truth.manifest.seconds,
    }
    for name, value in expected.items():
        require_close(f"plan.json: {name}", getattr(record, name), value, 0.0, findings)


def check_flows(
    plan: StoredPlan, truth: ChannelTruth, words: pa.ChunkedArray, findings: Findings
) -> None:
    """The plan's flows must be exactly the dataset's wanted flows, each once and unchanged."""
    table = plan.read("flows", tuple(column.name for column in PLAN_FLOWS.columns))
    axis = Axis("flow", truth.names)
    numbers = axis.number(table)
    unknown = table["flow"].filter(pa.array(numbers < 0)).to_pylist()
    findings.violate(
        "flows: not a wanted flow of the dataset", len(unknown), list(map(repr, unknown))
    )
    times = np.bincount(numbers[numbers >= 0], minlength=len(truth.names))
    for what, wrong in (("missing", times == 0), ("given twice", times > 1)):
        name_flows(f"flows: {what}", np.flatnonzero(wrong), truth, findings)
    known = table.filter(pa.array(numbers >= 0))
    own = truth.flows.append_column("description", words)
    check_flow_columns(known, own, numbers[numbers >= 0], truth, findings)


def check_flow_columns(
    table: pa.Table, flows: pa.Table, numbers: Ints, truth: ChannelTruth, findings: Findings
) -> None:
    """All that is told of a flow must be the dataset's."""
    own = flows.take(pa.array(numbers))
    seconds = truth.manifest.seconds
    differs = {
        "topic": unequal(table["topic"], own["topic"]),
        "cell": differing_cells(table["cell"], own["cell"]),
        "rate": ~np.isclose(table["rate"], pc.divide(own["messages"], seconds), TOLERANCE, 0.0),
        "bytes_rate": ~np.isclose(
            table["bytes_rate"], pc.divide(own["bytes"], seconds), TOLERANCE, 0.0
        ),
        "audience_class": unequal(table["audience_class"], own["audience_class"]),
        "description": unequal(table["description"], own["description"]),
    }
    for name, wrong in differs.items():
        name_flows(f"flows: {name} differs from the dataset", numbers[wrong], truth, findings)


def unequal(a: pa.ChunkedArray, b: pa.ChunkedArray) -> Bools:
    """Where two columns differ; a null differs from everything."""
    result: Bools = pc.not_equal(a, b).fill_null(True).to_numpy()
    return result


def differing_cells(stored: pa.ChunkedArray, own: pa.ChunkedArray) -> Bools:
    """Where two lists of cell numbers differ; null stands for the empty list."""
    stored, own = whole(stored), whole(own)
    sizes = [pc.list_value_length(cells).fill_null(0).to_numpy() for cells in (stored, own)]
    wrong: Bools = sizes[0] != sizes[1]
    same = pa.array(~wrong)
    values = [cells.filter(same).flatten().to_numpy() for cells in (stored, own)]
    row = np.repeat(np.flatnonzero(~wrong), sizes[0][~wrong])
    wrong[row[values[0] != values[1]]] = True
    return wrong


def name_flows(what: str, numbers: Ints | Longs, truth: ChannelTruth, findings: Findings) -> None:
    findings.violate(what, len(numbers), list(named_flows(truth, numbers)))


def check_shared(
    record: ChannelsRecord,
    truth: ChannelTruth,
    decisions: Decisions,
    reach: Reach | None,
    findings: Findings,
) -> None:
    """Two or more are on every channel, but for those that a user asked for by name."""
    if record.params.options.get("lone") or (reach is not None and reach.fixed()):
        return
    sizes = np.diff(decisions.members.starts)
    carried = decisions.channels.sides()
    wrong = sizes == 1
    wrong[carried.right[sizes[carried.right] == 0]] = True
    topics, wanted = truth.flows["topic"].to_pylist(), set(record.params.pinned)
    if wanted:
        flows = truth.names.to_pylist()
        asked = [{flows[i], topics[i]} & wanted != set() for i in carried.left]
        wrong[carried.right[asked]] = False
    few = np.flatnonzero(wrong)
    examples = [f"channel {j} has {sizes[j]}" for j in few[:EXAMPLES]]
    findings.violate(f"channels: fewer than {FEWEST} members", len(few), examples)


def check_unicast(
    record: ChannelsRecord, truth: ChannelTruth, decisions: Decisions, findings: Findings
) -> None:
    """A limit on unicast holds for what several want; or for all, if channels may be lone."""
    limit, unicast = record.params.unicast_limit, np.diff(decisions.unicast.starts)
    if limit is None:
        return
    several = np.diff(truth.audience_starts)[truth.classes] >= FEWEST
    if record.params.options.get("lone"):
        several[:] = True
    sent = times(truth.messages, np.diff(decisions.channels.starts) + unicast)
    counted = times(truth.messages, unicast * several)
    if counted > limit * sent * (1 + TOLERANCE):
        what = f"{counted / sent:.6g} of what is sent is more than {limit:g}"
        findings.violate("unicast: too much that several want", 1, [what])


def find_service(truth: ChannelTruth, decisions: Decisions) -> Service:
    """Look up every interested subscriber of every flow in the channels and in unicast."""
    service = Service(
        reached=np.zeros(len(truth.messages), dtype=np.int64),
        unserved=np.full((EXAMPLES, 2), -1, dtype=np.int64),
        useful_channels=np.zeros(len(decisions.channels.right), dtype=np.uint8),
        useful_members=np.zeros(len(decisions.members.right), dtype=np.uint8),
        unicast_use=np.full(len(decisions.unicast.right), UNWANTED, dtype=np.uint8),
    )
    serve(
        (truth.classes, truth.audience_starts, truth.audience),
        (decisions.channels.starts, decisions.channels.right),
        (decisions.members.starts, decisions.members.right),
        (decisions.unicast.starts, decisions.unicast.right),
        (service.reached, service.unserved),
        (service.useful_channels, service.useful_members, service.unicast_use),
    )
    return service


@compiled
def serve(
    interest: tuple[Ints, Longs, Ints],
    carried: tuple[Longs, Ints],
    joined: tuple[Longs, Ints],
    direct: tuple[Longs, Ints],
    result: tuple[Longs, Longs],
    flags: tuple[Bytes, Bytes, Bytes],
) -> None:
    """Fill ``result`` and ``flags``; time is the audiences times channels per flow times log."""
    classes, audience_starts, audience = interest
    reached, unserved = result
    named = 0
    for flow in range(len(classes)):
        start, end = audience_starts[classes[flow]], audience_starts[classes[flow] + 1]
        for subscriber in audience[start:end]:
            by_channel = serve_by_channel(flow, subscriber, carried, joined, flags)
            at = find_sorted(direct[1], direct[0][flow], direct[0][flow + 1], subscriber)
            if at >= 0:
                flags[2][at] = DOUBLE if by_channel else NEEDED
            if by_channel or at >= 0:
                reached[flow] += 1
            elif named < len(unserved):
                unserved[named, 0] = flow
                unserved[named, 1] = subscriber
                named += 1


@compiled
def serve_by_channel(
    flow: int,
    subscriber: int,
    carried: tuple[Longs, Ints],
    joined: tuple[Longs, Ints],
    flags: tuple[Bytes, Bytes, Bytes],
) -> bool:
    """Whether the subscriber joined a channel that carries the flow; flags all such channels."""
    served = False
    for i in range(carried[0][flow], carried[0][flow + 1]):
        channel = carried[1][i]
        at = find_sorted(joined[1], joined[0][channel], joined[0][channel + 1], subscriber)
        if at >= 0:
            flags[0][i] = 1
            flags[1][at] = 1
            served = True
    return served


@compiled
def find_sorted(values: Ints, start: int, end: int, value: int) -> int:
    """Position of a value in the ascending part from ``start`` to ``end``, or −1."""
    while start < end:
        middle = (start + end) // 2
        if values[middle] < value:
            start = middle + 1
        elif values[middle] > value:
            end = middle
        else:
            return middle
    return -1


def check_served(
    truth: ChannelTruth, words: pa.ChunkedArray, service: Service, findings: Findings
) -> tuple[int, tuple[tuple[str, str], ...]]:
    """Every interested subscriber must be served: how many are not, and the first of them."""
    audiences = np.diff(truth.audience_starts)[truth.classes]
    missed = int((audiences - service.reached).sum())
    unserved = tuple(
        (truth.names[int(flow)].as_py(), truth.subscribers[int(subscriber)].as_py())
        for flow, subscriber in service.unserved[:missed]
    )
    told = [words[int(flow)].as_py() for flow in service.unserved[:missed, 0]]
    examples = [
        f"flow {flow!r} for subscriber {subscriber!r} ({what})"
        for (flow, subscriber), what in zip(unserved, told, strict=True)
    ]
    findings.violate("not served", missed, examples)
    return missed, unserved


def check_channel_costs(
    record: ChannelsRecord,
    truth: ChannelTruth,
    decisions: Decisions,
    service: Service,
    findings: Findings,
) -> None:
    """The ledger and the costs in plan.json must be those counted here."""
    counted = count_ledger(truth, decisions, service)
    received = counted["received_wanted"] + counted["received_unwanted"]
    entries = record.ledger | dict.fromkeys(counted.keys() - record.ledger.keys(), float("nan"))
    for name, stated in entries.items():
        require_close(f"ledger: {name}", stated, counted.get(name, 0.0), received, findings)
    for name, value in costs(record, truth, counted).items():
        stated = getattr(record, name)
        scale = record.cost if name in ("cost", "perfect") else 100.0
        require_close(f"plan.json: {name}", stated, value, scale, findings)


def count_ledger(truth: ChannelTruth, decisions: Decisions, service: Service) -> dict[str, float]:
    """The ledger's entries, counted flow by flow."""
    channels = np.diff(decisions.channels.starts)
    unicast = np.diff(decisions.unicast.starts)
    members = np.diff(decisions.members.starts)[decisions.channels.right]
    copies = np.diff(np.append(0, np.cumsum(members))[decisions.channels.starts]) + unicast
    audiences = np.diff(truth.audience_starts)[truth.classes]
    # Who gets a flow gets all that it asked for of it; cells may hold more than that.
    served = service.reached == audiences
    wanted = float(np.where(served, truth.wanted, truth.messages * service.reached).sum())
    return {
        "sent_multicast": times(truth.messages, channels),
        "sent_unicast": times(truth.messages, unicast),
        "received_wanted": wanted,
        "received_unwanted": times(truth.messages, copies) - wanted,
        "missed": times(truth.messages, audiences - service.reached),
        "sent_bytes": times(truth.bytes, channels + unicast),
        "received_bytes": times(truth.bytes, copies),
    }


def times(amount: Floats, count: Longs) -> float:
    return float((amount * count).sum())


def costs(
    record: ChannelsRecord, truth: ChannelTruth, counted: dict[str, float]
) -> dict[str, float]:
    """Eq. 1 of Bickson et al. (2010) and what follows from it."""
    w = record.weights
    unicast, multicast = counted["sent_unicast"], counted["sent_multicast"]
    joined = counted["received_wanted"] + counted["received_unwanted"] - unicast
    cost = w.w1 * joined + w.w2 * multicast + w.w3 * (w.w1 + w.w2) * unicast
    perfect = float(w.w2 * truth.messages.sum() + w.w1 * truth.wanted.sum())
    return {
        "cost": cost,
        "perfect": perfect,
        "excess_percent": percent_above(cost, perfect),
        "bound_percent": percent_above(record.bound, perfect),
        "single_bound_percent": percent_above(record.single_bound, perfect),
        "unicast_fraction": unicast / (unicast + multicast) if unicast + multicast else 0.0,
    }


def percent_above(cost: float, perfect: float) -> float:
    return 100.0 * (cost - perfect) / perfect if perfect else 0.0


def warn_of_waste(
    record: ChannelsRecord,
    truth: ChannelTruth,
    decisions: Decisions,
    service: Service,
    findings: Findings,
) -> None:
    """What could be left out of the plan without anybody missing anything."""
    flow = Axis("flow", truth.names)
    subscriber = Axis("subscriber", truth.subscribers)
    channel = Axis("channel", pa.array(np.arange(record.channels)))
    use = service.unicast_use
    for what, relation, left, right, wrong in (
        ("no member wants it", decisions.channels, flow, channel, service.useful_channels == 0),
        (
            "member needs nothing",
            decisions.members,
            channel,
            subscriber,
            service.useful_members == 0,
        ),
        ("unicast not wanted", decisions.unicast, flow, subscriber, use == UNWANTED),
        ("unicast and channel", decisions.unicast, flow, subscriber, use == DOUBLE),
    ):
        warn_pairs(what, relation, left, right, np.flatnonzero(wrong), findings)


def warn_pairs(
    what: str, relation: PlanRelation, left: Axis, right: Axis, wrong: Longs, findings: Findings
) -> None:
    """Name the pairs at these positions."""
    few = wrong[:EXAMPLES]
    pairs = zip(relation.left(few), relation.right[few], strict=True)
    examples = [f"{left.label(i)} with {right.label(j)}" for i, j in pairs]
    findings.warn(f"waste: {what}", len(wrong), examples)
