"""Reading tables: typed rows, each with its place in the input and what is wrong with it.

**Annotated rows** are a table's columns and four more: ``_source`` (file), ``_line`` (line in the
file from 1, header included; row number for Parquet), ``_raw`` (the text, or the values of a
Parquet row: see `raw_text`) and ``_reason`` (null while nothing is wrong). A check is a step that
sets ``_reason`` where none is set, so a row has one reason, the first found. No row is dropped:
kept and quarantined rows are parted when written. A reason is of a *kind*, up to `KIND_ENDS`, by
which rows are counted; what follows is about the row, the value that is wrong for example.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from fanplan.core.errors import InputError
from fanplan.core.tables import Column as TableColumn
from fanplan.core.tables import ColumnType, Table
from fanplan.data.read import formats
from fanplan.data.read.formats import KIND_ENDS, Layout, Physical, attribute_column, physical_type
from fanplan.data.read.plain import Plainly, PlainReader
from fanplan.data.read.sources import SPLIT_BYTES, TableSource, unreadable_file
from fanplan.data.read.splits import Split, SplitError
from fanplan.data.read.times import as_number, as_seconds, zone_in
from fanplan.data.schema import spark_schema
from fanplan.data.sizes import small_table
from fanplan.data.tables import QUARANTINE, publications
from fanplan.workload import tables
from fanplan.workload.description import Description
from fanplan.workload.space import Attribute, NumberAttribute
from fanplan.workload.times import MOST_SECONDS, Clock

ANNOTATIONS = ("_source", "_line", "_raw", "_reason")
PARTED = "ok"
"""The column by which `parted` divides rows."""
REASON_CHARS = 200
SHARES, MOST_SHARE_BYTES = 32, 64 << 20
"""As many tasks read plain rows at least, if there is enough, and none reads more at once."""
INFINITY = float("inf")
COMMAS = rf"^[^:]*: not a [^{KIND_ENDS}]*number[^{KIND_ENDS}]*{KIND_ENDS}: [+-]?[\d.]*,[\d.,]*$"


def read_rows(
    spark: SparkSession,
    source: TableSource,
    table: Table,
    description: Description,
    points: Plainly | None = None,
) -> DataFrame:
    """Annotated rows of a table, checked value by value.

    Where there are many publications, the tasks write those that are plainly right to the folder
    of ``points``, and only the others are here.
    """
    layout = layout_of(source, table, description)
    kept = to_arrow_schema(parted_schema(publications(description.dimensions)))
    plain = points and PlainReader(layout, description, kept, points)
    rows = read_text(spark, source.splits, layout, plain if plain and plain.possible else None)
    if table.name == tables.PUBLICATIONS.name:
        return typed(rows, table, layout, description.clock)
    return checked_keys(typed(rows, table, layout), table)


# ---- from files to text


def layout_of(source: TableSource, table: Table, description: Description) -> Layout:
    """The columns that tasks deliver, in one type each for all files."""
    columns = {
        column.name: (column.type, _physical(source, column.name, column.type))
        for column in table.columns
        if column.type != "map"
    }
    publications = table.name == tables.PUBLICATIONS.name
    attributes = description.attributes if publications else {}
    return Layout(
        columns,
        {name: attribute_type(source, name, kind) for name, kind in attributes.items()},
        description.limits.max_field_chars,
        parquet=any(file.format == "parquet" for file in source.files),
        zone=zone_of_times(source),
    )


def zone_of_times(source: TableSource) -> str | None:
    """The zone of Parquet times; UTC if files differ, since what they hold are seconds in UTC."""
    found = {
        type_.tz
        for file in source.files
        for column, type_ in zip(file.columns, file.types, strict=False)
        if column == "time" and pa.types.is_timestamp(type_) and type_.tz
    }
    return found.pop() if len(found) == 1 else "UTC"


def attribute_type(source: TableSource, name: str, attribute: Attribute) -> Physical:
    """Numbers that come in a column of numbers stay numbers."""
    if any("attributes" in file.columns for file in source.files):
        return "string"
    is_number = isinstance(attribute, NumberAttribute)
    return _physical(source, name, "number" if is_number else "string")


def _physical(source: TableSource, name: str, wanted: ColumnType) -> Physical:
    """The type of a Parquet column if it is the same in all files that have it, else text."""
    found = {
        physical_type(type_, wanted)
        for file in source.files
        for column, type_ in zip(file.columns, file.types, strict=False)
        if column == name
    }
    return found.pop() if len(found) == 1 else "string"


def read_text(
    spark: SparkSession, parts: Sequence[Split], layout: Layout, plain: PlainReader | None = None
) -> DataFrame:
    """Rows as text with their faults. Each task reads its own share of the files."""
    shares = list(packed_splits(parts, share_bytes(parts) if plain else SPLIT_BYTES))
    schema = from_arrow_schema(layout.schema)
    if not shares:
        return small_table(spark, [], schema)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                if plain is None:
                    yield from formats.read_splits(shares[number], layout)
                else:
                    yield from plain.read_share(shares[number], number)

    return spark.range(0, len(shares), 1, len(shares)).mapInArrow(read, schema)


def share_bytes(parts: Sequence[Split]) -> int:
    """Of a task that reads plain rows: the more there is the more, as each task costs the JVM."""
    whole = sum(split.size for split in parts)
    return min(max(SPLIT_BYTES, whole // SHARES), MOST_SHARE_BYTES)


def packed_splits(parts: Sequence[Split], size: int = SPLIT_BYTES) -> Iterator[list[Split]]:
    """Small splits together, in order, so that a task is worth its start."""
    share: list[Split] = []
    for split in parts:
        if share and sum(other.size for other in share) + split.size > size:
            yield share
            share = []
        share.append(split)
    if share:
        yield share


# ---- from text to values


def typed(rows: DataFrame, table: Table, layout: Layout, clock: Clock | None = None) -> DataFrame:
    """The table's columns in their own types, and the first reason found in each row.

    Times have their ``zone`` beside them.

    In two steps: a value that is read in one and used in the other is read only once.
    """
    columns = [column for column in table.columns if column.type != "map"]
    values = [Value(c, layout.columns[c.name][1], clock or Clock()) for c in columns]
    zones = [value.zone(layout.zone).alias("zone") for value in values if value.is_time]
    attributes = [attribute_column(i) for i in range(len(layout.attributes))]
    raw = raw_values(layout) if layout.parquet else F.col("_raw")
    read = rows.select("*", raw.alias("_told"), *(v.read.alias(v.place) for v in values))
    return read.select(
        *(value.kept.alias(value.column.name) for value in values),
        *attributes,
        *zones,
        "_source",
        "_line",
        F.col("_told").alias("_raw"),
        F.coalesce("_fault", *(value.reason for value in values)).alias("_reason"),
    )


def raw_values(layout: Layout) -> Column:
    """A Parquet row as it came. It has no text, and one is made only if it is quarantined."""
    attributes = [F.col(attribute_column(i)).alias(n) for i, n in enumerate(layout.attributes)]
    return F.struct(F.col("_raw").alias("_text"), *layout.columns, *attributes)


def raw_text(rows: DataFrame) -> Column:
    """The text of annotated rows, whatever they came from."""
    raw = F.col("_raw")
    if isinstance(rows.schema["_raw"].dataType, T.StructType):
        return F.coalesce(raw["_text"], F.to_json(raw))
    return raw


@dataclass(frozen=True)
class Value:
    """One column of a table: what it came as, what it becomes, and why it cannot."""

    column: TableColumn
    physical: Physical
    clock: Clock

    @property
    def is_time(self) -> bool:
        return self.column.type == "time"

    @property
    def given(self) -> Column:
        given = F.col(self.column.name)
        return F.nullif(given, F.lit("")) if self.physical == "string" else given

    @property
    def read(self) -> Column:
        if self.is_time:
            return as_seconds(self.given, self.physical, self.clock)
        return READERS[self.column.type](self.given, self.physical)

    def zone(self, parquet: str | None) -> Column:
        """The zone that a time was written in."""
        zone = zone_in(self.given, self.physical, self.clock, parquet)
        return F.when(F.col(self.place).isNotNull(), zone)

    @property
    def place(self) -> str:
        """Where the value is once it is read."""
        return f"_read_{self.column.name}"

    @property
    def kept(self) -> Column:
        """The value, or the default that the table gives for a missing number."""
        if self.column.type not in ("number", "integer") or not self.column.default:
            return F.col(self.place)
        type_ = "double" if self.column.type == "number" else "bigint"
        return F.coalesce(self.place, F.lit(float(self.column.default)).cast(type_))

    @property
    def reason(self) -> Column:
        """Null if the value is as it must be."""
        found = F.lit(None)
        if self.column.type != "string":
            right = F.coalesce(self._in_bounds(), F.lit(False))
            reason = reason_about(f"{self.column.name}: not {self._expected}", self.given)
            found = F.when(self.given.isNotNull() & ~right, self._or_beyond(reason))
        if self.column.required:
            missing = F.lit(f"{self.column.name}: no value")
            found = F.coalesce(F.when(self.given.isNull(), missing), found)
        return found

    def _in_bounds(self) -> Column:
        """Spark's NaN is greater than infinity, so this leaves out both."""
        value = F.col(self.place)
        low = -INFINITY if self.column.at_least is None else self.column.at_least
        above = value > 0.0 if self.column.positive else value >= low
        finite = above & (value < INFINITY) & (value > -INFINITY)
        return reduce(lambda inside, wrong: inside & ~wrong[0], self._beyond(), finite)

    def _beyond(self) -> list[tuple[Column, str]]:
        """What makes a number one that cannot be counted with, each with its reason."""
        value, column = F.col(self.place), self.column
        if self.is_time:
            far = F.abs(value) >= MOST_SECONDS
            hint = 'too large for seconds (for milliseconds: time_unit = "ms")'
            number = as_number(self.given.cast("string"), "string").isNotNull()
            taken_for_seconds = F.lit(self.clock.unit == "s") & number
            return [(far, "more than 1e+11 seconds from 1970"), (far & taken_for_seconds, hint)]
        beyond = []
        if column.at_most is not None:
            large = (value > column.at_most) & (value < INFINITY)
            beyond.append((large, f"more than {column.at_most:g}"))
        if column.nearest_0:
            small = (value > 0.0) & (value < column.nearest_0)
            beyond.append((small, f"less than {column.nearest_0:g}, but not 0"))
        return beyond

    def _or_beyond(self, otherwise: Column) -> Column:
        for wrong, why in self._beyond():
            reason = reason_about(f"{self.column.name}: {why}", self.given)
            otherwise = F.when(wrong, reason).otherwise(otherwise)
        return otherwise

    @property
    def _expected(self) -> str:
        times = "seconds or ISO 8601 (another way to write times: time_format)"
        times = f"a time like {self.clock.format}" if self.clock.format else times
        kinds = {"number": "a finite number", "integer": "a whole number", "time": times}
        kind = kinds[self.column.type]
        if self.column.positive:
            return f"{kind} above 0"
        return kind if self.column.at_least is None else f"{kind} from {self.column.at_least:g}"


