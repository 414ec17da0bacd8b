"""What everything in the ledger costs: one vocabulary of prices for all commands.

A layer names the prices that it uses by a class of its own; what each of them is a price of is
stated here, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from fanplan.core.errors import InputError, Problem
from fanplan.core.options import Options, option

PRICED = {
    "received": "a message received by a subscriber",
    "sent": "a message sent to a channel, or by a broker to one of its subscribers",
    "unicast": "a message to one subscriber alone, in units of one sent and one received",
    "direct": "a message sent past the brokers, in units of one sent and one received",
    "matched": "a message compared with subscriptions at a broker",
    "forwarded": "a message passed from broker to broker",
    "delayed": "a hop that a message is on its way, or 100 ms where links have latencies",
    "linked": "a link, in units of its own cost",
    "entry": "an entry of a forwarding table for a group",
    "control": "a control message that sets up a group, or a descriptor that travels",
    "stored": "a descriptor kept at a node",
}

RENAMED = {
    "match": "matched",
    "forward": "forwarded",
    "messages": "forwarded",
    "delay": "delayed",
    "cost": "linked",
    "storing": "stored",
}
"""How prices were called before they had one name each."""

PAPER = {"w1": "received", "w2": "sent", "w3": "unicast"}
"""The names of Bickson et al. (2010), section 3.2, which stay accepted."""


def price(name: str, default: float = 1.0, positive: bool = False) -> Any:
    """A field of a layer's prices."""
    limit = {"above": 0} if positive else {"at_least": 0}
    return option(default, PRICED[name], **limit)


def priced(prices: Prices) -> Any:
    """The option of a layer that holds its prices."""
    names = ", ".join(f"{item.name} {getattr(prices, item.name):g}" for item in fields(prices))
    return option(
        prices,
        f"Change a price; repeatable. Prices: {names}.",
        flag="--price",
        metavar="NAME=VALUE",
        many=True,
        read=type(prices).from_words,
        shown="as listed",
    )


@dataclass(frozen=True)
class Prices(Options):
    """Prices of a layer: one of each costs this much."""

    @classmethod
    def from_words(cls, words: Iterable[str]) -> Self:
        """Prices from NAME=VALUE, each word by itself or several with commas."""
        found: dict[str, float] = {}
        for word in (part for one in words for part in one.split(",")):
            name, _, amount = word.partition("=")
            try:
                found[name.strip()] = float(amount)
            except ValueError:
                known = fields(cls)[0].name
                what = f"{word!r} is not understood"
                raise InputError(Problem("prices", what, f"Write, say, {known}=2")) from None
        return cls.named(found)

    @classmethod
    def named(cls, given: Mapping[str, float]) -> Self:
        """Prices by name; an older name is refused with the new one."""
        known = [item.name for item in fields(cls)]
        found = {PAPER.get(n, n) if PAPER.get(n) in known else n: v for n, v in given.items()}
        for name in found:
            if RENAMED.get(name) in known:
                what, remedy = f"{name!r} is now {RENAMED[name]!r}", f"Write {RENAMED[name]}"
                raise InputError(Problem("prices", what, remedy))
            if name not in known:
                remedy = f"Use some of: {', '.join(known)}"
                raise InputError(Problem("prices", f"{name!r} has none", remedy))
        try:
            return cls(**found)
        except InputError as error:
            raise InputError(
                Problem("prices", f"{p.where}: {p.what}", p.remedy) for p in error.problems
            ) from None


@dataclass(frozen=True)
class LedgerPrices(Prices):
    """Prices of a design; state and control messages count once per window."""

    # Without these two, multicast and unicast cost the same, and there is nothing to plan.
    received: float = price("received", positive=True)
    sent: float = price("sent", positive=True)
    direct: float = price("direct", 1.5)
    matched: float = price("matched")
    forwarded: float = price("forwarded")
    entry: float = price("entry")
    control: float = price("control")

    @property
    def unicast(self) -> float:
        """A message from a broker to one of its subscribers."""
        return self.sent + self.received


@dataclass(frozen=True)
class Weights(Options):
    """Prices of channels as Bickson et al. (2010), section 3.2, write them in formulas.

    ``w1``: a message received through a channel; ``w2``: a message sent to a channel; ``w3``: a
    unicast message, in units of one sent and one received message.
    """

    w1: float = price("received", positive=True)
    w2: float = price("sent", positive=True)
    w3: float = price("unicast", positive=True)

    @property
    def unicast(self) -> float:
        """Cost of one message sent to one subscriber by unicast."""
        return self.w3 * (self.w1 + self.w2)
