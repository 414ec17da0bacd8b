"""The ledger of a delivery: which brokers traffic must reach, and what all of it costs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fanplan.core.arrays import Bools, Ints, Longs, Words
from fanplan.core.kernels import compiled
from fanplan.core.ledger import Ledger
from fanplan.core.prices import LedgerPrices
from fanplan.layers.channels.ledger import analytic_ledger, joined_any
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.delivery.problem import DeliveryProblem
from fanplan.layers.delivery.record import Delivery
from fanplan.layers.groups.ledger import groups_ledger
from fanplan.layers.groups.problem.build import exact_groups
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.network.brokers import Routes


@dataclass(frozen=True)
class DeliveryLedger:
    """``ledger`` in the common words; of what it has sent by unicast, ``direct`` passes no broker.

    ``entries`` are those of forwarding tables of groups, ``delay`` is the mean of arrivals at
    brokers, in hops and matches.
    """

    ledger: Ledger
    direct: float
    entries: int
    delay: float

    @property
    def unicast_fraction(self) -> float:
        """Share of the messages sent to subscribers that are sent to one alone."""
        sent = self.ledger.sent_multicast + self.ledger.sent_unicast
        return self.ledger.sent_unicast / sent if sent else 0.0

    def parts(self, prices: LedgerPrices) -> dict[str, float]:
        """What each part of the ledger costs."""
        ledger, near = self.ledger, self.ledger.sent_unicast - self.direct
        return {
            "multicast": prices.sent * ledger.sent_multicast
            + prices.received * ledger.received_multicast,
            "last hop": prices.unicast * near,
            "direct unicast": prices.direct * prices.unicast * self.direct,
            "forwarding": prices.forwarded * ledger.forwarded,
            "matching": prices.matched * ledger.matched,
            "state": prices.entry * self.entries,
            "control": prices.control * ledger.control_messages,
        }

    def cost(self, prices: LedgerPrices) -> float:
        return sum(self.parts(prices).values())


def delivery_ledger(problem: DeliveryProblem, delivery: Delivery) -> DeliveryLedger:
    """Count a delivery: channels by the interest problem, brokers by the groups problem."""
    near = analytic_ledger(problem.interest, delivery.map)
    far = groups_ledger(delivery.groups, delivery.selected)
    ledger = replace(
        near,
        forwarded=float(far.received.sum()),
        matched=far.matches,
        control_messages=float(far.control),
    )
    interest = problem.interest
    direct = np.dot(interest.messages, interest.audience_sizes * delivery.direct)
    return DeliveryLedger(ledger, float(direct), far.entries, far.delay_mean)


def lowest_cost(problem: DeliveryProblem, prices: LedgerPrices) -> float:
    """A cost that no delivery undercuts, whatever its channels and trees.

    Each message is matched once. Its subscribers receive it. Either a message goes to each of them
    directly; or each domain with a subscriber needs a send, and one more message between brokers
    if it is not the domain of the entry. Without multicast a broker is a domain of its own here,
    and each of its subscribers needs a send.
    """
    interest = problem.interest
    sends, reach = np.zeros(interest.size), np.zeros(interest.size)
    segments = problem.segments
    people = np.diff(segments.bounds)
    alone = segments.domain < 0
    np.add.at(sends, segments.row, np.where(alone, people, 1))
    np.add.at(reach, segments.row, ~alone)
    foreign = np.maximum(reach - 1, 0)
    size = interest.audience_sizes
    routed = prices.received * size + prices.sent * sends + prices.forwarded * foreign
    direct = prices.direct * prices.unicast * size
    each = prices.matched + np.minimum(routed, direct)
    return float(np.dot(interest.messages, each))


def groups_left(problem: DeliveryProblem, map: ChannelMap, direct: Bools) -> GroupsProblem:
    """The groups problem of what brokers still have to carry."""
    return exact_groups(problem.brokers, problem.trees, routes_left(problem, map, direct))


def routes_left(problem: DeliveryProblem, map: ChannelMap, direct: Bools) -> Routes:
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
    members: Words,
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
