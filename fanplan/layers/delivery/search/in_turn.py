"""The layers one after the other: channels in each domain, then groups for what is left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fanplan.core.arrays import Bools, Floats, Ints, Longs, Words
from fanplan.core.bits import bits_of_pairs
from fanplan.core.kernels import compiled
from fanplan.core.prices import Weights
from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import joined_any
from fanplan.layers.channels.map import NO_PAIRS, ChannelMap, MapPairs, map_pairs
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.search.kmodes import kmodes
from fanplan.layers.delivery.ledger import groups_left
from fanplan.layers.delivery.problem import (
    DeliveryProblem,
    DomainInterest,
    expanded,
    local_interest,
)
from fanplan.layers.delivery.record import Delivery
from fanplan.layers.delivery.search.params import DeliveryParams
from fanplan.layers.groups.carried import group_keys
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.search.choose import choose_groups


def layer_by_layer(
    problem: DeliveryProblem, params: DeliveryParams, seed: int, stop: Stop, dearer: float = 1.0
) -> Delivery:
    """Channels as if there were no brokers, then the groups that pay.

    Whom channels leave out costs brokers too: ``dearer`` is by how much that raises unicast.
    """
    messages = problem.interest.messages[problem.segments.row]
    map, domain = plan_domains(problem, params, messages, dearer, seed, stop)
    return with_groups(problem, params, map, domain, np.zeros(problem.interest.size, bool))


def with_groups(
    problem: DeliveryProblem, params: DeliveryParams, map: ChannelMap, domain: Ints, direct: Bools
) -> Delivery:
    """The best groups for what channels and direct unicast leave to brokers, or the fixed ones."""
    groups = groups_left(problem, map, direct)
    return Delivery(map, domain, direct, groups, selected_of(groups, params))


def selected_of(groups: GroupsProblem, params: DeliveryParams) -> Bools:
    """Which groups are set up."""
    if params.fixed_groups is None:
        return choose_groups(groups, params.groups.choice).selected
    own = group_keys(groups.trees.root[groups.span], groups.starts, groups.members)
    return np.array([key in params.fixed_groups for key in own], bool)


def plan_domains(
    problem: DeliveryProblem,
    params: DeliveryParams,
    messages: Floats,
    dearer: float,
    seed: int,
    stop: Stop,
) -> tuple[ChannelMap, Ints]:
    """Channels of every domain, for segments that have messages; and the domain of each channel."""
    maps = [
        plan_domain(local_interest(problem, z, messages), params, dearer, seed, stop)
        for z in range(problem.domains if params.channels else 0)
    ]
    return joined_maps(problem, maps)


def plan_domain(
    local: DomainInterest, params: DeliveryParams, dearer: float, seed: int, stop: Stop
) -> tuple[DomainInterest, ChannelMap]:
    """As many channels as there are, or as there are audiences to fill them."""
    channels = min(params.channels, local.problem.size)
    if not channels:
        return local, ChannelMap(0, NO_PAIRS, NO_PAIRS, NO_PAIRS)
    prices = params.prices
    wishes = KmodesParams(
        channels=channels,
        weights=Weights(prices.received, prices.sent, dearer),
        swaps=params.swaps,
        unicast_limit=params.unicast_limit,
    )
    return local, kmodes(local.problem, wishes, seed, stop)


def joined_maps(
    problem: DeliveryProblem, maps: list[tuple[DomainInterest, ChannelMap]]
) -> tuple[ChannelMap, Ints]:
    """One map of all domains, whose channels are numbered one domain after the other."""
    segments, first = problem.segments.row, 0
    assigned, members, domain = [], [], []
    for z, (local, map) in enumerate(maps):
        starts = map.assigned.starts(local.problem.size)
        segment, at = expanded(starts, local.row)
        channel = map.assigned.right[at]
        assigned.append((segments[local.segment[segment]], first + channel))
        members.append((first + map.members.left, map.members.right))
        domain += [z] * map.channels
        first += map.channels
    map = completed(problem.interest, first, together(assigned), together(members))
    return map, np.array(domain, np.int32)


def together(parts: Sequence[tuple[Longs | Ints, Ints]]) -> MapPairs:
    if not parts:
        return NO_PAIRS
    return map_pairs(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def completed(
    interest: InterestProblem, channels: int, assigned: MapPairs, members: MapPairs
) -> ChannelMap:
    """The map in which all who are not reached by a channel get unicast."""
    bits = bits_of_pairs(members.left, members.right, channels, len(interest.subscribers))
    rest = reached_by_none(
        interest.indptr, interest.audience, assigned.starts(interest.size), assigned.right, bits
    )
    row = np.repeat(np.arange(interest.size, dtype=np.int32), interest.audience_sizes)
    return ChannelMap(channels, assigned, members, map_pairs(row[rest], interest.audience[rest]))


@compiled
def reached_by_none(
    indptr: Longs, audience: Ints, starts: Longs, channels: Ints, members: Words
) -> Bools:
    """For each (row, interested subscriber) whether no channel of the row has the subscriber."""
    rest = np.zeros(len(audience), np.bool_)
    for row in range(len(indptr) - 1):
        own = channels[starts[row] : starts[row + 1]]
        for k in range(indptr[row], indptr[row + 1]):
            rest[k] = not joined_any(members, own, audience[k])
    return rest
