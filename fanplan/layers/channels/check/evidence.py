"""What the check goes by: the dataset's tables and the plan's tables, as numbers.

Shares no code with planners, cost models or plan types: it reads the stored tables itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.data.reader import INGEST_AGAIN, Manifest, read_manifest, read_stage
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.plan.axis import Axis, whole
from fanplan.plan.findings import EXAMPLES, Findings
from fanplan.plan.stored import StoredPlan


@dataclass(frozen=True)
class ChannelTruth:
    """The dataset: every wanted flow with its traffic and audience, and all subscribers."""

    manifest: Manifest
    flows: pa.Table
    names: pa.Array
    messages: Floats
    bytes: Floats
    classes: Ints
    audience_starts: Longs
    audience: Ints
    subscribers: pa.Array
    asked: Floats | None = None
    """copies of each flow that selectors ask for; None: all that its audience gets"""

    @property
    def wanted(self) -> Floats:
        """Copies of each flow that somebody wants."""
        if self.asked is not None:
            return self.asked
        return self.messages * np.diff(self.audience_starts)[self.classes]


class Sides(NamedTuple):
    """The left and the right numbers of all pairs of a relation."""

    left: Longs
    right: Longs


@dataclass(frozen=True)
class PlanRelation:
    """Ascending (left, right) pairs: those of left number ``i`` lie from ``starts[i]`` on."""

    starts: Longs
    right: Ints

    def left(self, positions: Longs) -> Longs:
        """The left numbers of the pairs at these positions."""
        return np.searchsorted(self.starts, positions, side="right") - 1

    def sides(self) -> Sides:
        """All pairs, ascending."""
        left = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return Sides(left, self.right.astype(np.int64))


@dataclass(frozen=True)
class Decisions:
    """The plan's tables as numbers; rows with unknown items are left out."""

    channels: PlanRelation
    """flow → channel"""
    members: PlanRelation
    """channel → subscriber"""
    unicast: PlanRelation
    """flow → subscriber"""


def read_channel_truth(dataset: Path) -> ChannelTruth:
    manifest = read_manifest(dataset)
    columns = ("flow", "topic", "cell", "messages", "bytes", "audience_class")
    flows = read_stage(dataset, "flows", columns if manifest.exact else (*columns, "wanted"))
    flows = flows.filter(pc.greater_equal(flows["audience_class"], 0)).combine_chunks()
    classes = read_stage(dataset, "classes", ("audience_class", "subscribers"))
    audiences = whole(classes.sort_by("audience_class")["subscribers"])
    subscribers = read_stage(dataset, "subscribers", ("subscriber", "subscriber_id"))
    truth = ChannelTruth(
        manifest=manifest,
        flows=flows,
        names=whole(flows["flow"].cast(pa.large_string())),
        messages=flows["messages"].to_numpy(),
        bytes=flows["bytes"].to_numpy(),
        classes=flows["audience_class"].to_numpy(),
        audience_starts=np.append(0, np.cumsum(audiences.value_lengths().to_numpy())),
        audience=audiences.flatten().to_numpy(zero_copy_only=False),
        subscribers=whole(subscribers.sort_by("subscriber_id")["subscriber"]),
        asked=None if manifest.exact else flows["wanted"].to_numpy(),
    )
    require_numbered(dataset / "classes", classes["audience_class"], len(classes))
    require_numbered(dataset / "subscribers", subscribers["subscriber_id"], len(subscribers))
    require_ids_below(dataset / "flows", truth.classes, len(classes))
    require_ids_below(dataset / "classes", truth.audience, len(subscribers))
    return truth


def require_numbered(where: Path, ids: pa.ChunkedArray, count: int) -> None:
    """Ids must be the numbers below their count, each once: the rows' positions stand for them."""
    require_ids_below(where, ids.to_numpy(), count)
    if pc.count_distinct(ids).as_py() != count:
        raise InputError(Problem(str(where), "an id is given twice", INGEST_AGAIN))


def require_ids_below(where: Path, ids: Ints, count: int) -> None:
    """Ids must lie below the count of what they name."""
    if len(ids) and not 0 <= ids.min() <= ids.max() < count:
        raise InputError(Problem(str(where), f"an id is not below {count}", INGEST_AGAIN))


def read_decisions(plan: StoredPlan, truth: ChannelTruth, findings: Findings) -> Decisions:
    """The plan's tables as numbers; what they name that does not exist becomes a violation."""
    flow = Axis("flow", truth.names)
    subscriber = Axis("subscriber", truth.subscribers)
    channel = Axis(
        "channel", pa.array(np.arange(plan.section(ChannelsRecord).channels, dtype=np.int64))
    )
    return Decisions(
        channels=read_relation(plan, "channel_flows", flow, channel, findings),
        members=read_relation(plan, "channel_subscribers", channel, subscriber, findings),
        unicast=read_relation(plan, "unicast", flow, subscriber, findings),
    )


def read_relation(
    plan: StoredPlan, name: str, left: Axis, right: Axis, findings: Findings
) -> PlanRelation:
    """A table of two columns as ascending pairs; unknown values and doubles are violations."""
    columns = (left.column, right.column)
    table = plan.read(name, columns, codes=tuple(c for c in columns if c != "channel"))
    numbers = [left.number(table), right.number(table)]
    for axis, found in zip((left, right), numbers, strict=True):
        report_unknown(table, name, axis, found, findings)
    known = (numbers[0] >= 0) & (numbers[1] >= 0)
    width = max(len(right.values), 1)
    keys = numbers[0][known].astype(np.int64) * width + numbers[1][known]
    if np.any(keys[1:] <= keys[:-1]):
        keys = report_doubles(np.sort(keys), name, left, right, findings)
    starts = np.searchsorted(keys, np.arange(len(left.values) + 1) * width)
    return PlanRelation(starts, (keys % width).astype(np.int32))


def report_unknown(
    table: pa.Table, name: str, axis: Axis, numbers: Ints, findings: Findings
) -> None:
    """Values that the dataset, or the plan's number of channels, does not know."""
    unknown = table[axis.column].filter(pa.array(numbers < 0)).unique().to_pylist()
    examples = [f"{axis.column} {value!r}" for value in unknown[:EXAMPLES]]
    findings.violate(f"{name}: unknown {axis.column}", len(unknown), examples)


def report_doubles(keys: Longs, name: str, left: Axis, right: Axis, findings: Findings) -> Longs:
    """Each sorted key once; keys that come again are violations."""
    again = keys[1:] == keys[:-1]
    width = max(len(right.values), 1)
    pairs = (divmod(int(key), width) for key in keys[1:][again][:EXAMPLES])
    examples = [f"{left.label(i)} with {right.label(j)}" for i, j in pairs]
    findings.violate(f"{name}: row given twice", int(again.sum()), examples)
    return np.append(keys[:1], keys[1:][~again])
