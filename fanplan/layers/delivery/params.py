"""What can be asked of a design."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fanplan.core.errors import InputError, Problem
from fanplan.core.options import Command, Options, option
from fanplan.core.prices import LedgerPrices, priced

OVERLAY, CHANNELS, GROUPS, DIRECT, MARKING = "overlay", "channels", "groups", "direct", "marking"
OPTIONAL = (OVERLAY, CHANNELS, GROUPS, DIRECT, MARKING)
"""What can be left out: the layers that a design binds, and sending past the brokers."""

Reach = Literal["site", "everywhere"]
Ranking = Literal["best", "gli", "gi", "gig", "baseline", "cram"]
Publishers = Literal["ranked", "cut"]
Fixed = Mapping[str, Path | str]
"""Plans by the layer that is taken from them."""


def read_fixed(words: list[str]) -> dict[str, str]:
    """Plans by layer, from LAYER=PLAN."""
    found: dict[str, str] = {}
    for word in words:
        layer, _, plan = word.partition("=")
        if not plan:
            raise InputError(Problem("fixed", f"{word!r} names no plan", "Write LAYER=PLAN"))
        if layer in found:
            raise InputError(Problem("fixed", f"{layer} is given twice", "Give one plan for each"))
        found[layer] = plan
    return found


@dataclass(frozen=True)
class DesignParams(Options):
    """Limits, prices, and what is left out of a design or taken from other plans."""

    channels: int = option(0, "Number of multicast groups in each multicast domain.", at_least=0)
    entries: int | None = option(
        None, "Upper limit on forwarding entries of groups.", at_least=0, shown="as many as pay"
    )
    unicast_limit: float | None = option(
        None,
        "Upper limit on the share sent by unicast though several want it, 0 to 1.",
        at_least=0,
        at_most=1,
    )
    multicast: Reach | None = option(
        None, "How far multicast reaches: site (or multicast_domain) or everywhere.", shown="site"
    )
    ranking: Ranking = option(
        "best", "Where clients have no brokers: how they are allocated, as in allocate."
    )
    publishers: Publishers = option(
        "ranked", "Where clients have no brokers: where publishers are, as in allocate."
    )
    without: Sequence[str] = option(
        (),
        "What to leave out: some of overlay,channels,groups,direct,marking.",
        read=lambda text: tuple(text.split(",")),
        shown="nothing",
    )
    fixed: Fixed = option(
        {},
        "Take overlay, channels, groups or marking from a plan; repeatable.",
        flag="--fix",
        metavar="LAYER=PLAN",
        many=True,
        read=read_fixed,
        shown="none",
        kept="names",
    )
    prices: LedgerPrices = priced(LedgerPrices())

    def relations(self) -> Iterator[Problem]:
        """Nothing may be both left out and given."""
        for name in self.without:
            if name not in OPTIONAL:
                remedy = f"Use some of: {', '.join(OPTIONAL)}"
                yield Problem("without", f"{name!r} cannot be left out", remedy)
            elif name in self.fixed:
                what = f"{name} cannot be left out and fixed too"
                yield Problem("without", what, "Do one of both")
        limits = (("channels", self.channels, CHANNELS), ("entries", self.entries, GROUPS))
        for name, amount, layer in limits:
            if amount and (layer in self.without or layer in self.fixed):
                what = f"{amount} are given, but {layer} are left out or fixed"
                yield Problem(name, what, "Give one of both")
        if self.placing and (OVERLAY in self.without or OVERLAY in self.fixed):
            yield Problem(self.placing, "the overlay is left out or fixed", "Give one of both")
        brokers = [name for name in (GROUPS, MARKING, OVERLAY) if name in self.fixed]
        if OVERLAY in self.without and brokers:
            what = f"{brokers[0]} cannot be fixed without an overlay"
            yield Problem("without", what, "Leave in the overlay")
        elif brokers and OVERLAY not in self.fixed:
            what = f"{brokers[0]} cannot be fixed without the trees of the same plan"
            yield Problem("fixed", what, "Fix its overlay, too")

    @property
    def placing(self) -> str:
        """The option that says how clients are allocated; empty if none is given."""
        if self.ranking != "best":
            return "ranking"
        return "publishers" if self.publishers != "ranked" else ""

    @property
    def direct(self) -> bool:
        """Whether messages may be sent past the brokers."""
        return DIRECT not in self.without

    @property
    def most_entries(self) -> int | None:
        """Entries that groups may have; None: as many as pay."""
        return 0 if GROUPS in self.without else self.entries


COMMANDS = (
    Command(
        "design",
        DesignParams,
        "Plan every layer the workload allows, each aware of what the others cost.",
        seeded=True,
        timed=True,
        rehearsed=True,
    ),
)
