"""Stored channels counted anew on a dataset as it is now."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.layers.channels.changes.world import flow_traffic
from fanplan.layers.channels.check.check import costs, count_ledger, find_service
from fanplan.layers.channels.check.evidence import ChannelTruth, read_channel_truth, read_decisions
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.plan.axis import Axis
from fanplan.plan.drift import LayerNow, Moved, came_and_went
from fanplan.plan.findings import TOLERANCE, Findings
from fanplan.plan.stored import StoredPlan


def channels_now(plan: StoredPlan, dataset: Path) -> LayerNow:
    """The same channels, members and unicasts with the interest and traffic of now.

    Rates and costs are per second, as windows may differ.
    """
    truth, record = read_channel_truth(dataset), plan.section(ChannelsRecord)
    decisions = read_decisions(plan, truth, Findings())
    service = find_service(truth, decisions)
    counted = count_ledger(truth, decisions, service)
    seconds = truth.manifest.seconds
    wanted = np.diff(truth.audience_starts)[truth.classes]
    now = costs(record, truth, counted) | counted | {"traffic": float(truth.messages.sum())}
    flows = flow_traffic(plan, record.seconds)
    then = record.model_dump() | record.ledger | {"traffic": pc.sum(flows["messages"]).as_py() or 0}
    rates = ("traffic", "cost", "perfect", "received_wanted", "received_unwanted", "sent_unicast")
    figures = {f"{name}/s": (then[name] / record.seconds, now[name] / seconds) for name in rates}
    figures["excess_percent"] = (record.excess_percent, now["excess_percent"])
    figures["missed/s"] = (then["missed"] / record.seconds, now["missed"] / seconds)
    moved = {"flows": moved_flows(flows, truth, record.seconds)}
    moved["subscribers"] = came_and_went(subscribers_of(plan), interested(truth))
    return LayerNow(moved, figures, int((wanted - service.reached).sum()))


def moved_flows(flows: pa.Table, truth: ChannelTruth, seconds: float) -> Moved:
    """Flows that came or went, and those whose rate is another one."""
    at = Axis("flow", truth.names).number(flows)
    known = at >= 0
    then = flows["messages"].to_numpy()[known] / seconds
    now = truth.messages[at[known]] / truth.manifest.seconds
    changed = int((~np.isclose(then, now, rtol=TOLERANCE, atol=0.0)).sum())
    return Moved(len(truth.names) - int(known.sum()), int((~known).sum()), changed)


def subscribers_of(plan: StoredPlan) -> set[str]:
    tables = (plan.read(name, ("subscriber",)) for name in ("channel_subscribers", "unicast"))
    return {name for table in tables for name in pc.unique(table["subscriber"]).to_pylist()}


def interested(truth: ChannelTruth) -> set[str]:
    """Subscribers who want some flow."""
    return set(truth.subscribers.take(pa.array(np.unique(truth.audience))).to_pylist())


def moved_audiences(was: ChannelTruth, now: ChannelTruth) -> Moved:
    """Flows that somebody wants only then or only now, and those that others want."""
    before, after = audiences(was), audiences(now)
    changed = sum(before[flow] != after[flow] for flow in before.keys() & after.keys())
    return Moved(len(after.keys() - before.keys()), len(before.keys() - after.keys()), changed)


def audiences(truth: ChannelTruth) -> dict[str, frozenset[str]]:
    """Who wants each flow, by names."""
    names = truth.subscribers.to_pylist()
    bounds = itertools.pairwise(truth.audience_starts.tolist())
    of = [frozenset(names[s] for s in truth.audience[first:end]) for first, end in bounds]
    return {flow: of[c] for flow, c in zip(truth.names.to_pylist(), truth.classes, strict=True)}
