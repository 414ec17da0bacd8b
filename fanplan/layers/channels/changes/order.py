"""The order of changes between two channel plans in which nobody misses anything at any time.

Channels are made ready one after the other: who is to listen joins, then flows are sent there too.
A flow has *arrived* when all its channels of the new plan are ready. Until then all that served it
in the old plan stays: its channels, their members, its unicasts. Afterwards all that serves it in
the new plan is there. So at any time each flow reaches all that the old plan reaches, or all that
the new one does. Nothing is done that is not in one plan and not in the other, so that no order
has fewer changes.

A flow that goes directly, past the brokers, is on no channel, as nobody would send it there. So it
goes directly when all its unicasts are there, and no longer when it has arrived; its unicasts end
after that.

Who goes to another multicast domain can listen to channels of one of them only. It leaves the old
ones and joins the new ones when all that it may need has arrived there; until then nothing ends
that brings it something.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from fanplan.core.arrays import Bools, Floats, Longs
from fanplan.core.kernels import compiled
from fanplan.core.prices import Weights
from fanplan.layers.channels.changes.world import ChannelWorld

CARRIED, MEMBERS, UNICAST, DIRECT = 0, 1, 2, 3
RELATIONS = ("carried", "members", "unicast", "direct")

# (relation, whether it is added): what is done first of what is due for a flow.
PHASES = (
    (MEMBERS, True),
    (CARRIED, True),
    (UNICAST, True),
    (DIRECT, True),
    (DIRECT, False),
    (UNICAST, False),
    (CARRIED, False),
    (MEMBERS, False),
)
TURN = np.array([0, 1, 1, 1, 1, 1, 1, 2])
"""Of the changes that are due at the same time: first joins, then flow by flow, then leaves."""
FIRST = -2
"""When a unicast is due that brings what the old plan does not: somebody is missing it."""
ACTIONS = ("join", "carry", "unicast", "direct", "end_direct", "end_unicast", "drop", "leave")
NOBODY = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class ChannelChanges:
    """Changes in order: ``phase`` tells the action, ``key`` the pair, ``cost`` is that afterwards.

    Keys are those of ``PlanKeys``. Costs are by Eq. 1 of Bickson et al. (2010). ``moving`` has the
    subscriber with whose move to another domain a change is made, else −1.
    """

    phase: Longs
    key: Longs
    moving: Longs
    cost: Floats = field(default_factory=lambda: np.zeros(0))

    def __len__(self) -> int:
        return len(self.phase)

    @property
    def relation(self) -> Longs:
        return np.array([relation for relation, _ in PHASES])[self.phase]

    @property
    def added(self) -> Bools:
        return np.array([added for _, added in PHASES])[self.phase]


def ordered_changes(
    world: ChannelWorld, weights: Weights, movers: Longs = NOBODY
) -> ChannelChanges:
    """All changes, in the one of some orders of channels that is cheapest at its dearest.

    ``movers`` are the subscribers who go to another domain.
    """
    made = [costed(in_channel_order(world, rank, movers), world, weights) for rank in orders(world)]
    return min(made, key=lambda changes: float(changes.cost.max(initial=0.0)))


def orders(world: ChannelWorld) -> Iterator[Longs]:
    """Places of channels: by number; by what making them ready adds, least first; and last."""
    yield np.arange(world.channels)
    messages = world.truth.messages
    joined = np.setdiff1d(world.new.members, world.old.members) // world.users
    carried = np.setdiff1d(world.new.carried, world.old.carried)
    rate, members = old_loads(world)
    flow, channel = carried // world.channels, carried % world.channels
    added = np.bincount(joined, minlength=world.channels) * rate
    added += np.bincount(channel, messages[flow], world.channels) * members
    for price in (added, -added):
        place = np.empty(world.channels, np.int64)
        place[np.argsort(price, kind="stable")] = np.arange(world.channels)
        yield place


def old_loads(world: ChannelWorld) -> tuple[Floats, Floats]:
    """Traffic and number of members of each channel in the old plan."""
    flow, channel = world.old.carried // world.channels, world.old.carried % world.channels
    rate = np.bincount(channel, world.truth.messages[flow], world.channels)
    members = np.bincount(world.old.members // world.users, minlength=world.channels)
    return rate.astype(np.float64), members.astype(np.float64)


def in_channel_order(world: ChannelWorld, rank: Longs, movers: Longs = NOBODY) -> ChannelChanges:
    """Changes by the time at which they are due; ``rank`` is the place of each channel."""
    channels, users = world.channels, world.users
    keys = [differing_keys(world, relation, added) for relation, added in PHASES]
    joins, carries, unicasts, begins, ends, halts, drops, leaves = keys
    ready = np.full(channels, -1, np.int64)
    for touched in (joins // users, carries % channels):
        ready[touched] = rank[touched]
    # A flow has arrived with the last of its new channels; -1 for one that has none.
    arrival = np.full(len(world.truth.names), -1, np.int64)
    np.maximum.at(arrival, world.new.carried // channels, ready[world.new.carried % channels])
    # Three times after all channels are ready: unicasts are there, who moves has moved, the rest.
    there, move, last = channels + np.arange(3)
    held = held_flows(world, movers)
    arrival[held] = last
    free = np.full(channels, -1, np.int64)
    np.maximum.at(free, world.old.carried % channels, arrival[world.old.carried // channels])
    due = [
        ready[joins // users],
        ready[carries % channels],
        np.where(brought(world, unicasts, users), arrival[unicasts // users], FIRST),
        arrival[begins],
        arrival[ends],
        arrival[halts // users],
        arrival[drops // channels],
        free[leaves // users],
    ]
    due[2] = np.minimum(due[2], there)
    # Flow by flow, so that what a flow no longer needs ends before the next one is touched.
    flow = [joins * 0, carries // channels, unicasts // users, begins, ends, halts // users]
    phase = np.repeat(np.arange(len(PHASES)), [len(key) for key in keys])
    key, times = np.concatenate(keys), np.concatenate(due)
    flows = np.concatenate([*flow, drops // channels, leaves * 0])
    moving = np.where(np.isin(phase, (0, len(PHASES) - 1)), key % users, -1)
    moving[~np.isin(moving, movers)] = -1
    times[moving >= 0] = move
    # Who moves leaves before it joins.
    turn = np.where(moving >= 0, -TURN[phase], TURN[phase])
    order = np.lexsort((key, phase, flows, turn, moving, times))
    return ChannelChanges(phase[order], key[order], moving[order])


def held_flows(world: ChannelWorld, movers: Longs) -> Longs:
    """Flows that somebody who moves gets by a channel, in the old plan or in the new one."""
    found = []
    for plan in (world.old, world.new):
        theirs = plan.members[np.isin(plan.members % world.users, movers)] // world.users
        found.append(plan.carried[np.isin(plan.carried % world.channels, theirs)] // world.channels)
    return np.unique(np.concatenate(found))


def brought(world: ChannelWorld, pairs: Longs, users: int) -> Bools:
    """Which (flow, subscriber) pairs the old plan's channels serve."""
    flow, subscriber = pairs // users, pairs % users
    ends = [np.searchsorted(world.old.carried, (flow + i) * world.channels) for i in (0, 1)]
    times = ends[1] - ends[0]
    inside = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    channel = world.old.carried[np.repeat(ends[0], times) + inside] % world.channels
    joined = np.isin(channel * users + np.repeat(subscriber, times), world.old.members)
    return np.bincount(np.repeat(np.arange(len(pairs)), times)[joined], minlength=len(pairs)) > 0