def as_text(given: Column, _physical: Physical) -> Column:
    return given


def as_integer(given: Column, physical: Physical) -> Column:
    """A whole number, also one written as ``12.0``, as tables with gaps often are."""
    if physical == "bigint":
        return given
    number = as_number(given, physical)
    whole = F.when(number % 1 == 0, number.try_cast("bigint"))
    return F.coalesce(given.try_cast("bigint"), whole) if physical == "string" else whole


READERS: Mapping[str, Callable[[Column, Physical], Column]] = {
    "string": as_text,
    "number": as_number,
    "integer": as_integer,
}


def reason_about(reason: str, value: Column) -> Column:
    """A reason with the value it is about, last: `parted` may cut it short.

    Kept this small since every check of a job is compiled into one method, and Java runs a method
    of more than 8,000 bytes several times slower.
    """
    return F.concat(F.lit(f"{reason}{KIND_ENDS}: "), value)


# ---- checks


def mark_where(rows: DataFrame, condition: Column, reason: Column | str) -> DataFrame:
    """Set the reason where the condition holds and none is set: the verb of all checks."""
    said = F.lit(reason) if isinstance(reason, str) else reason
    return rows.withColumn("_reason", F.coalesce("_reason", F.when(condition, said)))


def checked_keys(rows: DataFrame, table: Table) -> DataFrame:
    """Checks across a table's columns and rows."""
    if table.name == tables.LINKS.name:
        return mark_where(rows, F.col("a") == F.col("b"), "a link joins a broker to itself")
    if table.name == tables.TREES.name:
        rows = mark_where(rows, F.col("parent") == F.col("child"), "a node is its own parent")
    return mark_duplicates(rows, table.key)


