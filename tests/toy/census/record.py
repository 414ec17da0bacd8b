"""The section of plan.json on the census, and its table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from fanplan.core.tables import Column, Table
from fanplan.plan.numbers import Count
from fanplan.plan.parquet import by_key, write_table
from fanplan.plan.section import SectionRecord
from fanplan.plan.stored import StoredPlan

from .params import CensusParams

CENSUS = Table(
    "census",
    "how many want a topic",
    (
        Column("topic", "string", "the topic as subscriptions name it", required=True),
        Column("subscribers", "integer", "how many want it", required=True),
    ),
    key=("topic",),
)


class CensusRecord(SectionRecord):
    """What was asked for, and how many topics are listed out of how many subscriptions."""

    layer = "census"

    params: CensusParams
    topics: Count
    subscriptions: Count

    def tables(self) -> tuple[Table, ...]:
        return (CENSUS,)


RECORD = CensusRecord


@dataclass(frozen=True, eq=False)
class CensusSection:
    """A census with its origin; nothing about it is drawn at random."""

    record: CensusRecord
    census: pa.Table
    source: str
    version: str
    seed: int = 0
    layer: str = "census"


def write_census(section: CensusSection, folder: Path) -> None:
    write_table(by_key(section.census, CENSUS), CENSUS, folder)


def read_census(plan: StoredPlan) -> dict[str, int]:
    """Subscribers by their topic, as the plan has them."""
    topics, subscribers = plan.read("census", ("topic", "subscribers")).to_pydict().values()
    return dict(zip(topics, subscribers, strict=True))