def differing_keys(world: ChannelWorld, relation: int, added: bool) -> Longs:
    """Keys of a relation that only the new plan has, or only the old one."""
    old, new = (getattr(plan, RELATIONS[relation]) for plan in (world.old, world.new))
    return np.setdiff1d(new, old) if added else np.setdiff1d(old, new)


def costed(changes: ChannelChanges, world: ChannelWorld, weights: Weights) -> ChannelChanges:
    """The changes with the cost after each of them."""
    users, relation = world.users, changes.relation
    flow = np.where(relation == CARRIED, changes.key // world.channels, changes.key // users)
    channel = np.where(relation == CARRIED, changes.key % world.channels, changes.key // users)
    messages = world.truth.messages[np.where(np.isin(relation, (MEMBERS, DIRECT)), 0, flow)]
    sign = np.where(changes.added, 1.0, -1.0)
    rate, members = old_loads(world)
    unicast = float(world.truth.messages[world.old.unicast // users].sum())
    first = float((rate * (weights.w1 * members + weights.w2)).sum()) + weights.unicast * unicast
    price = np.array([weights.w1, weights.w2, weights.unicast])
    return replace(
        changes, cost=cost_curve(relation, channel, messages, sign, rate, members, price, first)
    )


@compiled
def cost_curve(
    relation: Longs,
    channel: Longs,
    messages: Floats,
    sign: Floats,
    rate: Floats,
    members: Floats,
    price: Floats,
    first: float,
) -> Floats:
    """The cost after each change; ``rate`` and ``members`` of channels are carried along."""
    cost = np.empty(len(relation))
    for i in range(len(relation)):
        at = channel[i]
        if relation[i] == CARRIED:
            first += sign[i] * messages[i] * (price[0] * members[at] + price[1])
            rate[at] += sign[i] * messages[i]
        elif relation[i] == MEMBERS:
            first += sign[i] * price[0] * rate[at]
            members[at] += sign[i]
        elif relation[i] == UNICAST:
            first += sign[i] * price[2] * messages[i]
        cost[i] = first
    return cost
