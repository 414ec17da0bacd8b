"""The layers one after the other: channels in each domain, then groups for what is left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fanplan.core.arrays import Bools, Floats, Ints, Longs, expanded
from fanplan.core.prices import Weights
from fanplan.core.stop import Stop, part_of
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import completed
from fanplan.layers.channels.lone import Kept, renumbered, with_members_once, without_lone
from fanplan.layers.channels.map import NO_PAIRS, ChannelMap, MapPairs, map_pairs
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.search.kmodes import kmodes
from fanplan.layers.delivery.ledger import groups_left
from fanplan.layers.delivery.problem import DeliveryProblem, DomainInterest, local_interest
from fanplan.layers.delivery.record import Delivery
from fanplan.layers.delivery.search.params import DeliveryParams
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.search.choose import choose_groups
from fanplan.network.brokers import end_keys


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
    own = end_keys(groups.trees.root[groups.span], groups.starts, groups.members)
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
    domains = problem.domains if params.channels else 0
    maps = []
    for z in range(domains):
        # An even part of the time that is left: what a domain did not use goes to the next ones.
        own = part_of(stop, 1 / (domains - z))
        local = local_interest(problem, z, messages)
        maps.append(plan_domain(local, params, dearer, seed, own))
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
    map = completed(problem.interest, first, all_pairs(assigned), all_pairs(members))
    return in_use(problem.interest, map, np.array(domain, np.int32))


def in_use(interest: InterestProblem, map: ChannelMap, domain: Ints) -> tuple[ChannelMap, Ints]:
    """The channels that two or more share and that carry something, each set of members once."""
    map = without_lone(interest, with_members_once(interest, map), Kept())
    return renumbered(map), domain[np.unique(map.assigned.right)]


def all_pairs(parts: Sequence[tuple[Longs | Ints, Ints]]) -> MapPairs:
    if not parts:
        return NO_PAIRS
    return map_pairs(*(np.concatenate(column) for column in zip(*parts, strict=True)))
