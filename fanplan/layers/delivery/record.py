"""The section of plan.json on delivery: one cost for all layers."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from fanplan.plan.numbers import Amount, Count

STRICT = ConfigDict(frozen=True, extra="forbid")


class LedgerPricesRecord(BaseModel):
    """What one of each entry of the ledger costs."""

    model_config = STRICT

    received: Amount
    sent: Amount
    direct: Amount
    matched: Amount
    forwarded: Amount
    entry: Amount
    control: Amount


class StepRecord(BaseModel):
    """What the system costs at one step from the naive one to the plan, and in which parts."""

    model_config = STRICT

    name: str
    cost: Amount
    parts: dict[str, Amount]


class DeliveryRecord(BaseModel):
    """How every audience class is delivered, and what all of it costs.

    ``channels`` are the most of each multicast domain, ``entries`` the most of all groups; None:
    no limit. ``fixed`` are the layers that were taken from other plans. ``parts`` add up to
    ``cost``; ``layered`` is what the layers cost when they are planned one after the other; no
    delivery costs less than ``bound``.
    """

    model_config = STRICT

    channels: Count
    entries: Count | None = None
    unicast_limit: Amount | None = None
    direct_allowed: bool
    fixed: tuple[str, ...] = ()
    prices: LedgerPricesRecord
    domains: tuple[str, ...]
    classes: Count
    direct: Count
    unicast_fraction: Amount
    parts: dict[str, Amount]
    cost: Amount
    layered: Amount
    bound: Amount
    steps: tuple[StepRecord, ...]
    warnings: tuple[str, ...] = ()
