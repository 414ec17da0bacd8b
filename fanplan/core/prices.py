"""What everything in the ledger costs: one list of prices for channels, brokers and state."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields

from fanplan.core.errors import InputError, Problem


@dataclass(frozen=True)
class LedgerPrices:
    """Price of one of each; state and control messages count once per window."""

    received: float = 1.0
    """a message received by a subscriber"""
    sent: float = 1.0
    """a message sent to a channel, or by a broker to one of its subscribers"""
    direct: float = 1.5
    """a message sent to a subscriber past the brokers, in units of one sent and one received"""
    matched: float = 1.0
    """a message compared with subscriptions at a broker"""
    forwarded: float = 1.0
    """a message passed from broker to broker"""
    entry: float = 1.0
    """an entry of a forwarding table for a group"""
    control: float = 1.0
    """a control message that sets up a group, or a descriptor that travels"""

    def __post_init__(self) -> None:
        wrong = [
            Problem(f"price {name}", f"{value} is not allowed", "Use a finite number from 0")
            for name, value in asdict(self).items()
            if not (math.isfinite(value) and value >= 0)
        ]
        # Without them multicast and unicast cost the same, and there is nothing to plan.
        wrong += [
            Problem(f"price {name}", "0 is not allowed", "Use a positive number")
            for name in ("received", "sent")
            if getattr(self, name) == 0
        ]
        if wrong:
            raise InputError(wrong)

    @property
    def unicast(self) -> float:
        """A message from a broker to one of its subscribers."""
        return self.sent + self.received


@dataclass(frozen=True)
class Prices:
    """What one match, one message on a link, one entry of a table and one control message cost.

    The paper counts a match and a hop alike (section 5.1). It leaves the cost of state and of
    control messages open (section 3.2); here they count alike too, once per window.
    """

    match: float = 1.0
    forward: float = 1.0
    entry: float = 1.0
    control: float = 1.0

    def __post_init__(self) -> None:
        wrong = [
            Problem(item.name, f"{getattr(self, item.name)} is no price", "Give 0 or more")
            for item in fields(self)
            if not (math.isfinite(getattr(self, item.name)) and getattr(self, item.name) >= 0)
        ]
        if wrong:
            raise InputError(wrong)


@dataclass(frozen=True)
class Weights:
    """The factors w′1, w′2 and w′3 of Bickson et al. (2010), section 3.2.

    ``w1``: a message received through a channel; ``w2``: a message sent to a channel; ``w3``: a
    unicast message, in units of one sent and one received message.
    """

    w1: float = 1.0
    w2: float = 1.0
    w3: float = 1.0

    def __post_init__(self) -> None:
        wrong = [
            Problem(f"weight {name}", f"{value} is not allowed", "Use a positive finite number")
            for name, value in asdict(self).items()
            if not (math.isfinite(value) and value > 0)
        ]
        if wrong:
            raise InputError(wrong)

    @property
    def unicast(self) -> float:
        """Cost of one message sent to one subscriber by unicast."""
        return self.w3 * (self.w1 + self.w2)
