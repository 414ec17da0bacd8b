"""Small random delivery problems, and a count of what a delivery costs message by message."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import NONE
from fanplan.core.prices import LedgerPrices
from fanplan.data.build import from_pairs
from fanplan.layers.delivery.problem import DeliveryProblem
from fanplan.layers.delivery.record import Delivery
from fanplan.layers.groups.problem.trees import hung_at


def delivery_world(
    seed: int,
    brokers: int = 6,
    sites: int = 3,
    subscribers: int = 8,
    flows: int = 12,
    homes: bool | None = None,
) -> DeliveryProblem:
    """A random tree of brokers, some without multicast, and classes that enter at two of them.

    In every other world only home brokers send to one subscriber alone, unless it is said.
    """
    draw = np.random.default_rng(seed)
    links = np.array([(draw.integers(0, b), b) for b in range(1, brokers)], np.int32).reshape(-1, 2)
    wanted = draw.random((flows, subscribers)) < draw.uniform(0.15, 0.7, (flows, 1))
    flow, who = np.nonzero(wanted)
    messages = draw.integers(1, 50, flows).astype(float)
    interest = from_pairs(flow, who, messages, names=[f"s{s}" for s in range(subscribers)])
    roots = np.sort(draw.choice(brokers, min(2, brokers), replace=False)).astype(np.int32)
    row = np.repeat(np.arange(interest.size, dtype=np.int32), len(roots))
    tree = np.tile(np.arange(len(roots), dtype=np.int32), interest.size)
    share = draw.integers(0, 3, interest.size) / 2
    parts = np.stack([share, 1 - share], axis=1)[:, : len(roots)]
    parts = parts / parts.sum(axis=1, keepdims=True) if len(roots) > 1 else np.ones_like(parts)
    sent = (parts * interest.messages[:, None]).ravel()
    domain = draw.integers(NONE, sites, brokers).astype(np.int32)
    _, dense = np.unique(domain[domain >= 0], return_inverse=True)
    domain[domain >= 0] = dense
    return DeliveryProblem(
        interest=interest,
        brokers=pa.array([f"b{b}" for b in range(brokers)]),
        trees=hung_at(links, roots, brokers),
        home=draw.integers(0, brokers, subscribers).astype(np.int32),
        domain=domain,
        row=row[sent > 0],
        tree=tree[sent > 0],
        messages=sent[sent > 0],
        homes=seed % 2 == 1 if homes is None else homes,
    )


def way_up(problem: DeliveryProblem, tree: int, broker: int) -> list[int]:
    """Brokers from one up to the root of a tree, which is left out."""
    way = []
    while broker != problem.trees.root[tree]:
        way.append(broker)
        broker = int(problem.trees.parent[tree, broker])
    return way


def audience_of(problem: DeliveryProblem, row: int) -> set[int]:
    interest = problem.interest
    return set(interest.audience[interest.indptr[row] : interest.indptr[row + 1]].tolist())


def counted_cost(problem: DeliveryProblem, delivery: Delivery, prices: LedgerPrices) -> float:
    """Every parcel sent by hand, with sets; an error if somebody is left out."""
    map, cost = delivery.map, 0.0
    members: dict[int, set[int]] = {j: set() for j in range(map.channels)}
    for channel, who in zip(map.members.left.tolist(), map.members.right.tolist(), strict=True):
        members[channel].add(who)
        assert problem.domain[problem.home[who]] == delivery.domain[channel]
    for i in range(len(problem.row)):
        cost += problem.messages[i] * parcel_cost(problem, delivery, members, i, prices)
    return cost + set_up_cost(problem, delivery, prices)


def parcel_cost(
    problem: DeliveryProblem,
    delivery: Delivery,
    members: dict[int, set[int]],
    parcel: int,
    prices: LedgerPrices,
) -> float:
    row, tree = int(problem.row[parcel]), int(problem.tree[parcel])
    audience = audience_of(problem, row)
    cost = prices.matched
    if delivery.direct[row]:
        far = sum(is_far(problem, tree, s) for s in audience)
        return cost + prices.unicast * (len(audience) - far + prices.direct * far)
    own = delivery.map.assigned.right[delivery.map.assigned.left == row].tolist()
    reached: set[int] = set().union(*(members[j] for j in own))
    cost += sum(prices.sent + prices.received * len(members[j]) for j in own)
    cost += prices.unicast * len(audience - reached)
    where = {s: int(problem.domain[problem.home[s]]) for s in audience}
    lone = {s for s in audience - reached if problem.homes or where[s] < 0}
    needed = {int(problem.home[s]) for s in lone}
    for z in {where[s] for s in audience - lone}:
        here = any(problem.domain[b] == z for b in needed)
        if not here and problem.domain[problem.trees.root[tree]] != z:
            inside = [b for b in range(len(problem.brokers)) if problem.domain[b] == z]
            needed.add(min(inside, key=lambda b: (len(way_up(problem, tree, b)), b)))
    return cost + carried_cost(problem, delivery, parcel, tree, needed, prices)


def is_far(problem: DeliveryProblem, tree: int, subscriber: int) -> bool:
    """Whether a subscriber is out of reach of the broker where a parcel enters."""
    root, home = int(problem.trees.root[tree]), int(problem.home[subscriber])
    same = problem.domain[root] == problem.domain[home] >= 0 and not problem.homes
    return root != home and not same


def carried_cost(
    problem: DeliveryProblem,
    delivery: Delivery,
    parcel: int,
    tree: int,
    needed: set[int],
    prices: LedgerPrices,
) -> float:
    visited = {b for end in needed for b in way_up(problem, tree, end)}
    group = int(delivery.groups.group[parcel])
    if group >= 0 and delivery.selected[group]:
        bounds = delivery.groups.starts[group : group + 2]
        assert set(delivery.groups.members[bounds[0] : bounds[1]].tolist()) == needed
        return prices.forwarded * len(kept(problem, tree, visited, needed))
    inner = [b for b in visited if problem.trees.inner[tree, b]]
    return prices.forwarded * len(visited) + prices.matched * len(inner)


def kept(problem: DeliveryProblem, tree: int, visited: set[int], ends: set[int]) -> set[int]:
    """Brokers that do more than forward."""
    children = {b: sum(problem.trees.parent[tree, c] == b for c in visited) for b in visited}
    return {b for b in visited if b in ends or children[b] != 1}


def set_up_cost(problem: DeliveryProblem, delivery: Delivery, prices: LedgerPrices) -> float:
    """Entries and control messages of the chosen groups."""
    cost, groups = 0.0, delivery.groups
    for group in np.flatnonzero(delivery.selected).tolist():
        tree = int(groups.span[group])
        ends = set(groups.members[groups.starts[group] : groups.starts[group + 1]].tolist())
        visited = {b for end in ends for b in way_up(problem, tree, end)}
        stays = kept(problem, tree, visited, ends)
        short = [b for b in stays if way_up(problem, tree, b)[1:2] != [] and
                 way_up(problem, tree, b)[1] not in stays]  # fmt: skip
        told = len(ends - {int(problem.trees.root[tree])})
        cost += prices.entry * len(stays)
        cost += prices.control * (told + 2 * len(visited) + len(short))
    return cost
