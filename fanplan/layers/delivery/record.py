"""The section of plan.json on delivery: one cost for all layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from fanplan.core.arrays import Bools, Ints
from fanplan.core.tables import Table
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.delivery.params import DesignParams
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.plan.numbers import Amount, Count
from fanplan.plan.parquet import by_key, write_table
from fanplan.plan.section import SectionRecord
from fanplan.plan.tables import DELIVERY_TABLES

BoundName = Literal["any delivery", "any delivery of these cells"]
ANY: BoundName = "any delivery"
OF_CELLS: BoundName = "any delivery of these cells"
"""What a bound holds for: of cells only, where these are coarser than selectors."""

EVERYBODY = "a channel reaches all subscribers: {}"
ASKED = EVERYBODY.format("multicast is said to reach everywhere")
NO_BROKERS = EVERYBODY.format("there are no brokers")
NOBODY = "there is no multicast: no broker has a site or a multicast_domain"
INSIDE = "a channel reaches all subscribers at the brokers of its domain, and no others"

SEVERAL_TREES = "no marking: the overlay has several trees"
ONE_BROKER = "no marking: one broker has no links"
SILENT = "no marking: nobody advertises"
ALLOCATED_CELLS = "content routing is by cells here, not by selectors"
"""What a design warns of."""

STRICT = ConfigDict(frozen=True, extra="forbid")


class StepRecord(BaseModel):
    """What the system costs at one step from the naive one to the plan, and in which parts."""

    model_config = STRICT

    name: str
    cost: Amount
    parts: dict[str, Amount]


class DomainRecord(BaseModel):
    """A multicast domain and who is in it; without a name: brokers that have no multicast."""

    model_config = STRICT

    domain: str | None = None
    brokers: Count
    subscribers: Count


def assumed(columns: Mapping[str, int], brokers: int) -> str:
    """What domains are taken from, where brokers have them: how many by each column."""
    named = [f"{column} (brokers: {number})" for column, number in columns.items() if number]
    if not named:
        return NOBODY
    rest = brokers - sum(columns.values())
    without = f"; no multicast where there is neither (brokers: {rest})" if rest else ""
    return f"{INSIDE}; domains are by {' and '.join(named)}{without}"


def told_domain(name: str | None) -> str:
    """A domain as a person reads it; None is no domain."""
    return "no multicast" if name is None else name or "everywhere"


class DeliveryRecord(SectionRecord):
    """How every audience class is delivered, and what all of it costs.

    ``params`` are what was asked for, ``channels`` the most in a multicast domain. ``parts`` add
    up to ``cost``; ``layered`` is what the layers cost when they are planned one after the other;
    what ``bound_name`` names does not cost less than ``bound``. ``unicast_fraction`` is the share
    of the messages sent that go to one alone, ``unicast_counted`` that of those which others of
    the domain want too. ``multicast`` says who is in which of the ``domains``, ``assumed`` what
    that was taken from.
    """

    layer = "delivery"
    main = "channel_domains"

    params: DesignParams
    channels: Count
    domains: tuple[str, ...]
    multicast: tuple[DomainRecord, ...] = ()
    assumed: str = ""
    classes: Count
    direct: Count
    unicast_fraction: Amount
    unicast_counted: Amount
    parts: dict[str, Amount]
    cost: Amount
    layered: Amount
    bound: Amount
    bound_name: BoundName = ANY
    steps: tuple[StepRecord, ...]
    warnings: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """What the plan costs in all: delivery, and subscriptions that travel if links are marked.

        It is the last of the steps, so that savings and bounds speak of the same number.
        """
        return self.steps[-1].cost if self.steps else self.cost

    @property
    def total_parts(self) -> dict[str, float]:
        """What the total consists of."""
        return self.steps[-1].parts if self.steps else self.parts

    @property
    def homes(self) -> bool:
        """Whether only its home broker sends to one subscriber alone: without multicast, or if
        nothing may go past brokers."""
        return not (self.channels and self.params.direct)

    def tables(self) -> tuple[Table, ...]:
        return DELIVERY_TABLES


RECORD = DeliveryRecord


@dataclass(frozen=True, eq=False)
class Delivery:
    """A decision about a delivery problem.

    Channels of ``map`` belong to a multicast domain each, ``domain[j]``; its unicast pairs are the
    last hop from a broker to a subscriber, or the whole way if the class is ``direct``: then the
    broker where it enters sends it to each subscriber by itself. All else travels through brokers:
    ``groups`` has these ways, and ``selected`` which of them are matched only once.
    """

    map: ChannelMap
    domain: Ints
    direct: Bools
    groups: GroupsProblem
    selected: Bools


@dataclass(frozen=True, eq=False)
class DeliverySection:
    """The section of a plan that binds channels and groups together, with its tables."""

    record: DeliveryRecord
    tables: dict[str, pa.Table]
    source: str
    seed: int
    version: str
    layer: Literal["delivery"] = "delivery"


def write_delivery(layer: DeliverySection, folder: Path) -> None:
    """All tables, ordered by their keys."""
    for table in DELIVERY_TABLES:
        write_table(by_key(layer.tables[table.name], table), table, folder)
