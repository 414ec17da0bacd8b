"""What can be asked of a marking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fanplan.core.errors import Problem
from fanplan.core.options import Command, Options, option, required
from fanplan.core.prices import Prices, price, priced

ControlBy = Literal["one", "latency", "cost"]

SHARED = "shared:"
GIVEN = ("given", "given-shared")
KINDS = f"{SHARED}CORE, per-source, given or given-shared"
OVERLAY = "overlay"
"""The tree of an overlay in the same plan."""


@dataclass(frozen=True)
class MarkingPrices(Prices):
    """What descriptors cost beside their way."""

    stored: float = price("stored", 0.0)


@dataclass(frozen=True)
class MarkingParams(Options):
    """Which trees are marked, and what descriptors cost."""

    trees: str = required(
        "shared:CORE, per-source (shortest paths by latency), given (the table trees) or "
        "given-shared (its one tree, used by all in both directions).",
        metavar="TREES",
        also=("kind of trees", "core"),
    )
    raw: bool = option(False, "Also count regions that others at the same broker already cover.")
    control_by: ControlBy = option(
        "one", "What a descriptor costs on a link: one, or the link's latency or cost."
    )
    merge: bool = option(False, "Do not send a descriptor over a link where another one covers it.")
    prices: MarkingPrices = priced(MarkingPrices())

    def relations(self) -> Iterator[Problem]:
        if self.trees not in ("per-source", OVERLAY, *GIVEN) and not self.core:
            yield Problem("trees", f"{self.trees!r} is unknown", f"Use {KINDS}")
        if self.merge and self.raw:
            what = "covered regions cannot both count and be merged"
            yield Problem("merge", what, "Leave out raw")

    @property
    def core(self) -> str:
        """The core of a shared tree; empty for other trees."""
        return self.trees.removeprefix(SHARED) if self.trees.startswith(SHARED) else ""


COMMANDS = (
    Command(
        "mark",
        MarkingParams,
        "Mark links so that the fewest descriptors are sent and stored.",
        renamed={"sending": "control_by", "storing": "prices.stored"},
    ),
)
