"""How flows are delivered: by channels, by a last hop from brokers, or directly; what changes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Ints, Longs
from fanplan.layers.channels.changes.world import ChannelWorld, PlanKeys
from fanplan.plan.axis import Axis
from fanplan.plan.steps import ModeChange
from fanplan.plan.stored import StoredPlan

MODES = ("not at all", "channel", "last hop", "channel and last hop", "direct")
NOTHING, CHANNEL, LAST_HOP, MIXED, DIRECT = range(len(MODES))


def mode_changes(old: StoredPlan, new: StoredPlan, world: ChannelWorld) -> Iterator[ModeChange]:
    """All pairs of modes with flows that change so, most messages first."""
    modes = [modes_of(plan, world) for plan in (world.old, world.new)]
    changed = np.flatnonzero(modes[0] != modes[1])
    kind = modes[0][changed] * len(MODES) + modes[1][changed]
    classes, messages = classes_of(old, new, world), world.truth.messages
    found = []
    for pair in np.unique(kind).tolist():
        flows = changed[kind == pair]
        names = (MODES[pair // len(MODES)], MODES[pair % len(MODES)])
        sent = float(messages[flows].sum())
        found.append(ModeChange(*names, len(np.unique(classes[flows])), len(flows), sent))
    yield from sorted(found, key=lambda change: -change.messages)


def modes_of(plan: PlanKeys, world: ChannelWorld) -> Ints:
    """The mode of each flow in a plan."""
    carried, alone = (np.zeros(len(world.truth.names), bool) for _ in range(2))
    carried[plan.carried // max(1, world.channels)] = True
    alone[plan.unicast // world.users] = True
    modes = CHANNEL * carried + LAST_HOP * alone
    modes[plan.direct] = DIRECT
    result: Ints = modes.astype(np.int32)
    return result


def classes_of(old: StoredPlan, new: StoredPlan, world: ChannelWorld) -> Longs:
    """The audience class of each flow by the new plan, or by the old one if it is gone."""
    found = np.full(len(world.truth.names), -1, np.int64)
    shift = 0
    for plan in (new, old):
        table = plan.read("flows", ("flow", "audience_class"))
        at = Axis("flow", world.truth.names).number(pa.table([table["flow"]], names=["flow"]))
        own = table["audience_class"].to_numpy().astype(np.int64) + shift
        free = (at >= 0) & (found[at] < 0)
        found[at[free]] = own[free]
        shift += int(own.max(initial=0)) + 1
    return found
