"""What a replay measured, beside what the plan said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fanplan.core.ledger import Ledger, cost
from fanplan.core.prices import Weights
from fanplan.core.result import Result

# Float totals are sums of whole numbers; this forgives only the rounding of advertised rates.
AGREE = 1e-9


def differing(
    planned: Mapping[str, float], measured: Mapping[str, float]
) -> dict[str, tuple[float, float]]:
    """Entries of ledgers that differ: name → (planned, measured)."""
    return {
        name: (planned[name], measured[name])
        for name in planned
        if abs(planned[name] - measured[name]) > AGREE * max(1.0, abs(measured[name]))
    }


@dataclass(frozen=True, repr=False)
class Replayed(Result):
    """The measured ledger of a plan, over all publications, and the analytic one it was sold with.

    ``comparable`` says whether the two must be equal: rates were measured.
    ``unplanned`` publications are wanted but in no flow of the plan. ``same``: the dataset is that
    of the plan; on another one there is nothing to compare.
    """

    publications: int
    unplanned: float
    ledger: Ledger
    planned: Ledger
    weights: Weights
    comparable: bool
    same: bool = True

    drawn = ("delivered", "unwanted", "missed")

    @property
    def cost(self) -> float:
        return cost(self.ledger, self.weights)

    @property
    def differences(self) -> dict[str, tuple[float, float]]:
        """Ledger entries that differ: name → (planned, measured); none for other traffic."""
        return differing(asdict(self.planned), asdict(self.ledger)) if self.same else {}

    @property
    def ok(self) -> bool:
        """Nobody missed anything, and the plan's ledger holds where it must."""
        return self.ledger.missed == 0 and not (self.comparable and self.differences)

    def json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "publications": self.publications,
            "unplanned_publications": self.unplanned,
            "delivered": self.ledger.received_wanted,
            "missed": self.ledger.missed,
            "unwanted": self.ledger.received_unwanted,
            "cost": self.cost,
            "comparable": self.comparable,
            "differences": {name: list(pair) for name, pair in self.differences.items()},
            "ledger": asdict(self.ledger),
        }

    def facts(self) -> dict[str, Any]:
        """What a person wants to know first."""
        ledger = self.ledger
        agrees = "as planned" if not self.differences else "differs from the plan's"
        if not self.same:
            agrees = "other traffic than was planned for"
        if self.differences and not self.comparable:
            agrees += ", as it may: rates were not measured"
        return {
            "publications": self.publications,
            "in flows that the plan does not have": self.unplanned,
            "delivered": ledger.received_wanted,
            "missed": ledger.missed,
            "unwanted": ledger.received_unwanted,
            "sent to channels": ledger.sent_multicast,
            "sent by unicast": ledger.sent_unicast,
            "bytes sent": ledger.sent_bytes,
            "bytes received": ledger.received_bytes,
            "cost": self.cost,
            "ledger": agrees,
        }
