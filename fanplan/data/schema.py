"""Described tables for Spark."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from fanplan.core.tables import Table, arrow_schema


def spark_schema(table: Table) -> T.StructType:
    """The table's columns for Spark; all may be null, as in every file that Spark reads."""
    return from_arrow_schema(pa.schema([f.with_nullable(True) for f in arrow_schema(table)]))
