"""From one channel plan to another: who joins and leaves, which flows move, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Longs
from fanplan.layers.channels.changes.order import (
    ACTIONS,
    CARRIED,
    DIRECT,
    MEMBERS,
    RELATIONS,
    UNICAST,
    ChannelChanges,
    ordered_changes,
)
from fanplan.layers.channels.changes.world import (
    ChannelWorld,
    Reaches,
    channel_world,
)
from fanplan.layers.channels.check.check import costs, count_ledger, find_service, name_flows
from fanplan.layers.channels.check.evidence import Decisions, PlanRelation
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.plan.changes import unstaged
from fanplan.plan.findings import TOLERANCE, Findings
from fanplan.plan.steps import Staged, State, cut
from fanplan.plan.stored import StoredPlan


def stage_channels(
    old: StoredPlan,
    new: StoredPlan,
    dataset: Path | None,
    limit: int,
    reach: Reaches = (None, None),
) -> Staged:
    """All changes from the old plan to the new one, at most ``limit`` a step, each state checked.

    With a dataset a state must serve whom the dataset says wants a flow, as far as the old plan
    does; without one, everybody who gets a flow by both plans.
    """
    world = channel_world(old, new, dataset, reach)
    changes = ordered_changes(world, new.section(ChannelsRecord).weights)
    made = stage_changes(world, changes, new.section(ChannelsRecord), limit)
    return replace(made, notes=tuple(channel_notes(old, new, world, changes)))


def stage_changes(
    world: ChannelWorld, changes: ChannelChanges, record: ChannelsRecord, limit: int
) -> Staged:
    """Ordered changes in steps, each state checked; costs are by the weights of the record."""
    step = cut(np.arange(len(changes)), limit, "")
    states = tuple(judged_states(world, changes, step, record))
    running = renumbered_channels(world)
    return Staged("channels", changes_table(changes, world), step, states, running=running)


def renumbered_channels(world: ChannelWorld) -> dict[str, dict[int, int]]:
    """New channels that run under another number."""
    pairs = enumerate(world.running.tolist())
    return {"channels": {number: runs for number, runs in pairs if number != runs}}


def channel_notes(
    old: StoredPlan, new: StoredPlan, world: ChannelWorld, changes: ChannelChanges
) -> Iterator[str]:
    if old.section(ChannelsRecord).weights != new.section(ChannelsRecord).weights:
        yield "the plans weigh costs differently; all costs here are by the weights of the new plan"
    ends = max(old.section(ChannelsRecord).cost, new.section(ChannelsRecord).cost)
    most = float(changes.cost.max(initial=0.0))
    if old.record.input.key == new.record.input.key and most > ends * (1 + TOLERANCE):
        at = int(changes.cost.argmax()) + 1
        yield f"at its dearest, after change {at:,} of {len(changes):,}, it costs {most:,.1f}"
    if not world.known:
        yield "without the workload nobody may lose what both plans bring, wanted or not"


def changes_table(changes: ChannelChanges, world: ChannelWorld) -> pa.Table:
    """Changes by the names of things."""
    channels, users = world.channels, world.users
    relation, key = changes.relation, changes.key
    flow = np.select(
        [relation == CARRIED, relation == DIRECT], [key // channels, key], key // users
    )
    channel = np.where(relation == CARRIED, key % channels, key // users)
    no_subscriber = np.isin(relation, (CARRIED, DIRECT))
    columns = {
        "action": pa.array(ACTIONS).take(pa.array(changes.phase)),
        "channel": pa.array(channel, mask=np.isin(relation, (UNICAST, DIRECT))),
        "flow": world.truth.names.take(pa.array(flow, mask=relation == MEMBERS)),
        "subscriber": world.truth.subscribers.take(pa.array(key % users, mask=no_subscriber)),
    }
    nothing = {field.name: pa.nulls(len(changes), field.type) for field in unstaged()}
    schema = unstaged()
    return pa.table(
        [(nothing | columns)[field.name].cast(field.type) for field in schema], schema=schema
    )


@dataclass
class Standing:
    """What stands of the pairs of both plans: ascending keys, and which of them are there."""

    keys: Longs
    there: np.ndarray

    @classmethod
    def of(cls, old: Longs, new: Longs) -> Standing:
        keys = np.union1d(old, new)
        return cls(keys, np.isin(keys, old, assume_unique=True))

    def set(self, keys: Longs, added: np.ndarray) -> None:
        self.there[np.searchsorted(self.keys, keys)] = added

    @property
    def now(self) -> Longs:
        result: Longs = self.keys[self.there]
        return result


def decisions_of(world: ChannelWorld, carried: Longs, members: Longs, unicast: Longs) -> Decisions:
    """Keys as a plan's tables are read."""

    def relation(keys: Longs, height: int, width: int) -> PlanRelation:
        starts = np.searchsorted(keys, np.arange(height + 1) * width)
        return PlanRelation(starts, (keys % max(1, width)).astype(np.int32))

    flows, channels, users = len(world.truth.names), world.channels, world.users
    return Decisions(
        channels=relation(carried, flows, channels),
        members=relation(members, channels, users),
        unicast=relation(unicast, flows, users),
    )


