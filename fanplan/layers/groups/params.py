"""What can be asked of groups: where their trees come from, how they are found and chosen."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from fanplan.core.errors import InputError, Problem
from fanplan.core.options import Command, Options, option
from fanplan.core.prices import Prices, price, priced

Rank = Literal["saving", "nc", "fc"]
Mark = Literal["cover", "overlap"]
TreeKind = Literal["links", "per-publisher", "given", "overlay"]
"""Trees of the links, of shortest paths, of the table trees, or of an overlay."""

OVERLAY_TREES: TreeKind = "overlay"
RULES = "Use a rule such as top:10%, threshold:0 or budget:100"


@dataclass(frozen=True)
class GroupPrices(Prices):
    """What groups save and cost.

    The paper counts a match and a hop alike (section 5.1). It leaves the cost of state and of
    control messages open (section 3.2); here they count alike too, once per window.
    """

    matched: float = price("matched")
    forwarded: float = price("forwarded")
    entry: float = price("entry")
    control: float = price("control")


@dataclass(frozen=True)
class GroupsParams(Options):
    """Which trees groups hang on, how they are found, and which of them are set up."""

    select: str = option(
        "top:10%", "top:10%, threshold:X or budget:N (forwarding entries).", metavar="RULE"
    )
    rank: Rank = option("saving", "What groups are ranked by: saving, nc or fc.")
    trees: TreeKind | None = option(
        None,
        "links (one tree), per-publisher (shortest paths by latency) or given (the table trees).",
        metavar="TREES",
        shown="links",
        also=("kind of trees",),
    )
    overlay: Path | str | None = option(
        None, "Use the trees of this overlay plan.", metavar="PLAN", kept="whether"
    )
    cells: int | None = option(
        None,
        "Form groups from a grid with this many cells per axis.",
        at_least=1,
        shown="exact groups",
    )
    mark: Mark = option("cover", "Mark cells by full cover, or by any overlap.")
    least: float = option(
        0.0,
        "Leave to default routing what has no more than this many messages.",
        at_least=0,
        metavar="M",
    )
    shortcuts: bool = option(
        True, "Skip no hops: follow the trees link by link.", flag="--no-shortcuts"
    )
    prices: GroupPrices = priced(GroupPrices())

    def relations(self) -> Iterator[Problem]:
        try:
            rule_of(self.select)
        except InputError as error:
            yield from error.problems
        if self.overlay and self.trees not in (None, OVERLAY_TREES):
            yield Problem("overlay", "trees come from there", "Leave out trees, or overlay")

    @property
    def tree_kind(self) -> TreeKind:
        """Where the trees come from."""
        return OVERLAY_TREES if self.overlay else self.trees or "links"

    @property
    def choice(self) -> GroupChoice:
        """How groups are chosen."""
        return GroupChoice(rule_of(self.select), self.rank, self.shortcuts, self.prices)

    @property
    def grouping(self) -> Grouping:
        """How groups are found."""
        return Grouping(self.cells, self.mark, self.least)


@dataclass(frozen=True)
class Grouping:
    """How groups are found.

    Without ``cells`` groups are exact: observed traffic with the same destinations. Else they come
    from a grid with this many cells on each axis, which a broker marks if it wants all of them
    (``cover``) or any part (``overlap``). ``least`` is the density threshold: what has so few
    messages in the window, or fewer, takes default routing.
    """

    cells: int | None = None
    mark: Mark = "cover"
    least: float = 0.0


# ---- rules


@dataclass(frozen=True)
class Top:
    """The best share of all groups, from 0 to 1, rounded up (section 5.2)."""

    share: float


@dataclass(frozen=True)
class Threshold:
    """Groups whose benefit, net of what setting them up costs, is above this (section 3.2)."""

    least: float = 0.0


@dataclass(frozen=True)
class EntryBudget:
    """The most benefit for at most this many entries in forwarding tables."""

    entries: int


Rule = Top | Threshold | EntryBudget


@dataclass(frozen=True)
class GroupChoice:
    """How groups are chosen: by which rule and which benefit, with shortcuts or without."""

    select: Rule
    rank: Rank = "saving"
    shortcuts: bool = True
    prices: GroupPrices = field(default_factory=GroupPrices)


def rule_of(text: str) -> Rule:
    """``top:10%`` (or ``top:0.1``), ``threshold:5`` or ``budget:100``."""
    name, _, amount = text.partition(":")
    value = finite(amount.removesuffix("%") if name == "top" else amount)
    if name not in ("top", "threshold", "budget") or value is None:
        raise InputError(Problem("select", f"{text!r} is not understood", RULES))
    if name == "top":
        share = value / 100 if amount.endswith("%") else value
        if not 0 < share <= 1:
            what = f"{text!r} is not a share of the groups"
            raise InputError(Problem("select", what, "Give more than 0 % and at most 100 %"))
        return Top(share)
    if name == "threshold":
        if value < 0:
            what = f"{text!r} takes groups that cost more than they save"
            raise InputError(Problem("select", what, "Give 0 or more"))
        return Threshold(value)
    if value < 0 or value % 1:
        what = f"{text!r} is not a number of entries"
        raise InputError(Problem("select", what, "Give a whole number of 1 or more"))
    return EntryBudget(int(value))


def finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


COMMANDS = (
    Command(
        "groups",
        GroupsParams,
        "Match messages once, where they enter, and skip hops that only forward them.",
    ),
)
