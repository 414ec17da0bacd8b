"""What a user may ask of groups, by names, and where the trees come from that they hang on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from fanplan.core.errors import InputError, Problem
from fanplan.core.prices import Prices, price

if TYPE_CHECKING:
    from fanplan.layers.groups.build import GroupsWishes
    from fanplan.layers.groups.problem.dataset import Grouping


def params_of(select: str, rank: str, shortcuts: bool, prices: Mapping[str, float]) -> GroupsParams:
    """The rule, the benefit and the prices, or what is wrong with them."""
    if rank not in get_args(Rank):
        remedy = f"Use one of: {', '.join(get_args(Rank))}"
        raise InputError(Problem("rank", f"{rank!r} is unknown", remedy))
    return GroupsParams(rule_of(select), cast("Rank", rank), shortcuts, GroupPrices.named(prices))


def grouping_of(cells: int | None, mark: str, least: float) -> Grouping:
    from fanplan.layers.groups.problem.dataset import Grouping

    return Grouping(cells, cast("Any", mark), least)


def recorded(params: GroupsParams, grouping: Grouping, trees: str) -> GroupsWishes:
    """The same as the plan records it."""
    from fanplan.layers.groups.build import GroupsWishes
    from fanplan.layers.groups.record import PricesRecord, SelectRecord

    select = params.select
    rule = type(select).__name__.lower()
    (amount,) = asdict(select).values()
    return GroupsWishes(
        cast("Any", trees),
        grouping,
        SelectRecord(rule=cast("Any", rule), amount=amount),
        params.rank,
        params.shortcuts,
        PricesRecord(**asdict(params.prices)),
    )


# ---- trees


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
class Top:
    """The best share of all groups, from 0 to 1, rounded up (section 5.2)."""

    share: float

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            what = f"{self.share} is no share"
            raise InputError(Problem("top", what, "Give a share from 0 to 1"))


@dataclass(frozen=True)
class Threshold:
    """Groups whose benefit, net of what setting them up costs, is above this (section 3.2)."""

    least: float = 0.0


@dataclass(frozen=True)
class Budget:
    """The most benefit for at most so many entries in forwarding tables."""

    entries: int

    def __post_init__(self) -> None:
        if self.entries < 0:
            what = f"{self.entries} is negative"
            raise InputError(Problem("budget", what, "Give 0 entries or more"))


@dataclass(frozen=True)
class GroupsParams:
    """How groups are chosen: by which rule and which benefit, with shortcuts or without."""

    select: Top | Threshold | Budget
    rank: Rank = "saving"
    shortcuts: bool = True
    prices: GroupPrices = field(default_factory=GroupPrices)


Rank = Literal["nc", "fc", "saving"]


REMEDY = "Use such as top:10%, threshold:0 or budget:100"


def rule_of(text: str) -> Top | Threshold | Budget:
    """``top:10%`` (or ``top:0.1``), ``threshold:5`` or ``budget:100``."""
    name, _, amount = text.partition(":")
    value = number(amount.removesuffix("%") if name == "top" else amount)
    if name not in ("top", "threshold", "budget") or value is None:
        raise InputError(Problem("select", f"{text!r} is not understood", REMEDY))
    if name == "top":
        return Top(share(text, value / 100 if amount.endswith("%") else value))
    if name == "threshold":
        if value < 0:
            what = f"{text!r} takes groups that cost more than they save"
            raise InputError(Problem("select", what, "Give 0 or more"))
        return Threshold(value)
    if value < 1 or value % 1:
        what = f"{text!r} is no number of entries"
        raise InputError(Problem("select", what, "Give a whole number of 1 or more"))
    return Budget(int(value))


def number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def share(text: str, value: float) -> float:
    if not 0 < value <= 1:
        what = f"{text!r} is no share of the groups"
        raise InputError(Problem("select", what, "Give more than 0 % and at most 100 %"))
    return value
