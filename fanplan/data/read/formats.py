"""Formats: how a task turns splits of CSV, JSON lines and Parquet into Arrow batches of one layout.

What is wrong with the shape of a row (its encoding, quotes, number of fields, JSON) is its *fault*
and is found here; what the values mean is checked later, in Spark (`reading`). No Spark in here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from fanplan.core.errors import shorten
from fanplan.core.tables import ColumnType
from fanplan.data.read.splits import (
    UNREADABLE,
    ChangedError,
    LongLineError,
    Split,
    SplitError,
    blocks,
    line_ends,
    new_digest,
    require_unchanged,
)

Physical = Literal["string", "double", "bigint", "instant", "local"]
"""How a column is delivered: as text or numbers; Parquet times as seconds, in UTC or in no zone."""

BATCH_ROWS = 1 << 16
BUFFER_BYTES = 1 << 20
PART_BYTES = 32 << 20
"""Of text that rows of Parquet are unpacked to at once."""
# RFC 4180: a field has no quote at all, or begins and ends with one and doubles those inside.
RFC_4180 = r'^(?:[^",]*|"(?:[^"]|"")*")(?:,(?:[^",]*|"(?:[^"]|"")*"))*$'
NOT_CLOSED = r'^(?:(?:[^",]*|"(?:[^"]|"")*"),)*"(?:[^"]|"")*$'
ARROW_TYPES = {
    "string": pa.string(),
    "double": pa.float64(),
    "bigint": pa.int64(),
    "instant": pa.float64(),
    "local": pa.float64(),
}
TEXT_KINDS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)
KIND_ENDS = "\x1f"
"""Ends the kind of a reason, by which rows are counted; what is particular to the row follows."""
# Numbers stay as they were written, so that a reason can show them.
JSON = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)


@dataclass(frozen=True)
class Layout:
    """What tasks deliver: a table's columns with their types, and attribute values.

    ``zone`` is that of times in Parquet files.
    """

    columns: Mapping[str, tuple[ColumnType, Physical]]
    attributes: Mapping[str, Physical]
    max_field_chars: int
    parquet: bool = False
    zone: str | None = None

    @property
    def schema(self) -> pa.Schema:
        fields = [("_source", pa.string()), ("_line", pa.int64())]
        fields += [("_raw", pa.string()), ("_fault", pa.string())]
        fields += [(name, ARROW_TYPES[type_]) for name, (_, type_) in self.columns.items()]
        types = self.attributes.values()
        fields += [(attribute_column(i), ARROW_TYPES[type_]) for i, type_ in enumerate(types)]
        return pa.schema(fields)


def attribute_column(position: int) -> str:
    """Where the value of the description's n-th attribute is, as it came."""
    return f"_attribute{position}"


@dataclass
class Rows:
    """Rows of one block: text and place of each, values by name, faults by position."""

    line: np.ndarray
    raw: pa.Array
    faults: dict[int, str]
    values: dict[str, pa.Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.line)

    def fault(self, wrong: pa.Array | np.ndarray, reason: Callable[[int], str]) -> None:
        """Note a reason where ``wrong`` is true and nothing is noted yet."""
        for i in np.flatnonzero(np.asarray(wrong)):
            if int(i) not in self.faults:
                self.faults[int(i)] = reason(int(i))

    def chosen(self, places: np.ndarray) -> Rows:
        """Some of the rows."""
        faults = {n: self.faults[i] for n, i in enumerate(places.tolist()) if i in self.faults}
        values = {name: unpacked(column.take(places)) for name, column in self.values.items()}
        return Rows(self.line[places], self.raw.take(places), faults, values)

    @property
    def good(self) -> np.ndarray:
        good = np.ones(len(self), dtype=bool)
        good[list(self.faults)] = False
        return good


def read_splits(splits: Iterable[Split], layout: Layout) -> Iterator[pa.RecordBatch]:
    """All rows of some splits; a file that cannot be read is named."""
    for split in splits:
        with naming_split(split):
            yield from read_split(split, layout)


@contextmanager
def naming_split(split: Split) -> Iterator[None]:
    """What goes wrong with a split names its file."""
    try:
        yield
    except LongLineError as error:
        raise SplitError(f"{split.name}: {ChangedError()}") from error
    except (*UNREADABLE, ChangedError) as error:
        raise SplitError(f"{split.name}: {error}") from error