def mark_duplicates(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """Rows with the key of an earlier row; missing values are equal.

    Rows that have a reason already are no duplicates of anything, and are spread evenly.
    """
    apart = F.when(F.col("_reason").isNotNull(), F.xxhash64("_source", "_line"))
    window = Window.partitionBy(*key, apart).orderBy("_source", "_line")
    first = F.first(F.struct("_source", "_line")).over(window)
    found = rows.withColumn("_first", first)
    is_first = F.col("_first") == F.struct("_source", "_line")
    parquet = F.col("_first._source").endswith(".parquet")
    word = F.when(parquet, F.lit(", row ")).otherwise(F.lit(", line "))
    earlier = F.concat(F.col("_first._source"), word, F.col("_first._line"))
    reason = F.concat(F.lit(f"duplicate{KIND_ENDS} of "), earlier)
    return mark_where(found, ~is_first, reason).drop("_first")


def mark_unknown(rows: DataFrame, column: str, known: DataFrame, what: str) -> DataFrame:
    """Rows whose value is not in ``known``, a table of one column of different values.

    A missing value is not unknown. ``what`` names the table, as in "not in brokers".
    """
    listed = known.toDF("_known")
    joined = rows.join(listed, on=rows[column] == listed["_known"], how="left")
    unknown = F.col("_known").isNull() & F.col(column).isNotNull()
    reason = reason_about(f"{column}: not in {what}", F.col(column))
    return mark_where(joined, unknown, reason).drop("_known")


# ---- kept and quarantined


def parted(rows: DataFrame, table: Table) -> DataFrame:
    """Rows to write once, divided by ``ok``: kept ones have values, quarantined ones a story."""
    fine = F.col("_reason").isNull()
    story = F.struct(
        F.col("_source").alias("source"),
        F.col("_line").alias("line"),
        raw_text(rows).alias("raw"),
        F.substring(reason_text(), 1, REASON_CHARS).alias("reason"),
        F.substring(F.substring_index(hinted(), KIND_ENDS, 1), 1, REASON_CHARS).alias("kind"),
    )
    return rows.select(
        *(F.when(fine, F.col(name)).alias(name) for name in table.names),
        F.when(~fine, story).alias("_quarantined"),
        fine.alias(PARTED),
    )


def reason_text() -> Column:
    """The whole reason of annotated rows, as a person reads it."""
    return F.replace(hinted(), F.lit(KIND_ENDS), F.lit(""))


def hinted() -> Column:
    """A number that is refused for its commas gets a hint, here in one place for all columns."""
    reason = F.col("_reason")
    hint = " (write 1234.5: a point for decimals and no other separator)"
    return F.when(
        reason.rlike(COMMAS), F.replace(reason, F.lit(KIND_ENDS), F.lit(hint + KIND_ENDS))
    ).otherwise(reason)


def parted_schema(table: Table) -> T.StructType:
    """The columns of the files that hold parted rows."""
    told = T.StructType(spark_schema(QUARANTINE).fields[1:])
    return spark_schema(table).add("_quarantined", told)


def quarantined(rows: DataFrame, table: str) -> DataFrame:
    """The quarantine of a table, from its stage's quarantined rows."""
    return rows.select(F.lit(table).alias("table"), "_quarantined.*")


def quarantined_files(spark: SparkSession, sources: Iterable[TableSource]) -> DataFrame:
    """Files that hold nothing at all: no rows are lost, but somebody meant to give some."""
    entries = [
        (source.table, name, None, None, "the file is empty", "the file is empty")
        for source in sources
        for name in source.empty
    ]
    return small_table(spark, entries, spark_schema(QUARANTINE))


# ---- files that fail later


def as_input_error(error: BaseException, sources: Iterable[TableSource]) -> InputError | None:
    """The input error behind a failed Spark job, if the failure names one of the files."""
    text = str(error)
    for file in (file for source in sources for file in source.files):
        told = re.search(rf"{SplitError.__name__}: {re.escape(file.name)}: (.*)", text)
        if told or file.path in text:
            return InputError(
                unreadable_file(file.name, OSError(told[1] if told else text.strip()))
            )
    return None
