"""The ledger of a delivery: what channels, brokers and state cost together."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fanplan.core.ledger import Ledger
from fanplan.core.prices import LedgerPrices
from fanplan.layers.channels.ledger import analytic_ledger
from fanplan.layers.delivery.problem.delivery import DeliveryProblem
from fanplan.layers.delivery.record import Delivery
from fanplan.layers.groups.ledger import groups_ledger


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
