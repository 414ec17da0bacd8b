"""The limits that plan.json states of channels, proved from the tables alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fanplan.core.arrays import Bools, Floats, Ints, Longs
from fanplan.layers.channels.bound import Reach
from fanplan.layers.channels.check.evidence import ChannelTruth, Decisions
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.plan.findings import EXAMPLES, TOLERANCE, Findings


def check_limits(
    record: ChannelsRecord,
    truth: ChannelTruth,
    decisions: Decisions,
    reach: Reach | None,
    findings: Findings,
) -> None:
    """Every limit that holds for any plan. That on unicast depends on how far channels reach."""
    check_count(record, reach, findings)
    check_width(record, truth, decisions, findings)
    check_rates(record, truth, decisions, findings)
    check_joined(record, truth, decisions, findings)
    check_wishes(record, truth, decisions, findings)


def check_count(record: ChannelsRecord, reach: Reach | None, findings: Findings) -> None:
    """No more channels than asked for: in each domain, if they are bound to domains."""
    domains = reach.domains() if reach is not None else ()
    counts = Counter(domains) if domains else Counter({"": record.channels})
    most = record.params.channels
    told = [f"{n}{f' in {name!r}' if name else ''}" for name, n in counts.items() if n > most]
    findings.violate(f"channels: more than {most}", len(told), told)


def check_width(
    record: ChannelsRecord, truth: ChannelTruth, decisions: Decisions, findings: Findings
) -> None:
    if record.params.options.get("multiple") is False:
        several = np.flatnonzero(np.diff(decisions.channels.starts) > 1)
        told = list(named_flows(truth, several))
        findings.violate("channel_flows: on several channels, not one", len(several), told)


def check_rates(
    record: ChannelsRecord, truth: ChannelTruth, decisions: Decisions, findings: Findings
) -> None:
    most, carried = record.params.max_channel_rate, decisions.channels.sides()
    if most is None:
        return
    messages = np.bincount(carried.right, truth.messages[carried.left], record.channels)
    rate: Floats = messages / truth.manifest.seconds
    over = np.flatnonzero(rate > most * (1 + TOLERANCE))
    told = [f"channel {j} has {rate[j]:.6g}" for j in over[:EXAMPLES]]
    findings.violate(f"channels: more than {most:g} messages/s", len(over), told)


def check_joined(
    record: ChannelsRecord, truth: ChannelTruth, decisions: Decisions, findings: Findings
) -> None:
    limits = record.params.max_channels_per_subscriber
    if limits is None:
        return
    names = truth.subscribers.to_pylist()
    joined = np.bincount(decisions.members.right, minlength=len(names))
    most = most_joined(limits, names, findings)
    over = np.flatnonzero(joined > most)
    told = [f"{names[i]!r} has {joined[i]}, not {most[i]:g}" for i in over[:EXAMPLES]]
    findings.violate("channel_subscribers: a subscriber is on too many", len(over), told)


def most_joined(limits: object, names: Sequence[str], findings: Findings) -> Floats:
    """The most channels that each subscriber may join; infinity where nothing is said."""
    if isinstance(limits, int):
        return np.full(len(names), float(limits))
    if isinstance(limits, Mapping):
        strange = sorted(limits.keys() - set(names))
        told = list(map(repr, strange))
        findings.violate("max_channels_per_subscriber: no subscriber", len(strange), told)
        return np.array([float(limits.get(name, np.inf)) for name in names])
    what = f"{limits!r} is neither a number nor one for each subscriber"
    findings.violate("max_channels_per_subscriber", 1, [what])
    return np.full(len(names), np.inf)


def check_wishes(
    record: ChannelsRecord, truth: ChannelTruth, decisions: Decisions, findings: Findings
) -> None:
    """Pinned flows have no unicast, and those off multicast no channel."""
    for option, names, relation in (
        ("pinned", record.params.pinned, decisions.unicast),
        ("off_multicast", record.params.off_multicast, decisions.channels),
    ):
        if not names:
            continue
        asked, strange = flows_of(names, truth)
        findings.violate(f"{option}: no flow or topic", len(strange), list(map(repr, strange)))
        wrong = np.flatnonzero(asked & (np.diff(relation.starts) > 0))
        told = list(named_flows(truth, wrong))
        findings.violate(f"{option}: not as asked for", len(wrong), told)


def flows_of(names: Sequence[str], truth: ChannelTruth) -> tuple[Bools, list[str]]:
    """The flows of that name, or else of that topic; and the names of neither."""
    flows, topics = truth.names.to_pylist(), truth.flows["topic"].to_pylist()
    own, wanted = set(flows), set(names)
    whole = wanted - own
    asked = [flow in wanted or topic in whole for flow, topic in zip(flows, topics, strict=True)]
    return np.array(asked, dtype=np.bool_), sorted(whole - set(topics))


def named_flows(truth: ChannelTruth, numbers: Ints | Longs) -> Iterator[str]:
    return (repr(truth.names[int(number)].as_py()) for number in numbers[:EXAMPLES])
