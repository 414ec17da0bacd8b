"""CRAM: subscribers who get the same messages are clustered, then packed (Cheung, Jacobsen 2011).

A subscriber's profile is a bit for each publication, here for each route, whose bits are counted by
its rate. Subscribers with equal profiles are one unit. The two closest units become one, if what
comes of it fits a broker and all units can still be packed; else the two are never tried again.
It ends when no two units have a message in common. Publishers come last: each to the broker that
most of its messages are wanted at, as the publisher placement of Cheung and Jacobsen (2010) would
have it where every broker is a hop from every other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.layers.overlay.allocation.allocation import (
    Allocation,
    AllocationParams,
    Placing,
    counted_load,
    finished,
    largest_first,
    placing_of,
)
from fanplan.layers.overlay.allocation.loads import (
    Clients,
    estimate_there,
    exact_impact,
    place_client,
    publisher_there,
    remove_client,
)
from fanplan.layers.overlay.params import CLOSENESS, Closeness
from fanplan.network.brokers import ClientProblem

MOST_UNITS = 12_000
"""Different profiles that are compared pair by pair."""
INTERSECT, XOR, IOS, IOU = range(4)
EQUAL = 1e18
"""Closeness by XOR of two that get the same."""


class Units(NamedTuple):
    """Subscribers that go together.

    ``unit`` of each subscriber, ``after`` the next one of its unit, round and round, ``first`` a
    subscriber of each unit, NONE if there is none. ``size`` is what the unit wants (messages/s),
    ``load`` what it adds to a broker by the rule.
    """

    unit: Ints
    after: Ints
    first: Ints
    size: Floats
    load: Floats


def cram_allocation(
    problem: ClientProblem, closeness: Closeness, params: AllocationParams
) -> Allocation:
    """Cluster, pack the largest units first into the largest brokers, then place publishers.

    O(units² + Σ over merges of the audiences of all routes that the unit wants); memory units².
    """
    placing, stack = placing_of(problem, params), largest_first(problem)
    units = equal_profiles(placing)
    if not pack_units(placing, units, stack, np.zeros(1, np.int64)):
        units = single_profiles(placing)
    require_few(units)
    merge_units(placing, units, stack, CLOSENESS.index(closeness))
    used = np.zeros(1, np.int64)
    pack_units(placing, units, stack, used)
    place_publishers(placing, stack, used)
    return finished(problem, placing, stack[: used[0]])


def require_few(units: Units) -> None:
    count = len(units.first)
    if count > MOST_UNITS:
        what = f"cram compares {count:,} different subscribers pair by pair"
        raise InputError(Problem("ranking", what, f"Use best; up to {MOST_UNITS:,} is possible"))


def equal_profiles(p: Placing) -> Units:
    """Subscribers who want the same routes are one unit, as long as it fits the largest broker."""
    clients, room = p.clients, float(p.room.max())
    names: dict[bytes, int] = {}
    unit, load = [], list[float]()
    for client in range(clients.publishers, len(p.impact)):
        wanted = clients.routes[clients.at[client] : clients.at[client + 1]].tobytes()
        more = 0.0 if p.exact else float(p.impact[client])
        at = names.get(wanted)
        if at is None or load[at] + more > room:
            at = names[wanted] = len(load)
            load.append(float(p.impact[client]))
        else:
            load[at] += more
        unit.append(at)
    return units_of(p, np.array(unit, np.int32), np.array(load))


def single_profiles(p: Placing) -> Units:
    """Every subscriber by itself."""
    impact = p.impact[p.clients.publishers :]
    return units_of(p, np.arange(len(impact), dtype=np.int32), impact.copy())


def units_of(p: Placing, unit: Ints, load: Floats) -> Units:
    after, first = np.empty(len(unit), np.int32), np.full(len(load), NONE, np.int32)
    for at in range(len(unit)):
        start = first[unit[at]]
        if start == NONE:
            first[unit[at]] = after[at] = at
        else:
            after[at], after[start] = after[start], at
    return Units(unit, after, first, exact_impact(p.clients)[p.clients.publishers :][first], load)


# ---- clusters


@compiled
def merge_units(p: Placing, units: Units, stack: Longs, metric: int) -> None:
    """Make the two closest units one, again and again, while all can be packed."""
    count = len(units.first)
    close = np.zeros((count, count), np.float32)
    marks = np.full(len(p.clients.rate), NONE, np.int64), np.full(count, NONE, np.int64)
    for unit in range(count):
        compare_unit(p.clients, units, unit, metric, marks, close)
    best = np.empty(count, np.int64)
    for unit in range(count):
        best[unit] = np.argmax(close[unit])
    top = p.room.max()
    while count > 1:
        one = closest(close, best)
        other = best[one]
        if close[one, other] <= 0:
            return
        if not together(p, units, one, other, top, stack, marks[0]):
            close[one, other] = close[other, one] = 0.0
            best[one], best[other] = np.argmax(close[one]), np.argmax(close[other])
            continue
        close[other, :] = 0.0
        close[:, other] = 0.0
        compare_unit(p.clients, units, one, metric, marks, close)
        for unit in range(len(best)):
            if unit == one or best[unit] == one or best[unit] == other:
                best[unit] = np.argmax(close[unit])
            elif close[unit, one] > close[unit, best[unit]]:
                best[unit] = one


@compiled
def closest(close: np.ndarray, best: Longs) -> int:
    """The first unit whose closest one is as close as any two are."""
    found, most = 0, -1.0
    for unit in range(len(best)):
        if close[unit, best[unit]] > most:
            found, most = unit, close[unit, best[unit]]
    return found


@compiled
def compare_unit(
    clients: Clients,
    units: Units,
    unit: int,
    metric: int,
    marks: tuple[Longs, Longs],
    close: np.ndarray,
) -> None:
    """How close a unit is to all others that it was not kept from; 0 if they share nothing."""
    shared = np.zeros(len(units.first))
    routes, seen = marks
    routes[:], seen[:] = NONE, NONE
    at = units.first[unit]
    while True:
        client = at + clients.publishers
        for k in range(clients.at[client], clients.at[client + 1]):
            route = clients.routes[k]
            if routes[route] == NONE:
                routes[route] = unit
                for j in range(clients.starts[route], clients.starts[route + 1]):
                    near = units.unit[clients.subscribers[j]]
                    if seen[near] != route:
                        seen[near] = route
                        shared[near] += clients.rate[route]
        at = units.after[at]
        if at == units.first[unit]:
            break
    units.size[unit] = shared[unit]
    for other in range(len(shared)):
        value = 0.0
        if other != unit and shared[other] > 0:
            value = closeness_of(metric, shared[other], units.size[unit], units.size[other])
        close[unit, other] = close[other, unit] = value


@compiled
def closeness_of(metric: int, shared: float, one: float, other: float) -> float:
    """Section IV of the paper, with rates for numbers of bits."""
    if metric == INTERSECT:
        return shared
    if metric == XOR:
        apart = one + other - 2 * shared
        return min(1 / apart, EQUAL) if apart > 0 else EQUAL
    return shared * shared / (one + other if metric == IOS else one + other - shared)


@compiled
def together(
    p: Placing, units: Units, one: int, other: int, top: float, stack: Longs, marks: Longs
) -> bool:
    """Make two units one; or not, if the result fits no broker or not all can be packed."""
    load = units.load[one] + units.load[other]
    if p.exact:
        load -= common_rate(p.clients, units, one, other, marks)
    if load > top:
        return False
    before = units.load[one], units.load[other]
    mine, theirs = units.first[one], units.first[other]
    join_units(units, one, other)
    units.load[one], units.load[other] = load, 0.0
    if surely_packed(p, units) or pack_units(p, units, stack, np.zeros(1, np.int64)):
        return True
    # The rings are one ring now: the same exchange parts them again.
    units.after[mine], units.after[theirs] = units.after[theirs], units.after[mine]
    units.load[one], units.load[other] = before
    units.first[other] = theirs
    name_unit(units, other)
    return False


@compiled
def join_units(units: Units, one: int, other: int) -> None:
    """Subscribers of the other unit are of this one."""
    mine, theirs = units.first[one], units.first[other]
    units.after[mine], units.after[theirs] = units.after[theirs], units.after[mine]
    units.first[other] = NONE
    name_unit(units, one)


@compiled
def name_unit(units: Units, unit: int) -> None:
    """All subscribers of a ring are of its unit."""
    at = units.first[unit]
    while True:
        units.unit[at] = unit
        at = units.after[at]
        if at == units.first[unit]:
            return


@compiled
def common_rate(clients: Clients, units: Units, one: int, other: int, marks: Longs) -> float:
    """Messages per second that two units both want."""
    marks[:] = NONE
    total = 0.0
    for unit, mark in ((one, 0), (other, 1)):
        at = units.first[unit]
        while True:
            client = at + clients.publishers
            for k in range(clients.at[client], clients.at[client + 1]):
                route = clients.routes[k]
                if mark == 1 and marks[route] == 0:
                    total += clients.rate[route]
                marks[route] = mark
            at = units.after[at]
            if at == units.first[unit]:
                break
    return total


# ---- packing


@compiled
def surely_packed(p: Placing, units: Units) -> bool:
    """Whether first fit cannot run out of brokers: all but one are more than half full by it."""
    room = p.room.min()
    return bool(units.load.max() <= room and 2 * units.load.sum() / room + 1 <= len(p.room))


@compiled
def pack_units(p: Placing, units: Units, stack: Longs, used: Longs) -> bool:
    """Put subscribers at brokers, unit by unit, the largest first where it fits first.

    ``used`` gets the number of brokers. False if brokers run out, or one is too small for a unit
    of several. Who was placed before is taken away first.
    """
    for client in range(p.clients.publishers, len(p.impact)):
        if p.state.broker[client] != NONE:
            remove_client(p.clients, p.state, client)
    used[0] = 0
    for unit in np.argsort(-units.load, kind="mergesort"):
        if units.first[unit] == NONE:
            continue
        broker = first_with_room(p, units, unit, stack[: used[0]])
        if broker == NONE:
            alone = units.after[units.first[unit]] == units.first[unit]
            if used[0] == len(stack) or (not alone and units.load[unit] > p.room[stack[used[0]]]):
                return False
            broker = stack[used[0]]
            used[0] += 1
        place_unit(p, units, unit, broker)
    return True


@compiled
def place_unit(p: Placing, units: Units, unit: int, broker: int) -> None:
    at = units.first[unit]
    while True:
        place_client(p.clients, p.state, at + p.clients.publishers, broker)
        at = units.after[at]
        if at == units.first[unit]:
            return


@compiled
def first_with_room(p: Placing, units: Units, unit: int, deployed: Longs) -> int:
    """The broker deployed first that has room for a unit."""
    clients, state, load = p.clients, p.state, counted_load(p)
    saved = np.zeros(len(p.room))
    if p.exact:
        counted = np.zeros(len(clients.rate), np.bool_)
        at = units.first[unit]
        while True:
            client = at + clients.publishers
            for k in range(clients.at[client], clients.at[client + 1]):
                route = clients.routes[k]
                if not counted[route]:
                    counted[route] = True
                    start = clients.starts[route]
                    for j in range(start, start + state.held[route]):
                        saved[state.holders[j]] += clients.rate[route]
            at = units.after[at]
            if at == units.first[unit]:
                break
    for broker in deployed:
        if load[broker] + units.load[unit] - saved[broker] <= p.room[broker]:
            return int(broker)
    return NONE


@compiled
def place_publishers(p: Placing, stack: Longs, used: Longs) -> None:
    """Publishers, the busiest first, to where most of their messages are wanted and there is room.

    A new broker if there is none with room.
    """
    clients, state, load = p.clients, p.state, counted_load(p)
    for publisher in np.argsort(-p.impact[: clients.publishers], kind="mergesort"):
        best, least = NONE, np.inf
        for broker in stack[: used[0]]:
            left = publisher_there(clients, state, publisher, broker)
            more = left if p.exact else estimate_there(clients, state, publisher, broker)
            if load[broker] + more <= p.room[broker] and left < least:
                best, least = broker, left
        if best == NONE:
            if used[0] == len(stack):
                continue
            best = stack[used[0]]
            used[0] += 1
        place_client(clients, state, publisher, best)
