"""The section of plan.json on the marking."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from fanplan.core.tables import Table
from fanplan.layers.marking.params import MarkingParams
from fanplan.plan.numbers import Count
from fanplan.plan.parquet import by_key, write_table
from fanplan.plan.section import SectionRecord
from fanplan.plan.tables import MARKING_TABLES, MARKS

Price = Annotated[FiniteFloat, Field(ge=0)]


class MergedRecord(BaseModel):
    """Costs if a descriptor that another one on the same link covers does not travel there.

    ``cost`` is that of the plan's marks, which are the best so. ``plain`` is what the marks that
    are best without merging cost without it, and ``plain_merged`` what they cost with it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    cost: Price
    plain: Price
    plain_merged: Price
    pub_everywhere: Price
    sub_everywhere: Price


class MarkingRecord(SectionRecord):
    """Which trees were marked, how descriptors were counted and weighed, and what that costs.

    ``params`` are what was asked for. ``publishers`` and ``subscribers`` are nodes that have
    descriptors, ``published`` and ``subscribed`` count those. ``pub_everywhere`` and
    ``sub_everywhere`` are the costs if all links are p-links, or all s-links. All of these count
    descriptors without merging; ``merged`` has what they cost merged, if that was asked for.
    """

    layer = "marking"
    main = "marks"

    params: MarkingParams
    nodes: Count
    publishers: Count
    subscribers: Count
    published: Count
    subscribed: Count
    links: Count
    p_links: Count
    s_links: Count
    cost: Price
    pub_everywhere: Price
    sub_everywhere: Price
    merged: MergedRecord | None = None

    def tables(self) -> tuple[Table, ...]:
        return MARKING_TABLES


RECORD = MarkingRecord


@dataclass(frozen=True, eq=False)
class MarkingSection:
    """A marking with its origin and its figures; ``marks`` is the table of the plan folder.

    Nothing about it is drawn at random, so that the seed does not matter.
    """

    record: MarkingRecord
    marks: pa.Table
    source: str
    version: str
    seed: int = 0
    layer: Literal["marking"] = "marking"


def write_marking(layer: MarkingSection, folder: Path) -> None:
    """The marks, ordered by the ends of links."""
    write_table(by_key(layer.marks, MARKS), MARKS, folder)
