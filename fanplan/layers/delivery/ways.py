"""Which brokers traffic must reach when channels and direct unicast take a part of it."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Bools, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.channels.bitmap import Bitmap
from fanplan.layers.channels.ledger import joined_any
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.delivery.problem.delivery import DeliveryProblem
from fanplan.layers.groups.problem.build import exact_groups
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.network.brokers import Routes


def groups_of(problem: DeliveryProblem, map: ChannelMap, direct: Bools) -> GroupsProblem:
    """The groups problem of what brokers still have to carry."""
    return exact_groups(problem.brokers, problem.trees, routes_of(problem, map, direct))


def routes_of(problem: DeliveryProblem, map: ChannelMap, direct: Bools) -> Routes:
    """One route for each parcel; one that needs no broker but its entry has no destinations.

    A subscriber who is not reached by a channel needs its home broker. A domain that has only
    channels needs one broker, the nearest; the one where the traffic enters needs none.
    """
    interest, trees = problem.interest, problem.trees
    starts, ends = needed(
        interest.indptr, interest.audience, problem.home, problem.domain, problem.gateways,
        trees.root, map.assigned.starts(interest.size), map.assigned.right,
        map.member_bits(len(interest.subscribers)), direct, problem.row, problem.tree,
    )  # fmt: skip
    return Routes(
        source=trees.root[problem.tree],
        starts=starts,
        brokers=ends,
        messages=problem.messages,
        deliveries=problem.messages * interest.audience_sizes[problem.row],
    )


@compiled
def needed(
    indptr: Longs,
    audience: Ints,
    home: Ints,
    domain: Ints,
    gateways: Ints,
    root: Ints,
    channel_starts: Longs,
    channels: Ints,
    members: Bitmap,
    direct: Bools,
    row: Ints,
    tree: Ints,
) -> tuple[Longs, Ints]:
    """The brokers that each parcel needs, ascending."""
    starts = np.zeros(len(row) + 1, np.int64)
    ends = np.empty(max(len(audience), 1), np.int32)
    needs, opened = np.full(len(domain), -1), np.full(gateways.shape[1] + 1, -1)
    heard = np.full(gateways.shape[1] + 1, -1)
    size = 0
    for i in range(len(row)):
        c, t, first = row[i], tree[i], size
        if size + len(domain) > len(ends):
            ends = np.concatenate((ends, np.empty(len(ends) + len(domain), np.int32)))
        if not direct[c]:
            own = channels[channel_starts[c] : channel_starts[c + 1]]
            for subscriber in audience[indptr[c] : indptr[c + 1]]:
                broker = home[subscriber]
                z = domain[broker]
                if z >= 0 and joined_any(members, own, subscriber):
                    heard[z] = i
                elif needs[broker] != i:
                    needs[broker] = opened[z] = i
                    ends[size] = broker
                    size += 1
            for z in range(gateways.shape[1]):
                if heard[z] == i and opened[z] != i and domain[root[t]] != z:
                    ends[size] = gateways[t, z]
                    size += 1
        ends[first:size].sort()
        starts[i + 1] = size
    return starts, ends[:size]
