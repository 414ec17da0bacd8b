"""The ledger: what a plan costs, counted in one vocabulary, and the costs that are sums over it."""

from __future__ import annotations

from dataclasses import dataclass, field

from fanplan.core.prices import Weights


def entry(unit: str, meaning: str) -> float:
    """A ledger entry with its description; 0 unless counted."""
    return field(default=0.0, metadata={"unit": unit, "meaning": meaning})


@dataclass(frozen=True)
class Ledger:
    """Totals over the window. Each reception is counted once, as wanted or as unwanted."""

    sent_multicast: float = entry("messages", "sent to a channel, once per channel")
    sent_unicast: float = entry("messages", "sent to one subscriber, once per subscriber")
    received_wanted: float = entry("messages", "received for the first time by one who wants it")
    received_unwanted: float = entry("messages", "received and filtered, and second copies")
    missed: float = entry("messages", "wanted by a subscriber that does not receive it")
    sent_bytes: float = entry("bytes", "sent to channels and by unicast")
    received_bytes: float = entry("bytes", "received, wanted or not")
    forwarded: float = entry("messages", "passed from broker to broker")
    matched: float = entry("messages", "compared with subscriptions at a broker")
    stored_descriptors: float = entry("regions", "kept at brokers for routing")
    control_messages: float = entry("messages", "subscriptions and advertisements sent around")

    @property
    def received(self) -> float:
        """Messages received, wanted or not."""
        return self.received_wanted + self.received_unwanted

    @property
    def received_multicast(self) -> float:
        """Messages received through channels: each unicast message is received exactly once."""
        return self.received - self.sent_unicast


def channelization_cost(ledger: Ledger, weights: Weights) -> float:
    """C of Bickson et al. (2010), section 3.1: what the channels alone cost."""
    return weights.w1 * ledger.received_multicast + weights.w2 * ledger.sent_multicast


def cost(ledger: Ledger, weights: Weights) -> float:
    """C′ of Bickson et al. (2010), Eq. 1: what channels and unicast cost together."""
    return channelization_cost(ledger, weights) + weights.unicast * ledger.sent_unicast


def unicast_cost(ledger: Ledger, weights: Weights) -> float:
    """What the same deliveries cost by unicast: each wanted reception is a unicast message."""
    return weights.unicast * (ledger.received_wanted + ledger.missed)


def excess_percent(cost: float, perfect: float) -> float:
    """How far a cost lies above perfect multicast, in percent of it; 0 if there is no traffic."""
    return 100.0 * (cost - perfect) / perfect if perfect > 0 else 0.0


def unicast_fraction(ledger: Ledger) -> float:
    """Share of the messages sent that are sent by unicast, 0 to 1; 0 if nothing is sent."""
    sent = ledger.sent_multicast + ledger.sent_unicast
    return ledger.sent_unicast / sent if sent > 0 else 0.0
