"""From one delivery to another: channels, brokers and groups in one order that holds as a whole.

Each of them has its own order. Here they are put one after the other, such that what one needs of
another is there: groups end before a link goes that they take; links come before clients move, and
clients before they join a channel at their new place; new groups stand before flows come to need
them, and old ones end when no flow does; brokers stop last.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Ints, Longs
from fanplan.core.prices import LedgerPrices, Weights
from fanplan.layers.channels.changes.changes import changes_table, renumbered_channels
from fanplan.layers.channels.changes.order import ACTIONS, ChannelChanges, ordered_changes
from fanplan.layers.channels.changes.world import ChannelWorld, PlanKeys
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.delivery.changes.states import DeliveryStanding
from fanplan.layers.delivery.changes.world import BrokerWorld, DeliveryWorld, delivery_world
from fanplan.layers.delivery.record import DeliveryRecord
from fanplan.layers.groups import changes as grouping
from fanplan.layers.groups.changes import Groups
from fanplan.layers.overlay.changes.changes import Unit, degrees, looser
from fanplan.layers.overlay.changes.changes import ordered_overlay as ordered_units
from fanplan.layers.overlay.changes.shape import Link, by_name
from fanplan.layers.overlay.record import LimitsRecord, OverlayRecord
from fanplan.plan.axis import Axis
from fanplan.plan.changes import Row, of_rows
from fanplan.plan.findings import TOLERANCE
from fanplan.plan.steps import ModeChange, Staged, State, cut
from fanplan.plan.stored import StoredPlan

CHANNELS, OVERLAY, GROUPS = 0, 1, 2


UNICASTS = ACTIONS.index("unicast")


CLIENT_ACTIONS = ("attach", "move", "detach")


WHY = "an exchange of links is made whole, and so is a move to another domain"


MODES = ("not at all", "channel", "last hop", "channel and last hop", "direct")


NOTHING, CHANNEL, LAST_HOP, MIXED, DIRECT = range(len(MODES))


@dataclass(frozen=True)
class StepTerms:
    """What orders channels and prices states, and what must not be exceeded on the way."""

    weights: Weights
    prices: LedgerPrices
    limits: LimitsRecord
    entries: float


def stage_delivery(old: StoredPlan, new: StoredPlan, dataset: Path | None, limit: int) -> Staged:
    """All changes from the old plan to the new one, at most ``limit`` a step, each state checked.

    Both plans have brokers, or none has. With a dataset each state has its whole cost, by the
    prices of the new plan.
    """
    limits = LimitsRecord()
    if old.has(OverlayRecord):
        limits = looser(old.section(OverlayRecord).limits, new.section(OverlayRecord).limits)
    terms = StepTerms(
        new.section(ChannelsRecord).weights,
        new.section(DeliveryRecord).params.prices,
        limits,
        most_entries(old, new),
    )
    world = delivery_world(old, new, dataset)
    made = stage(world, terms, limit)
    said = tuple(delivery_notes(old, new, world, made.states))
    return replace(made, notes=said, modes=tuple(mode_changes(old, new, world.channels)))


def stage(world: DeliveryWorld, terms: StepTerms, limit: int) -> Staged:
    """All changes in steps, each state checked."""
    changes = ordered_changes(world.channels, terms.weights, world.movers)
    line = ChangeLine(changes)
    for part in lined_up(world, changes, terms):
        line.add(part)
    step = cut(np.array(line.unit, np.int64), limit, WHY)
    standing = DeliveryStanding(world, changes, terms.prices, terms.limits)
    states = tuple(delivery_states(standing, line, step))
    running = renumbered_channels(world.channels)
    if world.brokers:
        trees = {tree: runs for tree, runs in world.brokers.trees.items() if tree != runs}
        running |= {"trees": trees, "groups": world.brokers.groups.moved}
    return Staged("delivery", line.table(world), step, states, running=running)


def most_entries(old: StoredPlan, new: StoredPlan) -> float:
    """How many forwarding entries there may be on the way: the looser limit of both plans."""
    limits = [plan.section(DeliveryRecord).params.most_entries for plan in (old, new)]
    given = [limit for limit in limits if limit is not None]
    return max(given) if len(given) == len(limits) else np.inf


def delivery_notes(
    old: StoredPlan, new: StoredPlan, world: DeliveryWorld, states: tuple[State, ...]
) -> Iterator[str]:
    if old.section(DeliveryRecord).params.prices != new.section(DeliveryRecord).params.prices:
        yield "the plans have other prices; all costs here are by those of the new plan"
    if not world.channels.known:
        yield "without the workload nobody may lose what both plans bring, wanted or not"
        yield "without the workload what brokers forward and match is not counted"
        return
    if any(state.broken for state in states):
        return
    costs = [state.figures["cost"] for state in states]
    if max(costs) > max(costs[0], costs[-1]) * (1 + TOLERANCE):
        yield f"at its dearest, after step {int(np.argmax(costs)):,}, it costs {max(costs):,.1f}"


def mode_changes(old: StoredPlan, new: StoredPlan, world: ChannelWorld) -> Iterator[ModeChange]:
    """All pairs of modes with flows that change so, most messages first."""
    modes = [modes_of(plan, world) for plan in (world.old, world.new)]
    changed = np.flatnonzero(modes[0] != modes[1])
    kind = modes[0][changed] * len(MODES) + modes[1][changed]
    classes, messages = classes_of_flows(old, new, world), world.truth.messages
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


def classes_of_flows(old: StoredPlan, new: StoredPlan, world: ChannelWorld) -> Longs:
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


# ---- parts in a line


@dataclass(frozen=True)
class ChangePart:
    """Changes that follow each other: numbers of those of channels, or rows of one of the others.

    ``whole``: they are made together; ``with_last``: together with the last of the part before.
    """

    kind: int
    numbers: Longs = field(default_factory=lambda: np.zeros(0, np.int64))
    rows: list[Row] = field(default_factory=list)
    whole: bool = False
    with_last: bool = False


class ChangeLine:
    """All changes in order: of which kind each is, its number among these, and its unit."""

    def __init__(self, changes: ChannelChanges) -> None:
        self.changes = changes
        self.rows: dict[int, list[Row]] = {OVERLAY: [], GROUPS: []}
        self.kind: list[int] = []
        self.number: list[int] = []
        self.unit: list[int] = []

    def add(self, part: ChangePart) -> None:
        numbers = part.numbers.tolist()
        if part.kind != CHANNELS:
            rows = self.rows[part.kind]
            numbers = list(range(len(rows), len(rows) + len(part.rows)))
            rows += part.rows
        first = self.unit[-1] + 1 if self.unit else 0
        first -= part.with_last and first > 0
        self.kind += [part.kind] * len(numbers)
        self.number += numbers
        self.unit += [first + (0 if part.whole else i) for i in range(len(numbers))]

    def table(self, world: DeliveryWorld) -> pa.Table:
        """The changes by the names of things."""
        parts = [
            changes_table(self.changes, world.channels),
            *(of_rows(r) for r in self.rows.values()),
        ]
        first = np.cumsum([0, *map(len, parts)])
        at = first[np.array(self.kind, np.int64)] + np.array(self.number, np.int64)
        return pa.concat_tables(parts).take(pa.array(at))


def delivery_states(standing: DeliveryStanding, line: ChangeLine, step: Longs) -> Iterator[State]:
    """The old plan, and what stands after each step."""
    yield standing.judge()
    kind, number = np.array(line.kind, np.int64), np.array(line.number, np.int64)
    ends = np.searchsorted(step, np.arange(step.max(initial=-1) + 2))
    for first, end in itertools.pairwise(ends):
        now = slice(first, end)
        mine = {k: number[now][kind[now] == k] for k in (CHANNELS, OVERLAY, GROUPS)}
        rows = {k: [line.rows[k][i] for i in mine[k]] for k in (OVERLAY, GROUPS)}
        standing.do(mine[CHANNELS], rows[OVERLAY], rows[GROUPS])
        yield standing.judge()


# ---- the order of parts


def lined_up(
    world: DeliveryWorld, changes: ChannelChanges, terms: StepTerms
) -> Iterator[ChangePart]:
    """All parts in order."""
    moving = np.flatnonzero(changes.moving >= 0)
    first = int(moving[0]) if len(moving) else len(changes)
    before, after = np.arange(first), np.arange(first + len(moving), len(changes))
    if world.brokers is None:
        yield ChangePart(CHANNELS, before)
        return
    units = OverlayUnits.of(world, world.brokers, terms.limits)
    cut_off = hanging(world.brokers)
    for unit in units.early:
        # A group ends just before the first of its links goes.
        gone = {(r["from_broker"], r["to_broker"]) for r in unit if r["action"] == "unlink"}
        now = [number for number, links in cut_off.items() if links & gone]
        yield ChangePart(GROUPS, rows=ended(world.brokers, now, cut_off))
        yield ChangePart(OVERLAY, rows=unit, whole=True)
    making, leaving = rows_of_groups(world.brokers, hanging(world.brokers), terms.entries)
    yield ChangePart(GROUPS, rows=ended(world.brokers, list(cut_off), cut_off))
    # Who is missing something gets it first.
    lead = int(np.argmin(np.append(changes.phase[before] == UNICASTS, False)))
    yield ChangePart(CHANNELS, before[:lead])
    yield ChangePart(GROUPS, rows=making)
    yield ChangePart(CHANNELS, before[lead:])
    yield from domain_moves(world, changes, units)
    yield ChangePart(CHANNELS, after)
    yield from (ChangePart(OVERLAY, rows=unit, whole=True) for unit in units.late)
    yield ChangePart(GROUPS, rows=leaving)


@dataclass(frozen=True)
class OverlayUnits:
    """Units of an overlay's changes: before channels change, with who moves domain, and after.

    ``at_once`` is all of an overlay that cannot be changed bit by bit.
    """

    early: list[Unit]
    moving: dict[str, Unit]
    late: list[Unit]
    at_once: Unit

    @classmethod
    def of(cls, world: DeliveryWorld, brokers: BrokerWorld, limits: LimitsRecord) -> OverlayUnits:
        old, new = brokers.old, brokers.new
        units = ordered_units(old, new, degrees(limits, old.brokers | new.brokers))
        names = world.channels.truth.subscribers.take(pa.array(world.movers)).to_pylist()
        found = cls([], {name: [] for name in names}, [], [])
        for unit in units:
            found.sort_in(unit)
        return found

    def sort_in(self, unit: Unit) -> None:
        actions = [row["action"] for row in unit]
        client = [action in CLIENT_ACTIONS for action in actions]
        if any(client) and not all(client):
            self.at_once.extend(unit)
        elif all(client) and unit[0]["role"] == "subscriber" and unit[0]["client"] in self.moving:
            self.moving[unit[0]["client"]].extend(unit)
        elif actions == ["detach"] or "stop" in actions or set(actions) == {"unlink"}:
            self.late.append(unit)
        else:
            self.early.append(unit)


def domain_moves(
    world: DeliveryWorld, changes: ChannelChanges, units: OverlayUnits
) -> Iterator[ChangePart]:
    """Who goes to another domain leaves its channels, goes there and joins others, all together."""
    if units.at_once:
        yield ChangePart(OVERLAY, rows=units.at_once, whole=True)
        yield ChangePart(CHANNELS, np.flatnonzero(changes.moving >= 0), whole=True, with_last=True)
        return
    for number, name in zip(world.movers.tolist(), units.moving, strict=True):
        own = np.flatnonzero(changes.moving == number)
        yield ChangePart(OVERLAY, rows=units.moving[name], whole=True)
        glued = bool(units.moving[name])
        yield ChangePart(CHANNELS, own, whole=True, with_last=glued)


def rows_of_groups(
    brokers: BrokerWorld, cut_off: Container[int], most: float
) -> tuple[list[Row], list[Row]]:
    """What can begin when the groups that are cut off have ended; and what goes on afterwards.

    New groups begin as long as there is room for their entries beside those of the old ones.
    """
    both = brokers.groups
    old: Groups = {n: group for n, group in both.old.items() if n not in cut_off}
    most = max(most, grouping.size(both.old), grouping.size(both.new))
    rows = list(grouping.ordered_rows(old, both.new, both.comparable, most))
    ends = [at for at, row in enumerate(rows) if row["action"] == "end_group"]
    first = ends[0] if ends else len(rows)
    return rows[:first], rows[first:]


def hanging(brokers: BrokerWorld) -> dict[int, set[Link]]:
    """Old groups over links or brokers that go, with such links."""
    links = set(brokers.old.links()) - set(brokers.new.links())
    found = {}
    for number in sorted(brokers.groups.old.keys() - brokers.groups.new.keys()):
        entries = brokers.groups.old[number].entries
        gone = {end for entry in entries for end in entry} - brokers.new.brokers
        own = links & {by_name(*entry) for entry in entries}
        if gone or own:
            found[number] = own
    return found


def ended(brokers: BrokerWorld, numbers: list[int], cut_off: dict[int, set[Link]]) -> list[Row]:
    """The ends of groups, which are taken out of those to end."""
    for number in numbers:
        del cut_off[number]
    return [row for n in numbers for row in grouping.group_ends(n, brokers.groups.old[n])]
