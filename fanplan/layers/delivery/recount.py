"""Where traffic must go, counted anew for the check from the tables of a plan.

The search walks along each audience; here the same is said with sets of pairs.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from fanplan.core.arrays import NONE, Bools, Floats, Ints, Longs, expanded
from fanplan.layers.channels.map import MapPairs
from fanplan.layers.delivery.problem import DeliveryProblem
from fanplan.network.brokers import Routes
from fanplan.plan.walks import added_up


def recounted_routes(
    problem: DeliveryProblem, assigned: MapPairs, members: MapPairs, channels: int, direct: Bools
) -> Routes:
    """One route for each parcel: one broker of each domain, and homes of those whom it leaves."""
    interest, brokers = problem.interest, len(problem.brokers)
    row = interest.pair_rows
    served = reached_by_channels(problem, assigned, members, channels)[row, interest.audience]
    broker = problem.home[interest.audience].astype(np.int64)
    domain = problem.domain[broker]
    served = (np.asarray(served).ravel() > 0) | ((domain >= 0) & (not problem.homes))
    lone = np.unique((row * brokers + broker)[~served])
    width = problem.domains + 1
    opened = np.unique((row * width + domain)[~served & (domain >= 0)])
    heard = np.setdiff1d((row * width + domain)[served & (domain >= 0)], opened)
    parcel, ends = spread_over_parcels(problem, lone, heard, width, direct)
    order = np.lexsort((ends, parcel))
    return Routes(
        source=problem.trees.root[problem.tree],
        starts=np.searchsorted(parcel[order], np.arange(len(problem.row) + 1)),
        brokers=ends[order].astype(np.int32),
        messages=problem.messages,
        deliveries=problem.messages * interest.audience_sizes[problem.row],
    )


def beyond(problem: DeliveryProblem) -> Longs:
    """How many want each parcel whom the broker where it enters does not reach by itself."""
    interest = problem.interest
    which, at = expanded(interest.indptr, problem.row)
    far = is_beyond(problem, problem.home[interest.audience[at]], which)
    return np.bincount(which[far], minlength=len(problem.row))


def is_beyond(problem: DeliveryProblem, home: Ints, parcel: Longs) -> Bools:
    """Whether homes are outside of the domain, or broker, where their parcels enter."""
    root = problem.trees.root[problem.tree[parcel]]
    far: Bools = home != root
    if not problem.homes:
        far &= (problem.domain[home] < 0) | (problem.domain[home] != problem.domain[root])
    return far


def sent_beyond(problem: DeliveryProblem, row: Longs, person: Longs | Ints) -> Floats:
    """Of (class, subscriber) pairs the messages that leave the domain, or broker, of their entry
    if they are sent directly."""
    starts = np.searchsorted(problem.row, np.arange(problem.interest.size + 1))
    which, parcel = expanded(starts, row)
    far = is_beyond(problem, problem.home[person[which]], parcel)
    return np.bincount(which[far], problem.messages[parcel[far]], len(row)).astype(np.float64)


def reached_by_channels(
    problem: DeliveryProblem, assigned: MapPairs, members: MapPairs, channels: int
) -> scipy.sparse.csr_array:
    """Classes × subscribers: how many channels of the class have the subscriber."""
    size, people = problem.interest.size, len(problem.interest.subscribers)
    uses = incidence(assigned.left, assigned.right, (size, channels))
    has = incidence(members.left, members.right, (channels, people))
    return scipy.sparse.csr_array(uses @ has)


def incidence(left: Ints, right: Ints, shape: tuple[int, int]) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array((np.ones(len(left)), (left, right)), shape=shape)


def spread_over_parcels(
    problem: DeliveryProblem, lone: Longs, heard: Longs, width: int, direct: Bools
) -> tuple[Longs, Longs]:
    """(parcel, broker) pairs from (class, broker) and (class, domain) pairs."""
    brokers = len(problem.brokers)
    parcel, end = values_of_parcels(problem, lone // brokers, lone % brokers, direct)
    other, domain = values_of_parcels(problem, heard // width, heard % width, direct)
    root = problem.trees.root[problem.tree[other]]
    foreign = problem.domain[root] != domain
    gateway = own_gateways(problem)[problem.tree[other[foreign]], domain[foreign]]
    return np.concatenate((parcel, other[foreign])), np.concatenate((end, gateway))


def own_gateways(problem: DeliveryProblem) -> Ints:
    """Trees × domains: the broker nearest to the root, of equals the first; NONE without any."""
    trees, inside = problem.trees, problem.trees.parent != NONE
    inside[np.arange(len(trees.root)), trees.root] = True
    hops = np.where(
        inside, added_up(trees.parent, np.ones_like(trees.parent)), len(problem.brokers)
    )
    found = np.full((len(trees.root), problem.domains), NONE, np.int32)
    for domain in np.unique(problem.domain[problem.domain != NONE]):
        brokers = np.flatnonzero(problem.domain == domain)
        nearest = brokers[np.argmin(hops[:, brokers], axis=1)]
        found[:, domain] = np.where(inside[:, brokers].any(axis=1), nearest, NONE)
    return found


def values_of_parcels(
    problem: DeliveryProblem, row: Longs, value: Longs, direct: Bools
) -> tuple[Longs, Longs]:
    """The values of its class for every parcel that does not go directly."""
    starts = np.searchsorted(row, np.arange(problem.interest.size + 1))
    routed = np.flatnonzero(~direct[problem.row])
    which, at = expanded(starts, problem.row[routed])
    return routed[which], value[at]
