"""The ledger of a delivery: which brokers traffic must reach, and what all of it costs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fanplan.core.arrays import Bools, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.core.ledger import Ledger, unicast_fraction
from fanplan.core.prices import LedgerPrices
from fanplan.layers.channels.ledger import analytic_ledger, reached_by_none
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.delivery.problem import DeliveryProblem, shared_pairs
from fanplan.layers.delivery.record import Delivery
from fanplan.layers.groups.ledger import groups_ledger
from fanplan.layers.groups.problem.build import exact_groups
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.network.brokers import Routes


@dataclass(frozen=True)
class DeliveryLedger:
    """``ledger`` in the common words; of what it has sent by unicast, ``direct`` goes past brokers
    to another domain, and ``counted`` is wanted by others there too.

    ``entries`` are those of forwarding tables of groups, ``delay`` is the mean of arrivals at
    brokers, in hops and matches.
    """

    ledger: Ledger
    direct: float
    entries: int
    delay: float
    counted: float = 0.0

    @property
    def unicast_fraction(self) -> float:
        """Share of the messages sent to subscribers that are sent to one alone."""
        return unicast_fraction(self.ledger)

    @property
    def counted_fraction(self) -> float:
        """The same of messages that a channel could carry: what a limit on unicast is on."""
        sent = self.ledger.sent_multicast + self.ledger.sent_unicast
        return self.counted / sent if sent else 0.0

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
    direct = np.dot(problem.messages, problem.beyond * delivery.direct[problem.row])
    row, person = delivery.map.unicast.left, delivery.map.unicast.right
    counted = problem.interest.messages[row[shared_pairs(problem, row, person)]].sum()
    return DeliveryLedger(ledger, float(direct), far.entries, far.delay_mean, float(counted))


def lowest_cost(problem: DeliveryProblem, prices: LedgerPrices) -> float:
    """A cost that no delivery undercuts, whatever its channels and trees.

    Each message is matched once. Its subscribers receive it. Either a message goes to each of them
    directly; or each domain with a subscriber needs a send, and one more message between brokers
    if it is not the domain of the entry. Without multicast a broker is a domain of its own here,
    and each of its subscribers needs a send.
    """
    size = problem.interest.audience_sizes
    places, sends = reached_places(problem)
    foreign = np.maximum(places - 1, 0)
    routed = prices.received * size + prices.sent * sends + prices.forwarded * foreign
    direct = prices.unicast * (size[problem.row] + (prices.direct - 1) * problem.beyond)
    each = prices.matched + np.minimum(routed[problem.row], direct)
    return float(np.dot(problem.messages, each))


def reached_places(problem: DeliveryProblem) -> tuple[Longs, Longs]:
    """Of each class how many domains, and brokers without one, have to get it; and the sends that
    they need at least: one in a domain, one for each subscriber elsewhere."""
    interest = problem.interest
    row = interest.pair_rows
    broker = problem.home[interest.audience].astype(np.int64)
    domain, width = problem.domain[broker], problem.domains + len(problem.brokers)
    key = np.unique(row * width + np.where(domain >= 0, domain, problem.domains + broker))
    places = np.bincount(key // width, minlength=interest.size)
    inside = np.bincount(key[key % width < problem.domains] // width, minlength=interest.size)
    return places, inside + np.bincount(row[domain < 0], minlength=interest.size)


def groups_left(problem: DeliveryProblem, map: ChannelMap, direct: Bools) -> GroupsProblem:
    """The groups problem of what brokers still have to carry."""
    return exact_groups(problem.brokers, problem.trees, routes_left(problem, map, direct))


def routes_left(problem: DeliveryProblem, map: ChannelMap, direct: Bools) -> Routes:
    """One route for each parcel; one that needs no broker but its entry has no destinations.

    A domain needs one broker, the nearest; the one where the traffic enters needs none. Whom only
    its home broker can serve needs that.
    """
    interest, trees = problem.interest, problem.trees
    starts, ends = needed(
        interest.indptr, interest.audience, by_homes(problem, map), problem.home, problem.domain,
        problem.gateways, trees.root, direct, problem.row, problem.tree,
    )  # fmt: skip
    return Routes(
        source=trees.root[problem.tree],
        starts=starts,
        brokers=ends,
        messages=problem.messages,
        deliveries=problem.messages * interest.audience_sizes[problem.row],
    )


def by_homes(problem: DeliveryProblem, map: ChannelMap) -> Bools:
    """For each (class, interested subscriber) whether only the home broker can serve it.

    So it is in no domain, and if only homes send to one alone, also where no channel reaches it.
    """
    interest = problem.interest
    alone: Bools = problem.domain[problem.home[interest.audience]] < 0
    if not problem.homes:
        return alone
    starts, bits = map.assigned.starts(interest.size), map.member_bits(len(interest.subscribers))
    none = reached_by_none(interest.indptr, interest.audience, starts, map.assigned.right, bits)
    return alone | none


@compiled
def needed(
    indptr: Longs,
    audience: Ints,
    alone: Bools,
    home: Ints,
    domain: Ints,
    gateways: Ints,
    root: Ints,
    direct: Bools,
    row: Ints,
    tree: Ints,
) -> tuple[Longs, Ints]:
    """The brokers that each parcel needs, ascending; whom ``alone`` tells need their homes."""
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
            for place in range(indptr[c], indptr[c + 1]):
                broker = home[audience[place]]
                z = domain[broker]
                if not alone[place]:
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
