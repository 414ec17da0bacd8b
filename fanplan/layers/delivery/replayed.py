"""What a replay of a whole plan measured, beside what the plan said."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from fanplan.core.ledger import Ledger
from fanplan.core.prices import LedgerPrices
from fanplan.core.result import Result, snake
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.delivery.ledger import DeliveryLedger
from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.marking.replayed import ReplayedMarks
from fanplan.plan.replayed import differing
from fanplan.plan.stored import StoredPlan

ONCE = ("state", "control")
"""Parts that do not grow with the window."""


@dataclass(frozen=True)
class Entered:
    """Publications by what the plan knows of them.

    ``unplanned`` are in flows that the plan does not have, and somebody wants them; ``unwanted``
    are in such flows, and nobody does. ``strangers`` have a publisher whose broker is not known.
    """

    publications: int
    unplanned: float
    unwanted: float
    strangers: float


@dataclass(frozen=True, repr=False)
class ReplayedDelivery(Result):
    """The measured ledger of a whole plan, and the one it was sold with.

    ``same``: the dataset is that of the plan. ``comparable``: and its rates were measured, so that
    all must agree. ``exact``: no region cuts a flow.
    ``planned`` has entries of the ledger, ``parts`` what they cost, both in the window of the plan.
    """

    entered: Entered
    measured: DeliveryLedger
    planned: dict[str, float]
    parts: dict[str, float]
    prices: LedgerPrices
    seconds: tuple[float, float]
    same: bool
    comparable: bool
    exact: bool
    marks: ReplayedMarks | None = None

    drawn = ("delivered", "unwanted", "missed")

    @property
    def ledger(self) -> Ledger:
        return self.measured.ledger

    @property
    def cost(self) -> float:
        return self.measured.cost(self.prices)

    @property
    def differences(self) -> dict[str, tuple[float, float]]:
        """Entries and parts that differ: name → (planned, measured); none for other traffic."""
        if not self.same:
            return {}
        measured = asdict(self.ledger) | self.measured.parts(self.prices)
        return differing(self.planned | self.parts, measured)

    @property
    def broken(self) -> list[str]:
        """Differences that must not be."""
        return [*self.differences] if self.comparable else []

    @property
    def ok(self) -> bool:
        """Nobody missed anything, the plan's ledger holds where it must, and so do marks."""
        marks = self.marks is None or self.marks.ok
        return self.ledger.missed == 0 and not self.broken and marks

    def rates(self) -> dict[str, tuple[float, float]]:
        """What the parts that grow with traffic cost a second: (as planned, now)."""
        then, now = self.seconds
        measured = self.measured.parts(self.prices)
        return {
            name: (self.parts[name] / then, measured[name] / now)
            for name in self.parts
            if name not in ONCE
        }

    def json(self) -> dict[str, Any]:
        ledger, parts = self.ledger, self.measured.parts(self.prices)
        return {
            "ok": self.ok,
            "publications": self.entered.publications,
            "unplanned_publications": self.entered.unplanned,
            "unwanted_publications": self.entered.unwanted,
            "strange_publications": self.entered.strangers,
            "delivered": ledger.received_wanted,
            "missed": ledger.missed,
            "unwanted": ledger.received_unwanted,
            "direct": self.measured.direct,
            "last_hop": ledger.sent_unicast - self.measured.direct,
            "cost": self.cost,
            "parts": {snake(name): value for name, value in parts.items()},
            "per_second": {snake(name): list(pair) for name, pair in self.rates().items()},
            "same_traffic": self.same,
            "exact": self.exact,
            "differences": {snake(n): list(pair) for n, pair in self.differences.items()},
            "broken": [snake(name) for name in self.broken],
            "ledger": asdict(ledger),
            "marks": None if self.marks is None else self.marks.json(),
        }

    def facts(self) -> dict[str, Any]:
        """What a person wants to know first."""
        ledger, entered = self.ledger, self.entered
        told: dict[str, Any] = {
            "publications": entered.publications,
            "that nobody wants": entered.unwanted,
            "in flows that the plan does not have": entered.unplanned,
            "of publishers that it does not know": entered.strangers,
            "delivered": ledger.received_wanted,
            "missed": ledger.missed,
            "unwanted": ledger.received_unwanted,
            "sent to channels": ledger.sent_multicast,
            "sent on the last hop": ledger.sent_unicast - self.measured.direct,
            "sent directly to another site": self.measured.direct,
            "forwarded between brokers": ledger.forwarded,
            "matched": ledger.matched,
            "cost of delivery": self.cost,
        }
        if not self.same:
            told |= {
                f"{name}, a second": f"{now:,.6g}, as planned {then:,.6g}"
                for name, (then, now) in self.rates().items()
            }
        return told | {"ledger": self.verdict()}

    def verdict(self) -> str:
        """How the measured ledger and the plan's compare."""
        if not self.same:
            return "other traffic than was planned for"
        if not self.differences:
            return "as planned"
        if self.broken:
            return f"differs from the plan's: {', '.join(self.broken)}"
        return "differs from the plan's, as it may: rates were not measured"


CLOSE = (
    "sent_multicast",
    "sent_unicast",
    "sent_bytes",
    "received_bytes",
    "received_wanted",
    "received_unwanted",
    "missed",
)
"""Entries of the ledger that channels and unicast fill."""


def planned_ledger(plan: StoredPlan) -> dict[str, float]:
    """What the plan says of channels and of brokers, by the names of the ledger."""
    near = plan.section(ChannelsRecord).ledger
    told = {name: near[name] for name in CLOSE}
    if plan.has(GroupsRecord):
        far = plan.section(GroupsRecord).ledger
        told |= {"forwarded": far["link_messages"], "matched": far["matches_total"]}
        told["control_messages"] = far["overhead"]
    return told
