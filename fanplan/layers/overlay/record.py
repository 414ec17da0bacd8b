"""The section of plan.json on the overlay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from fanplan.core.arrays import Floats
from fanplan.core.tables import Table
from fanplan.layers.overlay.params import AllocateParams, OverlayParams
from fanplan.network.trees import Trees
from fanplan.plan.numbers import Count, Positive
from fanplan.plan.parquet import by_key, write_table
from fanplan.plan.section import SectionRecord
from fanplan.plan.tables import OVERLAY_TABLES, TREE_TABLES

if TYPE_CHECKING:
    from fanplan.plan.stored import StoredPlan


Limit = Annotated[int, Field(ge=1)]


class LimitsRecord(BaseModel):
    """What every tree obeys, by the names of brokers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    degree: Limit | None = None
    degrees: dict[str, Limit] = {}
    diameter: Limit | None = None
    hops: tuple[tuple[str, str, Limit], ...] = ()


class AllocationRecord(BaseModel):
    """How clients were allocated.

    A broker may be filled up to ``lcf`` × capacity, less what is ``reserved`` there (messages/s).
    ``lone`` clients are too big for that and stand alone. No allocation has fewer brokers than
    ``bound``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    lcf: Annotated[FiniteFloat, Field(gt=0, le=1)]
    reserved: dict[str, FiniteFloat] = {}
    lone: tuple[str, ...] = ()
    bound: Count
    cost: FiniteFloat


class OverlayRecord(SectionRecord):
    """How brokers were linked and what that costs.

    ``params`` are what was asked for. ``clients`` are at the brokers that the workload gives, or
    ``allocated``. Latencies are in hops, or in ms where links are given. No tree has
    fewer messages on links than ``bound``. ``seconds`` is the window of the ledger.
    """

    layer = "overlay"
    main = "links"

    params: OverlayParams
    clients: Literal["given", "allocated"]
    limits: LimitsRecord = LimitsRecord()
    allocation: AllocationRecord | None = None
    brokers: Count
    links: Count
    trees: Annotated[int, Field(ge=1)]
    weight: FiniteFloat
    latency: Literal["hops", "ms"]
    seconds: Positive
    bound: FiniteFloat
    ledger: dict[str, FiniteFloat]

    @property
    def allocating(self) -> AllocateParams:
        """What was asked of the allocation of clients."""
        assert isinstance(self.params, AllocateParams)
        return self.params

    def tables(self) -> tuple[Table, ...]:
        return OVERLAY_TABLES + (TREE_TABLES if self.trees > 1 else ())


RECORD = OverlayRecord


def clients_allocated(plan: StoredPlan) -> bool:
    """Whether clients are where the plan has them, not the workload."""
    overlay = plan.find(OverlayRecord)
    return overlay is not None and overlay.clients == "allocated"


@dataclass(frozen=True, eq=False)
class OverlaySection:
    """An overlay with its origin and its figures; ``tables`` are those of the plan folder."""

    record: OverlayRecord
    tables: dict[str, pa.Table]
    trees: Trees
    load: Floats
    source: str
    seed: int
    version: str
    layer: Literal["overlay"] = "overlay"


def write_overlay(layer: OverlaySection, folder: Path) -> None:
    """All tables, ordered by their keys."""
    for table in OVERLAY_TABLES + TREE_TABLES:
        if table.name in layer.tables:
            write_table(by_key(layer.tables[table.name], table), table, folder)