def read_split(split: Split, layout: Layout) -> Iterator[pa.RecordBatch]:
    """All rows of a split, in order, a few MB at a time."""
    read = {"csv": csv_rows, "json": json_rows, "parquet": parquet_rows}[split.format]
    for rows in read(split, layout):
        yield finished_rows(rows, split, layout)


def finished_rows(rows: Rows, split: Split, layout: Layout) -> pa.RecordBatch:
    """Rows whose values are read, as a task delivers them."""
    take_attributes(rows, layout)
    limit_lengths(rows, layout)
    keep_text(rows)
    return to_batch(rows, split, layout)


def to_batch(rows: Rows, split: Split, layout: Layout) -> pa.RecordBatch:
    """The rows as the layout says; a row with a fault has no values."""
    good = pa.array(rows.good)
    schema = layout.schema
    columns = {
        "_source": pa.repeat(pa.scalar(split.name), len(rows)),
        "_line": pa.array(rows.line),
        "_raw": rows.raw,
        "_fault": pa.array(map(rows.faults.get, range(len(rows))), pa.string()),
    }
    for name in schema.names[4:]:
        type_ = schema.field(name).type
        value = rows.values.get(name)
        columns[name] = (
            pa.nulls(len(rows), type_)
            if value is None
            else pc.if_else(good, value, pa.scalar(None, type_))
        )
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


# ---- text


def text_rows(split: Split) -> Iterator[Rows]:
    """The lines that are not blank, without their line ends, as text."""
    first, digest = split.first_line, new_digest()
    for block in blocks(split):
        digest.update(block)
        ends = line_ends(block)
        yield line_rows(block, ends, np.arange(first, first + len(ends)))
        first += len(ends)
    if split.digest and digest.digest() != split.digest:
        raise ChangedError


def line_rows(block: bytes, ends: np.ndarray, numbers: np.ndarray) -> Rows:
    """Lines with their numbers, the blank ones left out."""
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
    lines = pa.Array.from_buffers(pa.string(), len(ends), buffers)
    lines = pc.ascii_rtrim(lines, characters="\r\n")
    filled = pc.not_equal(pc.binary_length(lines), 0)
    rows = Rows(numbers[np.asarray(filled)], lines.filter(filled), {})
    rows.raw = readable_texts(rows.raw, rows)
    rows.fault(pc.match_substring(rows.raw, "\0"), lambda i: "the line has a null character")
    return rows


def readable_texts(texts: pa.Array, rows: Rows) -> pa.Array:
    """Text that is UTF-8; what is not becomes a fault, and readable as Latin-1."""
    try:
        texts.validate(full=True)
        return texts
    except pa.ArrowInvalid:
        values = texts.cast(pa.binary()).to_pylist()
    for i, value in enumerate(values):
        try:
            values[i] = value if value is None else value.decode()
        except UnicodeDecodeError as error:
            values[i] = value.decode("latin-1")
            fault = f"not UTF-8{KIND_ENDS}: byte {error.start + 1} of the text is wrong"
            rows.faults.setdefault(i, fault)
    return pa.array(values, pa.string())


# ---- CSV


def csv_rows(split: Split, layout: Layout) -> Iterator[Rows]:
    """Lines of comma-separated values; one record a line."""
    for rows in text_rows(split):
        csv_values(rows, split, layout)
        yield rows


def csv_values(rows: Rows, split: Split, layout: Layout) -> None:
    """The fields of lines, or their faults."""
    find_csv_faults(rows, len(split.columns))
    good = rows.good
    place = pa.array(np.cumsum(good) - 1, mask=~good)
    for name, values in parse_csv(rows.raw.filter(pa.array(good)), split, layout).items():
        rows.values[name] = values.take(place)


def find_csv_faults(rows: Rows, fields: int) -> None:
    """Rows that are not ``fields`` fields by RFC 4180. Afterwards the parser cannot fail."""
    rows.fault(pc.match_substring(rows.raw, "\r"), lambda i: "a carriage return inside the line")
    outside = rows.raw
    if pc.any(pc.match_substring(rows.raw, '"')).as_py():
        spanning = "broken quote: it is closed in another line or never (write a row in one line)"
        rows.fault(pc.match_substring_regex(rows.raw, NOT_CLOSED), lambda i: spanning)
        broken = pc.invert(pc.match_substring_regex(rows.raw, RFC_4180))
        rows.fault(broken, lambda i: "broken quote: a field is not closed, or has text beside it")
        outside = pc.replace_substring_regex(rows.raw, '"[^"]*"', "")
    found = np.asarray(pc.count_substring(outside, ",")) + 1
    rows.fault(
        found != fields,
        lambda i: f"{found[i]} fields, but the header has {fields} (quote a value with a comma)",
    )


