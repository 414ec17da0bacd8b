"""The section of plan.json on groups."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, FiniteFloat

from fanplan.layers.groups.problem.dataset import Grouping
from fanplan.layers.groups.problem.trees import TreeKind
from fanplan.plan.numbers import Amount, Count

STRICT = ConfigDict(frozen=True, extra="forbid")


class SelectRecord(BaseModel):
    """By which rule groups were chosen: a share of them, a least benefit, or most entries."""

    model_config = STRICT

    rule: Literal["top", "threshold", "budget"]
    amount: Amount


class PricesRecord(BaseModel):
    """What a match, a message on a link, an entry and a control message cost."""

    model_config = STRICT

    match: Amount
    forward: Amount
    entry: Amount
    control: Amount


class GroupsRecord(BaseModel):
    """Which groups were found and chosen, and what they save.

    ``grouping`` says how groups were found, ``groups`` how many, ``selected`` how many are set up.
    ``value`` is their benefit by ``rank``; no choice by the same rule exceeds ``bound``. Ledgers
    are totals and means over the window: ``default`` without groups, ``ledger`` with them.
    """

    model_config = STRICT

    trees: TreeKind
    grouping: Grouping
    select: SelectRecord
    rank: Literal["nc", "fc", "saving"]
    shortcuts: bool
    prices: PricesRecord
    brokers: Count
    roots: Count
    groups: Count
    selected: Count
    covered: Amount
    value: FiniteFloat
    bound: FiniteFloat
    default: dict[str, FiniteFloat]
    ledger: dict[str, FiniteFloat]
