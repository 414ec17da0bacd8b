"""Channels, members and direct unicast improved together, at the prices of all layers.

Classes choose channels, then subscribers join and leave them, as in k-modes; but what brokers cost
counts in both. Only what costs less is done, so it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Floats, Ints
from fanplan.core.stop import Stop, never
from fanplan.layers.channels.ledger import completed
from fanplan.layers.channels.map import map_pairs
from fanplan.layers.delivery.problem import DeliveryProblem
from fanplan.layers.delivery.record import Delivery
from fanplan.layers.delivery.search.carry import (
    Carriage,
    DeliveryNetwork,
    Desk,
    Pricing,
    Tariff,
    Wishes,
)
from fanplan.layers.delivery.search.choices import (
    Homes,
    assign_classes,
    regroup,
    segments_on_channels,
)
from fanplan.layers.delivery.search.in_turn import in_use, with_groups
from fanplan.layers.delivery.search.params import DeliveryParams
from fanplan.layers.groups.problem.subtrees import subtree_room
from fanplan.network.trees import depths

PASSES = 20
"""Most times that classes and subscribers change in turn."""

ENOUGH = 1e-4
"""A pass that gains less than this part of the price is the last."""

CLASSES, CHANNELS = 1000, 8
"""How many change between two questions whether to stop."""

WIDEST = 3
"""Channels that a class may have in a domain, if it has no more already."""


class Shadow(NamedTuple):
    """What limits make dearer: an entry of a table, and a message to one subscriber alone.

    ``shared`` is the part of what setting up a group costs that falls on one of its parcels.
    """

    entry: float = 0.0
    unicast: float = 0.0
    shared: float = 1.0


class DeliverySearch:
    """Looks for better deliveries near one."""

    def __init__(self, problem: DeliveryProblem, params: DeliveryParams, start: Delivery) -> None:
        self.problem, self.params, self.start = problem, params, start
        self.wishes = wishes_of(problem)
        self.network = delivery_network(problem, start.domain)
        brokers = len(problem.brokers)
        room = np.zeros(brokers + problem.domains + 1, np.int32)
        self.desk = Desk(subtree_room(brokers), np.zeros(1, np.int64), room, room.copy())
        self.homes = homes_in(problem)

    def at(self, shadow: Shadow, stop: Stop) -> Delivery:
        """What the start becomes at these prices: all change in turn, until little is gained."""
        self.begin(shadow)
        before, price = np.inf, self.assign(stop)
        for _ in range(PASSES):
            if price > before * (1 - ENOUGH) or stop(price):
                break
            self.regroup(stop)
            before, price = price, self.assign(stop)
        return self.delivery()

    def begin(self, shadow: Shadow) -> None:
        """Go back to the start, at these prices."""
        rates, state = rates_of(self.params, shadow), carriage_of(self.problem, self.start)
        sizes = state.members.sum(axis=1).astype(np.int64)
        self.now = Pricing(self.wishes, self.network, rates, state, sizes, self.desk)

    def assign(self, stop: Stop = never) -> float:
        """Classes choose channels, or direct unicast; what all cost then, if all came to it."""
        whole = in_turns(len(self.now.state.past), CLASSES, stop, partial(assign_classes, self.now))
        return float(self.now.state.price.sum()) if whole else np.inf

    def regroup(self, stop: Stop = never) -> None:
        """Subscribers join and leave channels."""
        on = segments_on_channels(self.now.state, self.homes.row, len(self.now.sizes))
        in_turns(len(self.now.sizes), CHANNELS, stop, partial(regroup, self.now, self.homes, *on))

    def delivery(self) -> Delivery:
        """What there is now, with the best groups for it."""
        state, problem, row = self.now.state, self.problem, self.homes.row
        domain = self.start.domain
        used = (state.sets != NONE) & ~state.past[row][:, None]
        segment, _ = np.nonzero(used)
        assigned = map_pairs(row[segment], state.sets[used])
        members = map_pairs(*np.nonzero(state.members))
        map = completed(problem.interest, len(domain), assigned, members)
        map, domain = in_use(problem.interest, map, domain)
        return with_groups(problem, self.params, map, domain, state.past.copy())


def in_turns(size: int, step: int, stop: Stop, work: Callable[[int, int], None]) -> bool:
    """Do some work for a few of so many at a time; false if it had to stop in between."""
    for begin in range(0, size, step):
        if begin and stop(np.inf):
            return False
        work(begin, min(begin + step, size))
    return True


def homes_in(problem: DeliveryProblem) -> Homes:
    people = np.argsort(problem.home, kind="stable").astype(np.int32)
    starts = np.searchsorted(problem.home[people], np.arange(len(problem.brokers) + 1))
    want, rank = np.zeros(len(people)), np.zeros(len(people), np.int64)
    return Homes(starts, people, problem.segments.row, want, rank)


def wishes_of(problem: DeliveryProblem) -> Wishes:
    segments = problem.segments
    segment = np.repeat(np.arange(len(segments.domain)), np.diff(segments.bounds))
    home = problem.home[segments.people]
    order = np.lexsort((segments.people, home, segment))
    key = segment[order].astype(np.int64) * len(problem.brokers) + home[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    by_class = np.argsort(problem.row, kind="stable")
    return Wishes(
        starts=segments.starts,
        domain=segments.domain,
        shared=segments.shared,
        runs=np.searchsorted(segment[order][first], np.arange(len(segments.domain) + 1)),
        broker=home[order][first],
        bounds=np.append(first, len(order)),
        people=segments.people[order],
        parcels=np.searchsorted(problem.row[by_class], np.arange(problem.interest.size + 1)),
        tree=problem.tree[by_class],
        messages=problem.messages[by_class],
        total=of_classes(problem, problem.messages),
        beyond=of_classes(problem, problem.messages * problem.beyond),
    )


def of_classes(problem: DeliveryProblem, amount: Floats) -> Floats:
    """Amounts of parcels, added up by class."""
    return np.bincount(problem.row, amount, problem.interest.size).astype(np.float64)


def delivery_network(problem: DeliveryProblem, domain: Ints) -> DeliveryNetwork:
    """Channels are numbered one domain after the other."""
    trees = problem.trees
    first = np.searchsorted(domain, np.arange(problem.domains + 1))
    deep = np.array([depths(parent) for parent in trees.parent]).reshape(trees.parent.shape)
    return DeliveryNetwork(
        trees.root,
        trees.parent,
        trees.inner,
        problem.domain,
        problem.gateways,
        deep,
        first,
        problem.homes,
    )


def rates_of(params: DeliveryParams, shadow: Shadow) -> Tariff:
    prices = params.prices
    return Tariff(
        received=prices.received,
        sent=prices.sent,
        unicast=prices.unicast,
        limited=shadow.unicast,
        direct=prices.direct * prices.unicast if params.direct else np.inf,
        forwarded=prices.forwarded,
        matched=prices.matched,
        entry=shadow.shared * (prices.entry + shadow.entry),
        control=shadow.shared * prices.control,
        group=int(params.entries != 0),
    )


def carriage_of(problem: DeliveryProblem, start: Delivery) -> Carriage:
    """The delivery as it is."""
    map, segments = start.map, problem.segments
    number = np.full((problem.interest.size, problem.domains + 1), NONE)
    number[segments.row, segments.domain] = np.arange(len(segments.domain))
    segment = number[map.assigned.left, start.domain[map.assigned.right]]
    # A channel of a domain where the class has nobody is of no use.
    useful = segment != NONE
    segment, channel = segment[useful], map.assigned.right[useful]
    order = np.argsort(segment, kind="stable")
    counts = np.bincount(segment, minlength=len(segments.domain))
    within = np.arange(len(order)) - (np.cumsum(counts) - counts)[segment[order]]
    sets = np.full((len(segments.domain), max(WIDEST, counts.max(initial=0))), NONE, np.int32)
    sets[segment[order], within] = channel[order]
    members = np.zeros((map.channels, len(problem.interest.subscribers)), bool)
    members[map.members.left, map.members.right] = True
    return Carriage(sets, members, start.direct.copy(), np.zeros(problem.interest.size))
