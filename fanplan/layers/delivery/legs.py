"""The last part of every delivery: from the broker that sends it on to the subscriber.

A direct message goes from where it enters, one inside a domain from the broker that sends it there,
both on the shortest way over links to the subscriber's broker. Other last hops begin there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import NONE, Bools, Ints, Longs, expanded
from fanplan.core.errors import InputError, Problem
from fanplan.layers.delivery.problem import DeliveryProblem
from fanplan.layers.delivery.read import StoredDelivery
from fanplan.layers.delivery.recount import reached_by_channels
from fanplan.layers.groups.problem.groups import BrokerTrees
from fanplan.network.brokers import Routes
from fanplan.network.latency import Latency, Timing
from fanplan.network.trees import depths
from fanplan.simulation.legs import Legs, legs_of
from fanplan.simulation.spread import RouteVisits


@dataclass(frozen=True, eq=False)
class SentOn:
    """Broker ``sender`` sends messages of a parcel on to so many ``people`` who are at ``home``."""

    parcel: Longs
    sender: Longs
    home: Longs
    people: Longs

    def latencies(self, timing: Timing) -> Latency:
        """From the sender to the home broker."""
        return timing.on_ways(self.sender, self.home)


def sent_on(stored: StoredDelivery, channels: int, routes: Routes) -> SentOn:
    """How the parcels of a plan, which take these routes, come to people."""
    problem, interest = stored.problem, stored.problem.interest
    row = interest.pair_rows
    reached = reached_by_channels(problem, stored.assigned, stored.members, channels)
    served = np.asarray(reached[row, interest.audience]).ravel() > 0
    if not problem.homes:
        served |= problem.domain[problem.home[interest.audience]] >= 0
    return from_senders(problem, served, stored.direct, routes)


def by_last_hops(problem: DeliveryProblem, routes: Routes) -> SentOn:
    """Everything goes to the home broker of everybody who wants it."""
    interest = problem.interest
    nobody, none = np.zeros(len(interest.audience), bool), np.zeros(interest.size, bool)
    return from_senders(problem, nobody, none, routes)


def from_senders(problem: DeliveryProblem, served: Bools, direct: Bools, routes: Routes) -> SentOn:
    """``served`` says of each (class, subscriber) whether a broker of its domain sends it."""
    interest, brokers = problem.interest, len(problem.brokers)
    row = interest.pair_rows
    key, people = np.unique(
        (2 * row + served) * brokers + problem.home[interest.audience], return_counts=True
    )
    starts = np.searchsorted(key, 2 * brokers * np.arange(interest.size + 1))
    parcel, at = expanded(starts, problem.row)
    home, heard = key[at] % brokers, key[at] // brokers % 2 == 1
    root = problem.trees.root[problem.tree[parcel]].astype(np.int64)
    sender = np.where(direct[problem.row[parcel]], root, home)
    heard &= ~direct[problem.row[parcel]]
    sender[heard] = channel_senders(
        problem, routes, parcel[heard], problem.domain[home[heard]].astype(np.int64)
    )
    return SentOn(parcel, sender, home, people[at])


def channel_senders(
    problem: DeliveryProblem, routes: Routes, parcel: Longs, domain: Longs
) -> Longs:
    """Who sends a parcel on inside a domain: the broker where it enters, if it is there.

    Else of those in the domain that it reaches the one with fewest hops from there, ties to the
    first.
    """
    found, lost = nearest_senders(
        problem.trees, problem.tree, problem.domain, routes, parcel, domain
    )
    for missed in np.flatnonzero(lost)[:1]:
        what = f"nothing brings class {problem.row[parcel[missed]]} to the channels of a domain"
        raise InputError(Problem("channels", what, "See what `fanplan check` says of the plan"))
    return found


def nearest_senders(
    trees: BrokerTrees,
    tree: Ints,
    domains: Ints | Longs,
    routes: Routes,
    parcel: Longs,
    domain: Longs,
) -> tuple[Longs, Bools]:
    """The same of routes on trees, by the ``domains`` of brokers; and which parcels have nobody."""
    route = np.repeat(np.arange(len(routes)), np.diff(routes.starts))
    width = int(domains.max(initial=NONE)) + 2
    deep = np.array([depths(parent) for parent in trees.parent])
    order = np.lexsort(
        (routes.brokers, deep[tree[route], routes.brokers], domains[routes.brokers], route)
    )
    key = (route * width + domains[routes.brokers] + 1)[order]
    wanted = parcel * width + domain + 1
    at = np.minimum(np.searchsorted(key, wanted), max(len(key) - 1, 0))
    root = trees.root[tree[parcel]].astype(np.int64)
    here = domains[root] == domain
    found = routes.brokers[order][at].astype(np.int64) if len(key) else root
    lost = ~here & ((key[at] != wanted) if len(key) else True)
    return np.where(here, root, found), lost


def legs_to_people(ways: RouteVisits, sent: SentOn, taken: Latency, client_ms: float) -> Legs:
    """The legs of all visits, which are told that they serve; ``client_ms`` is the last of it."""
    visit = visits_at(ways, sent.parcel, sent.sender)
    ways.visits["serves"][visit] = 1
    return legs_of(visit, taken.ms + client_ms, sent.people, len(ways.visits))


def visits_at(ways: RouteVisits, route: Longs, broker: Longs) -> Longs:
    """The visit of each route at a broker that it comes to."""
    size = int(ways.visits["broker"].max(initial=0)) + 1
    own = np.repeat(np.arange(len(ways.starts) - 1), np.diff(ways.starts)) * size
    key = own + ways.visits["broker"]
    order = np.argsort(key, kind="stable")
    found: Longs = order[np.searchsorted(key, route * size + broker, sorter=order)]
    return found
