"""How the traffic of a stored delivery reaches people, and what passes each broker then."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from fanplan.core.arrays import Floats, Ints, Longs, values_at
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.delivery.legs import by_last_hops
from fanplan.layers.delivery.read import StoredDelivery, read_delivery
from fanplan.layers.delivery.record import told_domain
from fanplan.layers.delivery.recount import reached_by_channels, recounted_routes, sent_beyond
from fanplan.layers.groups.read import StoredGroups, read_groups, stored_keys
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.overlay.bound import Passages
from fanplan.network.brokers import OverlayProblem, Routes, end_keys
from fanplan.network.dataset import read_brokers
from fanplan.plan.stored import StoredPlan

CHANNEL, HOP, DIRECT = range(3)
TO_PEOPLE = ("channel", "last hop", "direct unicast")
"""By which a subscriber gets a message, in the order of the numbers above."""

GROUP, DEFAULT, ENTRY, PAST = range(4)
BETWEEN = ("matched once, in a group", "matched at every broker", "needs no other broker", "direct")
"""How a message travels between brokers, in the order of the numbers above."""


@dataclass(frozen=True, eq=False)
class TrafficWays:
    """Every (audience class, subscriber) pair with its way, and every parcel with its own.

    Pair i is subscriber ``person[i]`` of class ``row[i]``, who gets ``deliveries[i]`` messages that
    way; one may be there twice, with what comes from its own site and what comes directly from
    others. A parcel is the part of a class that enters at one broker.
    """

    stored: StoredDelivery
    channels: int
    row: Longs
    person: Longs
    to_person: Longs
    deliveries: Floats
    routes: Routes
    between: Longs

    @property
    def names(self) -> tuple[str, ...]:
        """Domains; brokers that are in none come last."""
        known = tuple(map(told_domain, self.stored.names))
        nowhere = told_domain(None)
        return (*known, nowhere) if (self.stored.problem.domain < 0).any() else known

    @cached_property
    def home(self) -> Longs:
        """The domain of each subscriber, as a position in ``names``."""
        problem = self.stored.problem
        return self.placed(problem.domain[problem.home])

    def placed(self, domain: Ints) -> Longs:
        return np.where(domain < 0, len(self.names) - 1, domain).astype(np.int64)

    def by_domain(self) -> Floats:
        """Domains × ways to people: deliveries to the subscribers there."""
        return table(self.home[self.person], self.to_person, self.deliveries, self._shape(3))

    def by_entry(self) -> Floats:
        """Domains × ways between brokers: messages that enter there."""
        problem = self.stored.problem
        domain = self.placed(problem.domain[self.routes.source])
        return table(domain, self.between, problem.messages, self._shape(4))

    def by_class(self) -> Floats:
        """Classes × ways to people."""
        shape = (self.stored.problem.interest.size, 3)
        return table(self.row, self.to_person, self.deliveries, shape)

    def class_between(self) -> Floats:
        """Classes × ways between brokers: messages."""
        problem = self.stored.problem
        return table(problem.row, self.between, problem.messages, (problem.interest.size, 4))

    def _shape(self, ways: int) -> tuple[int, int]:
        return len(self.names), ways


def table(row: Ints | Longs, column: Longs, weight: Floats, shape: tuple[int, int]) -> Floats:
    """Weights added up by row and column."""
    flat = np.bincount(row.astype(np.int64) * shape[1] + column, weight, shape[0] * shape[1])
    return flat.astype(np.float64).reshape(shape)


def count_ways(plan: StoredPlan, dataset: Path) -> TrafficWays:
    """Count a plan's tables against its dataset; without brokers all enters at one place."""
    groups = read_groups(plan, read_brokers(dataset).names) if plan.has(GroupsRecord) else None
    stored = read_delivery(plan, dataset, groups.trees if groups else None)
    problem, channels = stored.problem, plan.section(ChannelsRecord).channels
    given = (problem, stored.assigned, stored.members, channels)
    interest = problem.interest
    row = interest.pair_rows
    served = values_at(reached_by_channels(*given), row, interest.audience) > 0
    routes = recounted_routes(*given, stored.direct)
    person, past = interest.audience.astype(np.int64), np.flatnonzero(stored.direct[row])
    far = sent_beyond(problem, row[past], person[past])
    here = interest.messages[row]
    here[past] -= far
    return TrafficWays(
        stored=stored,
        channels=channels,
        row=np.append(row, row[past]),
        person=np.append(person, person[past]),
        to_person=np.append(np.where(served, CHANNEL, HOP), np.full(len(past), DIRECT)),
        deliveries=np.append(here, far),
        routes=routes,
        between=between(stored, routes, groups),
    )


def between(stored: StoredDelivery, routes: Routes, groups: StoredGroups | None) -> Longs:
    """How each parcel travels: a group is known by its tree and its members."""
    known = set(stored_keys(groups)) if groups else set()
    own = end_keys(stored.problem.tree, routes.starts, routes.brokers)
    grouped = np.array([key in known for key in own], bool)
    elsewhere = np.bincount(
        np.repeat(np.arange(len(routes)), np.diff(routes.starts)),
        routes.brokers != np.repeat(routes.source, np.diff(routes.starts)),
        len(routes),
    )
    ways = (stored.direct[stored.problem.row], elsewhere == 0, grouped)
    return np.select(ways, (PAST, ENTRY, GROUP), DEFAULT)


def delivering(ways: TrafficWays) -> Passages:
    """Every delivery from where it enters to the home broker, as if there were no channels."""
    problem = ways.stored.problem
    sent = by_last_hops(problem, ways.routes)
    root = problem.trees.root[problem.tree[sent.parcel]].astype(np.int64)
    return Passages(root, sent.home, problem.messages[sent.parcel] * sent.people)


def positions_in_overlay(ways: TrafficWays, problem: OverlayProblem) -> NDArray[np.int64]:
    """Of each broker that delivery numbers its position in the overlay, which may use only some."""
    found = pc.index_in(ways.stored.problem.brokers, problem.brokers).fill_null(-1)
    result: NDArray[np.int64] = found.to_numpy().astype(np.int64)
    return result


def overlay_of_rest(
    ways: TrafficWays, problem: OverlayProblem, position: NDArray[np.int64]
) -> OverlayProblem:
    """The same overlay with the traffic that channels and direct unicast do not carry."""
    at, routes = position.astype(np.int32), ways.routes
    return replace(
        problem, routes=replace(routes, source=at[routes.source], brokers=at[routes.brokers])
    )