def parse_csv(lines: pa.Array, split: Split, layout: Layout) -> dict[str, pa.Array]:
    """The wanted columns of well-formed lines, as text."""
    wanted = wanted_columns(split.columns, layout)
    if not len(lines):
        return {name: pa.nulls(0, pa.string()) for name in wanted}
    one = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    data = pc.binary_join(one, "\n")[0].as_buffer()
    table = pa.csv.read_csv(
        pa.BufferReader(data),
        pa.csv.ReadOptions(
            column_names=list(split.columns), block_size=data.size + 1, use_threads=False
        ),
        pa.csv.ParseOptions(ignore_empty_lines=False),
        pa.csv.ConvertOptions(
            include_columns=wanted,
            column_types=dict.fromkeys(wanted, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    return {name: table[name].combine_chunks() for name in wanted}


def wanted_columns(present: Sequence[str], layout: Layout) -> list[str]:
    names = wanted_names(layout)
    return [name for name in present if name in names]


def wanted_names(layout: Layout) -> list[str]:
    """Everything that a layout is made from."""
    whole = ["attributes"] if layout.attributes else []
    return list(dict.fromkeys([*layout.columns, *layout.attributes, *whole]))


# ---- JSON lines


def json_rows(split: Split, layout: Layout) -> Iterator[Rows]:
    """Lines of one JSON object each."""
    for rows in text_rows(split):
        json_values(rows, split, layout)
        yield rows


def json_values(rows: Rows, _split: Split, layout: Layout) -> None:
    """The values of lines, or their faults."""
    names = wanted_names(layout)
    records = [json_object(text, i, rows) for i, text in enumerate(rows.raw.to_pylist())]
    records = [in_lower_case(record, names, i, rows) for i, record in enumerate(records)]
    for name in names:
        values = [json_text(record.get(name.lower())) for record in records]
        rows.values[name] = pa.array(values, pa.string())


def in_lower_case(
    record: dict[str, Any], names: Iterable[str], position: int, rows: Rows
) -> dict[str, Any]:
    """The object with its keys in lower case; a fault if two that are wanted become one."""
    lower = {key.lower(): value for key, value in record.items()}
    if len(lower) == len(record):
        return lower
    for name in names:
        alike = sorted(key for key in record if key.lower() == name.lower())
        if len(alike) > 1:
            told = ", ".join(map(repr, alike))
            fault = f"keys that differ only in capitals{KIND_ENDS}: {told}"
            rows.faults.setdefault(position, fault)
    return lower


def json_object(text: str, position: int, rows: Rows) -> dict[str, Any]:
    """The object in a line; empty, with a fault, if there is none."""
    if position in rows.faults:
        return {}
    try:
        record = JSON.decode(text)
        if "\\u" in text:
            json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        rows.faults[position] = "half of a surrogate pair is no character"
        return {}
    except (ValueError, RecursionError) as error:
        rows.faults[position] = f"broken JSON{KIND_ENDS}: {shorten(str(error), 80)}"
        return {}
    if not isinstance(record, dict):
        rows.faults[position] = "not a JSON object: one {…} a line is expected"
        return {}
    return record


def json_text(value: Any) -> str | None:
    """A value as text: strings and numbers as they are, the rest as JSON."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


# ---- Parquet


def parquet_rows(split: Split, layout: Layout, packed: bool = False) -> Iterator[Rows]:
    """Rows of the row groups ``start`` to ``stop``, in batches; texts may stay ``packed``."""
    require_unchanged(split)
    wanted = wanted_columns(split.columns, layout)
    schema = pq.read_schema(split.path)
    written = dict(zip(split.columns, schema.names, strict=True))
    columns = [written[name] for name in wanted]
    texts = [name for name in columns if is_packable(schema.field(name).type)]
    file = pq.ParquetFile(split.path, read_dictionary=texts, buffer_size=BUFFER_BYTES)
    nested = any(pa.types.is_nested(schema.field(name).type) for name in columns)
    size = BATCH_ROWS >> 4 if nested else BATCH_ROWS
    first = split.first_line
    groups = list(range(split.start, split.stop))
    for batch in file.iter_batches(size, row_groups=groups, columns=columns):
        for part in unpacked_parts(batch):
            count = part.num_rows
            rows = Rows(np.arange(first, first + count), pa.nulls(count, pa.string()), {})
            for name in wanted:
                values = without_long(part.column(written[name]), name, rows, layout)
                kept = packed and target(name, layout) == "string" and is_short_list(values)
                physical = values if kept else to_physical(values, target(name, layout), rows)
                rows.values[name] = physical
            first += count
            yield rows
    require_unchanged(split)


def is_packable(type_: pa.DataType) -> bool:
    """Texts of any length, which Arrow can leave packed."""
    return is_text(type_) and not pa.types.is_fixed_size_binary(type_)


def is_packed(values: pa.Array) -> bool:
    type_ = values.type
    return pa.types.is_dictionary(type_) and is_packable(type_.value_type)


def is_short_list(values: pa.Array) -> bool:
    """Whether texts are packed, right, and no more of them than rows."""
    if not is_packed(values) or values.type.value_type != pa.string():
        return False
    texts = values.dictionary
    if len(texts) > len(values) or texts.null_count:
        return False
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def unpacked(values: pa.Array) -> pa.Array:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def unpacked_parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Slices of a batch whose texts take little memory: one packed value may stand in every row."""
    most = sum(longest_text(values.dictionary) for values in filter(is_packed, batch.columns))
    if most * batch.num_rows < PART_BYTES:
        yield batch
        return
    sizes = np.zeros(batch.num_rows, np.int64)
    for values in filter(is_packed, batch.columns):
        lengths = pc.binary_length(values.dictionary).take(values.indices)
        sizes += np.minimum(np.asarray(pc.fill_null(lengths, 0)), PART_BYTES)
    part = np.cumsum(sizes) // PART_BYTES
    starts = np.flatnonzero(np.diff(part, prepend=-1))
    for start, stop in zip(starts, [*starts[1:], batch.num_rows], strict=True):
        yield batch.slice(start, stop - start)


def longest_text(texts: pa.Array) -> int:
    return pc.max(pc.binary_length(texts)).as_py() or 0


def without_long(values: pa.Array, name: str, rows: Rows, layout: Layout) -> pa.Array:
    """Values without those that are too long by far, before they are unpacked; each is a fault."""
    if not is_packed(values):
        return values
    most = layout.max_field_chars
    # A character is at most four bytes.
    long = np.asarray(pc.fill_null(pc.binary_length(values.dictionary), 0)) > 4 * most
    if not long.any():
        return values
    sizes = pc.binary_length(values.dictionary).take(values.indices)
    kind = f"{name}: more than {most} characters{KIND_ENDS}"
    rows.fault(
        pc.fill_null(pc.greater(sizes, 4 * most), False), lambda i: f"{kind}: {sizes[i]} bytes"
    )
    kept = pc.if_else(pa.array(long), pa.scalar(None, values.dictionary.type), values.dictionary)
    return pa.DictionaryArray.from_arrays(values.indices, kept)


def target(name: str, layout: Layout) -> Physical:
    """The type that a column is delivered in; the map of attributes comes as text first."""
    if name in layout.columns:
        return layout.columns[name][1]
    return layout.attributes.get(name, "string")


def physical_type(type_: pa.DataType, wanted: ColumnType) -> Physical:
    """The type that a Parquet column is delivered in: numbers stay numbers, the rest is text."""
    whole = pa.types.is_integer(type_) and type_ != pa.uint64()
    if wanted == "integer" and whole:
        return "bigint"
    if wanted in ("number", "time") and (whole or pa.types.is_floating(type_)):
        return "double"
    if wanted == "time" and pa.types.is_timestamp(type_):
        return "local" if type_.tz is None else "instant"
    return "string"


def to_physical(values: pa.Array, physical: Physical, rows: Rows) -> pa.Array:
    values = unpacked(values)
    if physical == "string":
        return to_text(values, rows)
    if pa.types.is_timestamp(values.type):
        return to_seconds(values)
    return pc.cast(values, ARROW_TYPES[physical], safe=False)


def to_seconds(times: pa.Array) -> pa.Array:
    """Seconds since 1970. Whole seconds apart: a double cannot hold so many nanoseconds."""
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[times.type.unit]
    ticks = times.cast(pa.int64())
    whole = pc.divide(ticks, per_second)
    rest = pc.subtract(ticks, pc.multiply(whole, per_second))
    return pc.add(pc.cast(whole, pa.float64()), pc.divide(pc.cast(rest, pa.float64()), per_second))


def to_text(values: pa.Array, rows: Rows) -> pa.Array:
    """Values of any Parquet type as text: nested ones as JSON."""
    type_ = values.type
    if is_text(type_):
        return readable_texts(pc.cast(values, pa.binary()).view(pa.string()), rows)
    if pa.types.is_nested(type_):
        return pa.array(map(nested_text, values.to_pylist(maps_as_pydicts="lossy")), pa.string())
    return pc.cast(values, pa.string())


def is_text(type_: pa.DataType) -> bool:
    return any(is_kind(type_) for is_kind in TEXT_KINDS)


def nested_text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, default=str)


def keep_text(rows: Rows) -> None:
    """A Parquet row with a fault is shown as JSON, made here since its values go no further."""
    if rows.raw.null_count and rows.faults:
        raw: list[str | None] = [None] * len(rows)
        for i in rows.faults:
            values = {name: column[i].as_py() for name, column in rows.values.items()}
            raw[i] = nested_text(values)
        rows.raw = pa.array(raw, pa.string())


# ---- attributes and limits


def take_attributes(rows: Rows, layout: Layout) -> None:
    """Each attribute's value, from the column of its name or from the map ``attributes``."""
    maps = attribute_maps(rows, layout.attributes) if layout.attributes else None
    for i, (name, physical) in enumerate(layout.attributes.items()):
        values = None if name in layout.columns else rows.values.get(name)
        if maps is not None:
            values = merged_values(name, values, maps, rows)
        if values is not None:
            rows.values[attribute_column(i)] = pc.cast(values, ARROW_TYPES[physical])


def attribute_maps(rows: Rows, names: Iterable[str]) -> list[dict[str, Any]] | None:
    """The objects in column ``attributes``, keys in lower case; None if no row has one."""
    texts = rows.values.get("attributes")
    if texts is None or texts.null_count == len(texts):
        return None
    maps = [attribute_map(text, i, rows) for i, text in enumerate(texts.to_pylist())]
    return [in_lower_case(found, names, i, rows) for i, found in enumerate(maps)]


def attribute_map(text: str | None, position: int, rows: Rows) -> dict[str, Any]:
    try:
        found = JSON.decode(text) if text else {}
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found
    fault = f"attributes: no JSON object{KIND_ENDS}: {shorten(text or '', 80)}"
    rows.faults.setdefault(position, fault)
    return {}


def merged_values(
    name: str, column: pa.Array | None, maps: list[dict[str, Any]], rows: Rows
) -> pa.Array:
    """The value that is there; two that differ are a fault, since neither can be believed."""
    inner = pa.array([json_text(found.get(name.lower())) for found in maps], pa.string())
    if column is None:
        return inner
    column = pc.cast(column, pa.string())
    differ = pc.fill_null(pc.not_equal(column, inner), False)
    kind = f"{name}: one value as a column, another in attributes{KIND_ENDS}"
    rows.fault(differ, lambda i: f"{kind}: {column[i]}, {inner[i]}")
    return pc.coalesce(column, inner)


def limit_lengths(rows: Rows, layout: Layout) -> None:
    """A text that is too long is a fault: no value of ours is megabytes long."""
    for name in layout.schema.names[4:]:
        values = rows.values.get(name)
        if values is None or not pa.types.is_string(values.type):
            continue
        length = pc.fill_null(pc.binary_length(values), 0)
        if (pc.max(length).as_py() or 0) > layout.max_field_chars:
            chars = np.asarray(pc.fill_null(pc.utf8_length(values), 0))
            note_lengths(rows, name, chars, layout)


def note_lengths(rows: Rows, name: str, chars: np.ndarray, layout: Layout) -> None:
    shown = list(layout.attributes)
    label = next((a for i, a in enumerate(shown) if attribute_column(i) == name), name)
    most = layout.max_field_chars
    kind = f"{label}: more than {most} characters{KIND_ENDS}"
    rows.fault(chars > most, lambda i: f"{kind}: {chars[i]}")