class ChannelStanding:
    """What stands of channels: at first the old plan."""

    def __init__(self, world: ChannelWorld, changes: ChannelChanges) -> None:
        self.world, self.changes = world, changes
        self.relation, self.added = changes.relation, changes.added
        self.pairs = [Standing.of(getattr(world.old, r), getattr(world.new, r)) for r in RELATIONS]
        self.steps = 0

    @property
    def done(self) -> float:
        """The part of the changes that is carried out; all if there are none."""
        return self.steps / len(self.changes) if len(self.changes) else 1.0

    def do(self, rows: Longs) -> None:
        """Carry out some of the changes."""
        self.steps += len(rows)
        for number, standing in enumerate(self.pairs):
            mine = rows[self.relation[rows] == number]
            standing.set(self.changes.key[mine], self.added[mine])

    def decisions(self) -> Decisions:
        carried, members, unicast = (self.pairs[i].now for i in (CARRIED, MEMBERS, UNICAST))
        return decisions_of(self.world, carried, members, unicast)

    def direct(self) -> Longs:
        """Flows that go past the brokers."""
        return self.pairs[DIRECT].now


def fed(decisions: Decisions, direct: Longs) -> Decisions:
    """Decisions without channels of flows that go past the brokers: nobody sends those there."""
    flow, _ = decisions.channels.sides()
    kept = ~np.isin(flow, direct)
    starts = np.searchsorted(flow[kept], np.arange(len(decisions.channels.starts)))
    return replace(decisions, channels=PlanRelation(starts, decisions.channels.right[kept]))


def channel_states(
    world: ChannelWorld, changes: ChannelChanges, step: Longs
) -> Iterator[ChannelStanding]:
    """The old plan, and what stands after each step."""
    now = ChannelStanding(world, changes)
    ends = np.searchsorted(step, np.arange(step.max(initial=-1) + 2))
    for first, end in zip([0, *ends[:-1]], ends, strict=True):
        now.do(np.arange(first, end))
        yield now


def judged_states(
    world: ChannelWorld, changes: ChannelChanges, step: Longs, record: ChannelsRecord
) -> Iterator[State]:
    """Each state by the project's own check: who is served, and what it costs."""
    least = least_reached(world)
    for now in channel_states(world, changes, step):
        findings, decisions = Findings(), now.decisions()
        require_still_served(now, least, findings)
        counted = count_ledger(world.truth, decisions, find_service(world.truth, decisions))
        figures = figures_of(world, record, counted) | {"channels": channels_used(decisions)}
        yield State(figures, tuple(findings.violations))


def require_still_served(now: ChannelStanding, least: Longs, findings: Findings) -> None:
    """Of the audience of each flow as many are reached as by either plan."""
    truth = now.world.truth
    service = find_service(truth, fed(now.decisions(), now.direct()))
    lost = np.flatnonzero(service.reached < least)
    name_flows("somebody is not served any more", lost, truth, findings)


def channels_used(decisions: Decisions) -> float:
    """Channels that carry something to somebody."""
    joined = np.flatnonzero(np.diff(decisions.members.starts))
    return float(len(np.intersect1d(decisions.channels.right, joined)))


def least_reached(world: ChannelWorld) -> Longs:
    """How many of the audience of each flow both plans reach."""
    reached = []
    for plan in (world.old, world.new):
        decisions = decisions_of(world, plan.carried, plan.members, plan.unicast)
        reached.append(find_service(world.truth, fed(decisions, plan.direct)).reached)
    return np.minimum(*reached)


def figures_of(
    world: ChannelWorld, record: ChannelsRecord, counted: dict[str, float]
) -> dict[str, float]:
    """The ledger's words; wanted and unwanted only where it is known who wants what."""
    cost = costs(record, world.truth, counted)
    figures = {"cost": cost["cost"]}
    if world.known:
        figures |= {"excess_percent": cost["excess_percent"], "missed": counted["missed"]}
        figures |= {name: counted[name] for name in ("received_wanted", "received_unwanted")}
    else:
        figures["received"] = counted["received_wanted"] + counted["received_unwanted"]
    return figures | {name: counted[name] for name in ("sent_multicast", "sent_unicast")}
