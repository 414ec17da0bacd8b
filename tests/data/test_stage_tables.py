"""Descriptions of tables: their types for Arrow and Spark, and what they say of every stage."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from importlib.util import find_spec

import pyarrow as pa
import pytest

from fanplan.core.tables import Column, Table, arrow_schema
from fanplan.data.schema import spark_schema
from fanplan.data.tables import STAGES, publications
from fanplan.layers import LAYERS

DERIVED = [
    table
    for layer in LAYERS
    if find_spec(f"fanplan.layers.{layer}.stages")
    for table in getattr(import_module(f"fanplan.layers.{layer}.stages.tables"), "STAGES", ())
]
TYPES = {
    "string": "string",
    "number": "double",
    "integer": "int",
    "long": "bigint",
    "boolean": "boolean",
    "strings": "array<string>",
    "numbers": "array<double>",
    "integers": "array<int>",
    "boxes": "array<struct<lo:array<double>,hi:array<double>>>",
}


def test_types_of_columns() -> None:
    columns = (Column(name, name, "", required=True) for name in TYPES)  # type: ignore[arg-type]
    table = Table("all", "", tuple(columns))
    spark, arrow = spark_schema(table), arrow_schema(table)
    assert {field.name: field.dataType.simpleString() for field in spark} == TYPES
    assert all(field.nullable for field in spark)
    assert not any(field.nullable for field in arrow)
    assert arrow.field("integers").type == pa.list_(pa.int32())


@pytest.mark.parametrize("table", [*STAGES, *DERIVED], ids=lambda table: table.name)
def test_a_stage_is_described(table: Table) -> None:
    assert len(set(table.names)) == len(table.names)
    assert table.meaning
    assert all(column.meaning for column in table.columns)


def test_stages_have_names_of_their_own() -> None:
    counts = Counter(table.name for table in [*STAGES, *DERIVED])
    assert set(counts.values()) == {1}
    assert publications(2).names[-2:] == ["x0", "x1"]
