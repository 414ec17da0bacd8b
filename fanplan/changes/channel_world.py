"""Two channel plans in the same numbers, and who must be served while one becomes the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse
from scipy.optimize import linear_sum_assignment

from fanplan.errors import InputError, Problem
from fanplan.plan.axis import Axis, whole
from fanplan.plan.channels.evidence import Decisions, Relation, Truth, read_decisions, read_truth
from fanplan.plan.findings import Findings
from fanplan.plan.stored import StoredPlan
from fanplan.problem.dataset import Manifest
from fanplan.problem.interest import Longs


@dataclass(frozen=True, eq=False)
class Pairs:
    """The decisions of a plan as ascending keys: left × width + right."""

    carried: Longs
    """flow, channel"""
    members: Longs
    """channel, subscriber"""
    unicast: Longs
    """flow, subscriber"""


@dataclass(frozen=True, eq=False)
class ChannelWorld:
    """Both plans over the flows and subscribers of either.

    Channels of the new plan have the numbers of the old one's that they are most alike:
    ``running`` tells them. ``known`` says whether audiences are those of a dataset; else everybody
    counts who gets a flow by both plans.
    """

    truth: Truth
    channels: int
    old: Pairs
    new: Pairs
    running: Longs
    known: bool


def channel_world(old: StoredPlan, new: StoredPlan, dataset: Path | None) -> ChannelWorld:
    """Flows count with the traffic of the dataset, or of the new plan; if gone, of the old one."""
    truth = either(old, new) if dataset is None else extended(read_truth(dataset), old, new)
    before, after = (decided(plan, truth) for plan in (old, new))
    sizes = (old.channels.channels, new.channels.channels)
    return world_between(truth, before, after, sizes, dataset is not None)


def world_between(
    truth: Truth, before: Decisions, after: Decisions, sizes: tuple[int, int], known: bool
) -> ChannelWorld:
    """Decisions of two plans with so many channels, the later ones under running numbers."""
    running = matched(before, after, sizes, len(truth.subscribers))
    if not known:
        truth = with_common_audience(truth, before, after, sizes)
    channels = max(sizes)
    return ChannelWorld(
        truth,
        channels,
        pairs(before, np.arange(channels), channels, len(truth.subscribers)),
        pairs(after, running, channels, len(truth.subscribers)),
        running,
        known,
    )


def decided(plan: StoredPlan, truth: Truth) -> Decisions:
    """The tables of a plan as numbers; a plan with rows given twice is refused."""
    findings = Findings()
    found = read_decisions(plan, truth, findings)
    if findings.violations:
        what = "; ".join(findings.violations)
        raise InputError(Problem(str(plan.folder), what, "See what `fanplan check` says of it"))
    return found


def flow_traffic(plan: StoredPlan, seconds: float) -> pa.Table:
    """Flows of a plan with their traffic over a window."""
    table = plan.read("flows", ("flow", "rate", "bytes_rate"))
    names = table["flow"].cast(pa.large_string())
    totals = [pc.multiply(table[name], seconds) for name in ("rate", "bytes_rate")]
    return pa.table([names, *totals], names=["flow", "messages", "bytes"])


def either(old: StoredPlan, new: StoredPlan) -> Truth:
    """Flows and subscribers of either plan, nobody wanting anything yet."""
    record = new.record.input
    manifest = Manifest(
        record.key, record.seconds, record.cover, record.grid, record.exact, record.parameters
    )
    flows = flow_traffic(new, record.seconds)
    nobody = np.zeros(len(flows), np.int32)
    known = Truth(
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


def extended(truth: Truth, *plans: StoredPlan) -> Truth:
    """A truth with the flows and subscribers of plans that it does not know: nobody wants those."""
    names = [truth.subscribers.cast(pa.string())]
    for plan in plans:
        truth = with_flows(truth, flow_traffic(plan, truth.manifest.seconds))
        for table in ("channel_subscribers", "unicast"):
            names += plan.read(table, ("subscriber",))["subscriber"].cast(pa.string()).chunks
    known = len(truth.subscribers)
    unique = pc.unique(pa.chunked_array(names, pa.string()))
    return replace(
        truth,
        # Those of the dataset keep their numbers; others follow by name.
        subscribers=pa.concat_arrays([unique[:known], in_order(unique[known:])]),
    )


def in_order(values: pa.Array) -> pa.Array:
    return values.take(pc.sort_indices(values))


def with_flows(truth: Truth, flows: pa.Table) -> Truth:
    more = flows.filter(pa.array(Axis("flow", truth.names).number(flows) < 0)).sort_by("flow")
    nobody = len(truth.audience_starts) - 1
    return replace(
        truth,
        names=pa.concat_arrays([truth.names, whole(more["flow"])]),
        messages=np.append(truth.messages, more["messages"].to_numpy()),
        bytes=np.append(truth.bytes, more["bytes"].to_numpy()),
        classes=np.append(truth.classes, np.full(len(more), nobody, np.int32)),
        audience_starts=np.append(truth.audience_starts, truth.audience_starts[-1]),
    )


def pairs(found: Decisions, running: Longs, channels: int, subscribers: int) -> Pairs:
    """Keys of all pairs, channels under their running numbers."""
    flows, carried = both(found.channels)
    channel, member = both(found.members)
    flow, receiver = both(found.unicast)
    return Pairs(
        np.sort(flows * channels + running[carried]),
        np.sort(running[channel] * subscribers + member),
        np.sort(flow * subscribers + receiver),
    )


def both(relation: Relation) -> tuple[Longs, Longs]:
    """Left and right numbers of all pairs."""
    left = np.repeat(np.arange(len(relation.starts) - 1), np.diff(relation.starts))
    return left.astype(np.int64), relation.right.astype(np.int64)


def matrix(relation: Relation, width: int) -> scipy.sparse.csr_array:
    """1 for each pair."""
    shape = (len(relation.starts) - 1, width)
    ones = np.ones(len(relation.right), np.int64)
    return scipy.sparse.csr_array((ones, relation.right, relation.starts), shape=shape)


def matched(old: Decisions, new: Decisions, sizes: tuple[int, int], subscribers: int) -> Longs:
    """The old number for each new channel, so that the fewest pairs change; then others from there.

    An assignment problem: pairs that both have are saved. Of equal answers the one that keeps
    most numbers is taken.
    """
    members = [matrix(found.members, subscribers) for found in (old, new)]
    carried = [matrix(f.channels, size) for f, size in zip((old, new), sizes, strict=True)]
    common = (members[0] @ members[1].T + carried[0].T @ carried[1]).toarray()
    saved = common.astype(np.float64) * (max(sizes) + 1)
    np.fill_diagonal(saved, saved.diagonal() + 1)
    rows, columns = linear_sum_assignment(saved, maximize=True)
    running = np.full(sizes[1], -1, np.int64)
    running[columns] = rows
    running[running < 0] = np.arange(sizes[0], sizes[0] + (running < 0).sum())
    return running


def with_common_audience(
    truth: Truth, old: Decisions, new: Decisions, sizes: tuple[int, int]
) -> Truth:
    """Everybody who gets a flow by both plans is taken to want it.

    Memory grows with the pairs of a flow and one who receives it.
    """
    reached = []
    for found, channels in zip((old, new), sizes, strict=True):
        members = matrix(found.members, len(truth.subscribers))
        copies = matrix(found.channels, channels) @ members
        reached.append((copies + matrix(found.unicast, len(truth.subscribers))).astype(bool))
    common = scipy.sparse.csr_array(reached[0].multiply(reached[1]))
    common.sort_indices()
    return replace(
        truth,
        classes=np.arange(len(truth.names), dtype=np.int32),
        audience_starts=common.indptr.astype(np.int64),
        audience=common.indices.astype(np.int32),
    )
