"""What the search for a delivery is told, in the numbers of its problem."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fanplan.core.errors import InputError, Problem
from fanplan.core.prices import LedgerPrices
from fanplan.layers.groups.params import GroupPrices, GroupsParams
from fanplan.network.brokers import EndKey


@dataclass(frozen=True)
class DeliveryParams:
    """Limits of None do not apply.

    ``channels`` are those of each multicast domain, 0: none. ``entries`` are those of forwarding
    tables of groups, 0: no groups. ``unicast_limit`` is the most of all messages sent to
    subscribers that may go to one alone, 0 to 1. ``direct`` allows unicast past the brokers.
    ``fixed_groups`` are roots and members of the groups that are set up, instead of chosen ones.
    """

    channels: int = 0
    entries: int | None = None
    unicast_limit: float | None = None
    direct: bool = True
    swaps: int = 64
    prices: LedgerPrices = field(default_factory=LedgerPrices)
    fixed_groups: frozenset[EndKey] | None = None

    def __post_init__(self) -> None:
        problems = [
            Problem(name, f"{value} is negative", "Give 0 or more")
            for name, value in (("channels", self.channels), ("entries", self.entries))
            if value is not None and value < 0
        ]
        limit = self.unicast_limit
        if limit is not None and not 0 <= limit <= 1:
            problems.append(Problem("unicast_limit", f"{limit} is not a share", "Use 0 to 1"))
        if problems:
            raise InputError(problems)

    @property
    def groups(self) -> GroupsParams:
        """How groups are chosen: what pays, within the entries there are."""
        prices = self.prices
        of_groups = GroupPrices(prices.matched, prices.forwarded, prices.entry, prices.control)
        rule = "threshold:0" if self.entries is None else f"budget:{self.entries}"
        return GroupsParams(rule, trees="overlay", prices=of_groups)

    def recorded(self) -> dict[str, Any]:
        """The parameters as a plan stores them; prices have a place of their own there."""
        return {
            "channels": self.channels,
            "entries": self.entries,
            "unicast_limit": self.unicast_limit,
            "direct": self.direct,
            "swaps": self.swaps,
        }
