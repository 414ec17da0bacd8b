"""The section of plan.json on a mesh, and its table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
from pydantic import FiniteFloat

from fanplan.core.tables import Column, Table
from fanplan.layers.mesh.params import MeshParams
from fanplan.plan.numbers import Count
from fanplan.plan.parquet import by_key, write_table
from fanplan.plan.section import SectionRecord

MESH_LINKS = Table(
    "mesh_links",
    "which subscribers are linked",
    (
        Column("a", "string", "a subscriber", required=True),
        Column("b", "string", "another one, after a by name", required=True),
        Column("topics", "integer", "topics, or classes of flows, that both want", required=True),
    ),
    key=("a", "b"),
)


class MeshRecord(SectionRecord):
    """How subscribers were linked.

    ``nodes`` share something with others, and ``topics`` are wanted by several; or classes of flows
    if flows were to be connected. ``separate`` is what trees for each topic alone have in
    links. No mesh has fewer links than ``bound``, or a lower greatest degree than ``degree_bound``.
    """

    layer = "mesh"

    params: MeshParams
    nodes: Count
    topics: Count
    wants: Count
    links: Count
    separate: Count
    degree_mean: FiniteFloat
    degree_max: Count
    bound: Count
    degree_bound: Count

    def tables(self) -> tuple[Table, ...]:
        return (MESH_LINKS,)


RECORD = MeshRecord


@dataclass(frozen=True, eq=False)
class MeshSection:
    """A mesh with its origin."""

    record: MeshRecord
    links: pa.Table
    source: str
    seed: int
    version: str
    layer: Literal["mesh"] = "mesh"


def write_mesh(section: MeshSection, folder: Path) -> None:
    write_table(by_key(section.links, MESH_LINKS), MESH_LINKS, folder)
