"""Two channel plans in the same numbers, and who must be served while one becomes the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse
from scipy.optimize import linear_sum_assignment

from fanplan.core.arrays import Longs
from fanplan.core.errors import InputError, Problem
from fanplan.data.reader import Manifest
from fanplan.layers.channels.bound import Reach
from fanplan.layers.channels.check.evidence import (
    ChannelTruth,
    Decisions,
    PlanRelation,
    read_channel_truth,
    read_decisions,
)
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.plan.axis import Axis, whole
from fanplan.plan.findings import Findings
from fanplan.plan.stored import StoredPlan


@dataclass(frozen=True, eq=False)
class PlanKeys:
    """The decisions of a plan as ascending keys: left × width + right."""

    carried: Longs
    """flow, channel"""
    members: Longs
    """channel, subscriber"""
    unicast: Longs
    """flow, subscriber"""
    direct: Longs
    """flow: it goes to its unicasts past the brokers, and to no channel"""


@dataclass(frozen=True, eq=False)
class ChannelWorld:
    """Both plans over the flows and subscribers of either.

    Channels of the new plan have the numbers of the old one's that they are most alike, in the same
    multicast domain: ``running`` tells them, and ``domains`` where each number is. ``known`` says
    whether audiences are those of a dataset; else everybody counts who gets a flow by both plans.
    """

    truth: ChannelTruth
    channels: int
    old: PlanKeys
    new: PlanKeys
    running: Longs
    known: bool
    domains: tuple[str, ...]

    @property
    def users(self) -> int:
        """The width of keys with a subscriber."""
        return max(1, len(self.truth.subscribers))


@dataclass(frozen=True, eq=False)
class SentByPlan:
    """What a plan decides of channels: the domain of each, and which flows go past the brokers."""

    decisions: Decisions
    domains: tuple[str, ...]
    direct: Longs


Reaches = tuple[Reach | None, Reach | None]
"""Where the channels of two plans reach; None: everywhere."""


def channel_world(
    old: StoredPlan, new: StoredPlan, dataset: Path | None, reach: Reaches = (None, None)
) -> ChannelWorld:
    """Flows count with the traffic of the dataset, or of the new plan; if gone, of the old one."""
    truth = either(old, new) if dataset is None else extended(read_channel_truth(dataset), old, new)
    before, after = sent(old, truth, reach[0]), sent(new, truth, reach[1])
    return world_between(truth, before, after, dataset is not None)


def sent(plan: StoredPlan, truth: ChannelTruth, reach: Reach | None) -> SentByPlan:
    """The tables of a plan as numbers; a plan with rows given twice is refused.

    Without a reach channels reach everywhere.
    """
    findings = Findings()
    decisions = read_decisions(plan, truth, findings)
    if findings.violations:
        what = "; ".join(findings.violations)
        raise InputError(Problem(str(plan.folder), what, "See what `fanplan check` says of it"))
    if reach is None:
        everywhere = ("",) * plan.section(ChannelsRecord).channels
        return SentByPlan(decisions, everywhere, np.zeros(0, np.int64))
    return SentByPlan(decisions, reach.domains(), reach.direct(truth))


def world_between(
    truth: ChannelTruth, before: SentByPlan, after: SentByPlan, known: bool
) -> ChannelWorld:
    """Two plans over the same flows and subscribers, the later one under running numbers."""
    running = match_channels(before, after, len(truth.subscribers))
    if not known:
        truth = with_common_audience(truth, before, after)
    kept = len(before.domains)
    channels = int(max(kept, running.max(initial=-1) + 1))
    numbers = dict(zip(running.tolist(), after.domains, strict=True))
    return ChannelWorld(
        truth,
        channels,
        plan_keys(before, np.arange(channels), channels, len(truth.subscribers)),
        plan_keys(after, running, channels, len(truth.subscribers)),
        running,
        known,
        (*before.domains, *(numbers[number] for number in range(kept, channels))),
    )


def flow_traffic(plan: StoredPlan, seconds: float) -> pa.Table:
    """Flows of a plan with their traffic over a window."""
    table = plan.read("flows", ("flow", "rate", "bytes_rate"))
    names = table["flow"].cast(pa.large_string())
    totals = [pc.multiply(table[name], seconds) for name in ("rate", "bytes_rate")]
    return pa.table([names, *totals], names=["flow", "messages", "bytes"])


def either(old: StoredPlan, new: StoredPlan) -> ChannelTruth:
    """Flows and subscribers of either plan, nobody wanting anything yet."""
    record = new.record.input
    manifest = Manifest(
        record.key, record.seconds, record.cover, record.grid, record.exact, record.parameters
    )
    flows = flow_traffic(new, record.seconds)
    nobody = np.zeros(len(flows), np.int32)
    known = ChannelTruth(
        manifest,
        flows,
        whole(flows["flow"]),
        flows["messages"].to_numpy(),
        flows["bytes"].to_numpy(),
        nobody,
        np.zeros(2, np.int64),
        np.zeros(0, np.int32),
        pa.array([], pa.string()),
    )
    return extended(known, old, new)


def extended(truth: ChannelTruth, *plans: StoredPlan) -> ChannelTruth:
    """A truth with the flows and subscribers of plans that it does not know: nobody wants those."""
    names = [truth.subscribers.cast(pa.string())]
    for plan in plans:
        truth = with_flows(truth, flow_traffic(plan, truth.manifest.seconds))
        for table in ("channel_subscribers", "unicast"):
            names += plan.read(table, ("subscriber",))["subscriber"].cast(pa.string()).chunks
    known = len(truth.subscribers)
    unique = pc.unique(pa.chunked_array(names, pa.string()))
    more = unique[known:]
    # Those of the dataset keep their numbers; others follow by name.
    by_name = more.take(pc.sort_indices(more))
    return replace(truth, subscribers=pa.concat_arrays([unique[:known], by_name]))


def with_flows(truth: ChannelTruth, flows: pa.Table) -> ChannelTruth:
    more = flows.filter(pa.array(Axis("flow", truth.names).number(flows) < 0)).sort_by("flow")
    nobody = len(truth.audience_starts) - 1
    return replace(
        truth,
        names=pa.concat_arrays([truth.names, whole(more["flow"])]),
        messages=np.append(truth.messages, more["messages"].to_numpy()),
        bytes=np.append(truth.bytes, more["bytes"].to_numpy()),
        classes=np.append(truth.classes, np.full(len(more), nobody, np.int32)),
        audience_starts=np.append(truth.audience_starts, truth.audience_starts[-1]),
        asked=None if truth.asked is None else np.append(truth.asked, np.zeros(len(more))),
    )


def plan_keys(plan: SentByPlan, running: Longs, channels: int, subscribers: int) -> PlanKeys:
    """Keys of all pairs, channels under their running numbers."""
    found = plan.decisions
    flows, carried = found.channels.sides()
    channel, member = found.members.sides()
    flow, receiver = found.unicast.sides()
    return PlanKeys(
        np.sort(flows * channels + running[carried]),
        np.sort(running[channel] * subscribers + member),
        np.sort(flow * subscribers + receiver),
        plan.direct,
    )


def relation_matrix(relation: PlanRelation, width: int) -> scipy.sparse.csr_array:
    """1 for each pair."""
    shape = (len(relation.starts) - 1, width)
    ones = np.ones(len(relation.right), np.int64)
    return scipy.sparse.csr_array((ones, relation.right, relation.starts), shape=shape)


def match_channels(old: SentByPlan, new: SentByPlan, subscribers: int) -> Longs:
    """The old number for each new channel, so that the fewest pairs change; then others from there.

    An assignment problem: pairs that both have are saved, and channels of other domains have
    nothing to do with each other. Of equal answers the one that keeps most numbers is taken.
    """
    both = (old, new)
    sizes = [len(plan.domains) for plan in both]
    members = [relation_matrix(plan.decisions.members, subscribers) for plan in both]
    carried = [relation_matrix(plan.decisions.channels, len(plan.domains)) for plan in both]
    common = (members[0] @ members[1].T + carried[0].T @ carried[1]).toarray()
    # A number alone counts too: so as many as can be are taken over in each domain.
    saved = (common.astype(np.float64) + 1) * (max(sizes) + 1)
    np.fill_diagonal(saved, saved.diagonal() + 1)
    alike = np.array(old.domains, object)[:, None] == np.array(new.domains, object)
    rows, columns = linear_sum_assignment(np.where(alike, saved, 0.0), maximize=True)
    same = alike[rows, columns].astype(bool)
    running = np.full(sizes[1], -1, np.int64)
    running[columns[same]] = rows[same]
    running[running < 0] = np.arange(sizes[0], sizes[0] + (running < 0).sum())
    return running


def with_common_audience(truth: ChannelTruth, old: SentByPlan, new: SentByPlan) -> ChannelTruth:
    """Everybody who gets a flow by both plans is taken to want it.

    Memory grows with the pairs of a flow and one who receives it.
    """
    reached = []
    for plan in (old, new):
        found = plan.decisions
        members = relation_matrix(found.members, len(truth.subscribers))
        copies = relation_matrix(found.channels, len(plan.domains)) @ members
        reached.append(
            (copies + relation_matrix(found.unicast, len(truth.subscribers))).astype(bool)
        )
    common = scipy.sparse.csr_array(reached[0].multiply(reached[1]))
    common.sort_indices()
    return replace(
        truth,
        classes=np.arange(len(truth.names), dtype=np.int32),
        audience_starts=common.indptr.astype(np.int64),
        audience=common.indices.astype(np.int32),
        asked=None,
    )
