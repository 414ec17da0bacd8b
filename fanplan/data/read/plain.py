"""Publications that are plainly right: read, checked and made points in the task that reads them.

Other rows go the long way through `formats` and Spark, where what is wrong with them is said. Most
rows are plain, and the long way takes several times as long: it copies them to the JVM, into rows,
and from rows into Parquet.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fanplan.core.arrays import Bools, Floats, Ints, Longs
from fanplan.data.read import formats, scan
from fanplan.data.read.formats import Layout, Rows
from fanplan.data.read.splits import ChangedError, Split, blocks, line_ends, new_digest
from fanplan.workload.description import Description
from fanplan.workload.space import Attribute, CategoryAttribute
from fanplan.workload.tables import PUBLICATIONS
from fanplan.workload.times import MOST_SECONDS, PER_SECOND
from fanplan.workload.topics import TopicSyntax, problem_with_topic

LINES = 1 << 17
"""Lines that are scanned at once, at most: a block may hold nothing but line ends."""
GROUP_BYTES = 32 << 20
"""Of points that become a row group."""
UNDECLARED = -1
COLUMNS = {"time": scan.TIME, "publisher": scan.TEXT, "topic": scan.TEXT, "bytes": scan.WHOLE}
PHYSICAL: Mapping[str, tuple[str, ...]] = {
    "time": ("double", "instant", "local"),
    "bytes": ("bigint",),
}
"""Types of Parquet columns that need no reader of texts."""


@dataclass(frozen=True)
class Values:
    """One column of rows: numbers with what they are (see `scan`), or codes of different texts."""

    status: np.ndarray
    number: Floats
    codes: Ints
    texts: pa.Array


def as_they_are(points: pa.Table) -> pa.Table:
    return points


@dataclass(frozen=True)
class Plainly:
    """Where points of plain rows go, what is ``made`` of them there, and whether all have a time.

    A file is named by its share: a task that is done again replaces it by an equal one.
    """

    folder: Path
    made: Callable[[pa.Table], pa.Table] = as_they_are
    timed: bool = False


@dataclass
class PlainReader:
    """Reads shares of a table of publications, each in a task, and writes their points."""

    layout: Layout
    description: Description
    schema: pa.Schema
    """Of files of kept rows: the points, and last the story of a row that is not kept."""
    out: Plainly
    spaces: dict[str, int] = field(default_factory=dict)

    @property
    def possible(self) -> bool:
        """Whether any row can be plain."""
        attributes, columns = self.description.attributes, self.layout.columns
        names = {name.lower() for name in self.kinds}
        apart = len(names) == len(self.kinds) and not attributes.keys() & columns.keys()
        return apart and self.description.clock.format is None

    def _typed(self, split: Split) -> bool:
        """Whether numbers of a Parquet file are numbers."""
        types = {name: physical for name, (_, physical) in self.layout.columns.items()}
        wanted = {**dict.fromkeys(self.layout.attributes, ("double",)), **PHYSICAL}
        types |= self.layout.attributes
        return all(
            types[name] in wanted[name]
            for name, kind in self.kinds.items()
            if name in split.columns and kind not in (scan.TEXT, scan.NOTHING)
        )

    @property
    def _zone(self) -> str | None:
        return self.description.clock.zone

    @cached_property
    def kinds(self) -> Mapping[str, int]:
        """The columns that points are made from, and the kind of each: the slots of a scan."""
        kinds = dict(COLUMNS)
        for name, attribute in self.description.attributes.items():
            category = isinstance(attribute, CategoryAttribute)
            kinds[name] = scan.TEXT if category else scan.NUMBER
        return kinds | ({"attributes": scan.NOTHING} if self.description.attributes else {})

    def read_share(self, splits: Iterable[Split], number: int) -> Iterator[pa.RecordBatch]:
        """Write the points of plain rows; the others, as `formats` gives them."""
        path = self.out.folder / f"plain-{number:05d}.parquet"
        with PointFile(path, self.out.made) as file:
            for split in splits:
                with formats.naming_split(split):
                    yield from self._read_split(split, file)

    def _read_split(self, split: Split, file: PointFile) -> Iterator[pa.RecordBatch]:
        if split.format == "parquet" and not self._typed(split):
            yield from formats.read_split(split, self.layout)
            return
        read = self._parquet if split.format == "parquet" else self._text
        for rows in read(split, file):
            yield formats.finished_rows(rows, split, self.layout)

    # ---- text

    def _text(self, split: Split, file: PointFile) -> Iterator[Rows]:
        first, digest = split.first_line, new_digest()
        for block in blocks(split):
            digest.update(block)
            ends = line_ends(block)
            begins = np.concatenate(([0], ends[:-1]))
            ascii_only = not is_utf8(block)
            for at in range(0, len(ends), LINES):
                lines = begins[at : at + LINES], ends[at : at + LINES]
                found = self._scanned(block, *lines, split, ascii_only)
                others = np.flatnonzero(~found.blank & ~self._written(block, found, file))
                if len(others):
                    yield self._others(block, *lines, others, first + at, split)
            first += len(ends)
        if split.digest and digest.digest() != split.digest:
            raise ChangedError

    def _scanned(
        self, block: bytes, begins: Longs, ends: Longs, split: Split, ascii_only: bool
    ) -> scan.Scanned:
        data = np.frombuffer(block, np.uint8)
        kinds = np.array(list(self.kinds.values()), np.int32)
        if split.format == "json":
            return scan.scan_json(data, begins, ends, scan_keys(self.kinds), kinds, ascii_only)
        places = {name: slot for slot, name in enumerate(self.kinds)}
        fields = np.array([places.get(name, -1) for name in split.columns], np.int32)
        return scan.scan_csv(data, begins, ends, fields, kinds, ascii_only)

    def _written(self, block: bytes, found: scan.Scanned, file: PointFile) -> Bools:
        """Write the points of lines that are plain and right; says which these are."""
        data = np.frombuffer(block, np.uint8)
        plain = found.plain & (found.length <= self.layout.max_field_chars).all(axis=0)
        found.length[:, np.flatnonzero(~plain)] = 0
        values = {
            name: slot_values(data, found, slot, kind)
            for slot, (name, kind) in enumerate(self.kinds.items())
        }
        return self._add_points(values, plain, file)

    def _others(
        self, block: bytes, begins: Longs, ends: Longs, chosen: Longs, first: int, split: Split
    ) -> Rows:
        """Lines that are not plain."""
        text = b"".join(block[begins[i] : ends[i]] for i in chosen)
        rows = formats.line_rows(text, np.cumsum((ends - begins)[chosen]), chosen + first)
        read = formats.json_values if split.format == "json" else formats.csv_values
        read(rows, split, self.layout)
        return rows

    # ---- Parquet

    def _parquet(self, split: Split, file: PointFile) -> Iterator[Rows]:
        for rows in formats.parquet_rows(split, self.layout, packed=True):
            values = {
                name: column_values(self._given(rows, name), self._status(name))
                for name in self.kinds
            }
            others = ~self._add_points(values, rows.good, file)
            if others.any():
                yield rows.chosen(np.flatnonzero(others))

    def _given(self, rows: Rows, name: str) -> pa.Array:
        """A column; texts as codes."""
        values = rows.values.get(name)
        if values is None:
            return pa.nulls(len(rows), pa.float64())
        return values.dictionary_encode() if pa.types.is_string(values.type) else values

    def _status(self, name: str) -> int:
        types = {"instant": scan.ZONED, "local": scan.LOCAL}
        physical = self.layout.columns[name][1] if name in self.layout.columns else "double"
        return types.get(physical, scan.FINE)

    # ---- points

    def _add_points(self, values: Mapping[str, Values], plain: Bools, file: PointFile) -> Bools:
        """Write the points of ``plain`` rows that are right; says which these are."""
        space = self._spaces(values["topic"])
        fine: Bools = plain & (space != UNDECLARED) & self._right_time(values["time"])
        fine &= right_size(values) & self._short(values.values())
        if "attributes" in values:
            fine &= is_missing(values["attributes"])
        axes = [np.full(len(space), np.nan) for _ in range(self.description.dimensions)]
        for name, attribute in self.description.attributes.items():
            place, right = on_axis(values[name], attribute)
            for number, own in enumerate(self.description.spaces):
                axis = own.axis(name)
                if axis is not None:
                    needed = space == number
                    fine &= ~needed | right
                    np.copyto(axes[axis], place, where=needed)
        file.write(self._table(values, axes, fine))
        return fine

    def _short(self, values: Iterable[Values]) -> Bools:
        """Whether no text of a row is too long; in bytes, which are no fewer than characters."""
        fine: Bools = np.True_  # type: ignore[assignment]
        for column in values:
            sizes = np.asarray(pc.binary_length(column.texts))
            if len(sizes) and sizes.max() > self.layout.max_field_chars:
                fine = fine & np.append(sizes <= self.layout.max_field_chars, True)[column.codes]
        return fine

    def _right_time(self, time: Values) -> Bools:
        result: Bools = np.abs(self._seconds(time)) < MOST_SECONDS
        if self._zone:
            result &= time.status != scan.LOCAL
        return result & (time.status != scan.MISSING) if self.out.timed else result

    def _seconds(self, time: Values) -> Floats:
        unit = PER_SECOND[self.description.clock.unit]
        return np.where(time.status == scan.FINE, time.number / unit, time.number)

    def _table(self, values: Mapping[str, Values], axes: list[Floats], fine: Bools) -> pa.Table:
        time, size = values["time"], values["bytes"]
        status = time.status[fine]
        zone = self.layout.zone if self.layout.parquet else "Z"
        zones = pa.array([self.description.clock.zone_name, zone], pa.string())
        said = pa.array((status == scan.ZONED).astype(np.int32), mask=status < scan.ZONED)
        columns = [
            pa.array(self._seconds(time)[fine], mask=status == scan.MISSING),
            pa.DictionaryArray.from_arrays(said, zones),
            coded(values["publisher"], fine),
            coded(values["topic"], fine),
            pa.array(size.number[fine].astype(np.int64)),
            *(pa.array(axis[fine]) for axis in axes),
            pa.nulls(len(status), self.schema.types[-1]),
        ]
        return pa.table(columns, names=self.schema.names)

    def _spaces(self, topic: Values) -> Ints:
        """The space of each row's topic; UNDECLARED if it has none, or is none."""
        for text in topic.texts.to_pylist():
            if text not in self.spaces:
                self.spaces[text] = self._space(text)
        known = [self.spaces[text] for text in topic.texts.to_pylist()]
        return np.array([*known, UNDECLARED], np.int32)[topic.codes]

    def _space(self, topic: str) -> int:
        if not is_name(topic, self.description.topic_syntax):
            return UNDECLARED
        space = self.description.space_of(topic)
        return UNDECLARED if space is None else space


class PointFile:
    """A Parquet file of points, whole or not at all; without points there is none."""

    def __init__(self, path: Path, made: Callable[[pa.Table], pa.Table] = as_they_are) -> None:
        self.path, self.made = path, made
        self.written = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        self.waiting: list[pa.Table] = []
        self.writer: pq.ParquetWriter | None = None

    def __enter__(self) -> PointFile:
        return self

    def write(self, points: pa.Table) -> None:
        """Add points: they are written together with others, as a row group."""
        if points.num_rows:
            self.waiting.append(points)
            if sum(table.nbytes for table in self.waiting) > GROUP_BYTES:
                self._flush()

    def _flush(self) -> None:
        if not self.waiting:
            return
        points = self.made(pa.concat_tables(self.waiting).unify_dictionaries())
        if self.writer is None:
            self.writer = pq.ParquetWriter(self.written, points.schema, **how_written(points))
        self.writer.write_table(points, row_group_size=points.num_rows)
        self.waiting = []

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._flush()
        if self.writer is not None:
            self.writer.close()
            if kind is None:
                self.written.replace(self.path)
        self.written.unlink(missing_ok=True)


def how_written(points: pa.Table) -> dict[str, Any]:
    """Few texts and sizes differ. What texts are the least and most nobody asks, and it is slow."""
    texts = [f.name for f in points.schema if pa.types.is_dictionary(f.type)]
    numbers = [f.name for f in points.schema if pa.types.is_primitive(f.type)]
    few = [*texts, *(name for name in numbers if name == "bytes")]
    return {"use_dictionary": few, "write_statistics": numbers, "store_schema": False}


# ---- columns


def scan_keys(names: Iterable[str]) -> scan.Keys:
    texts = [name.lower().encode() for name in names]
    starts = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    return scan.Keys(np.frombuffer(b"".join(texts), np.uint8), starts)


def slot_values(data: np.ndarray, found: scan.Scanned, slot: int, kind: int) -> Values:
    """What a scan found of a column."""
    start, length = found.start[slot], found.length[slot]
    status, number = found.status[slot], found.number[slot]
    if kind == scan.TEXT:
        codes, firsts = scan.encode_texts(data, start, length)
        return Values(status[:0], number[:0], codes, texts_at(data, start[firsts], length[firsts]))
    hard = np.flatnonzero((status == scan.HARD) & (length > 0))
    if len(hard):
        written = texts_at(data, start[hard], length[hard])
        number[hard] = pc.cast(written, pa.float64()).to_numpy(zero_copy_only=False)
        status[hard] = scan.FINE
    return Values(status, number, np.empty(0, np.int32), pa.array([], pa.string()))


def texts_at(data: np.ndarray, start: Ints, length: Ints) -> pa.Array:
    offsets, content = scan.gather(data, start, length)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.string(), len(start), buffers)


def column_values(values: pa.Array, status: int) -> Values:
    """A column of a Parquet file."""
    if pa.types.is_dictionary(values.type):
        nothing = np.append(np.asarray(pc.equal(values.dictionary, "")), True)
        codes = np.asarray(pc.fill_null(values.indices, -1))
        codes = np.where(nothing[codes], -1, codes) if nothing[:-1].any() else codes
        return Values(np.empty(0, np.int8), np.empty(0), codes, values.dictionary)
    known = np.asarray(values.is_valid())
    number = np.asarray(pc.fill_null(pc.cast(values, pa.float64(), safe=False), 0.0))
    found = np.where(known, np.int8(status), np.int8(scan.MISSING))
    codes = np.full(len(values), -1, np.int32)
    return Values(found, number, codes, pa.array([], pa.string()))


def coded(values: Values, fine: Bools) -> pa.Array:
    codes = values.codes[fine]
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), values.texts)


def is_missing(values: Values) -> Bools:
    return values.codes < 0 if len(values.codes) else values.status == scan.MISSING


def right_size(values: Mapping[str, Values]) -> Bools:
    size, most = values["bytes"], PUBLICATIONS.column("bytes").at_most
    return (size.number >= 0) & (size.number <= (np.inf if most is None else most))


def on_axis(values: Values, attribute: Attribute) -> tuple[Floats, Bools]:
    """Where values are on their axis, and whether they are on it. Minus zero becomes zero."""
    if isinstance(attribute, CategoryAttribute):
        known = [attribute.positions.get(text, -1) for text in values.texts.to_pylist()]
        place = np.array([*known, -1], np.float64)[values.codes]
        return place, place >= 0
    number = values.number
    inside = (number >= attribute.min) & (number <= attribute.max)
    return number + 0.0, inside & (values.status == scan.FINE)


def is_name(topic: str, syntax: TopicSyntax) -> bool:
    """Whether something can be published to it, beyond doubt."""
    controls = any(sign < " " for sign in topic)
    return not controls and problem_with_topic(topic, syntax) is None


def is_utf8(block: bytes) -> bool:
    if block.isascii():
        return True
    offsets = np.array([0, len(block)], np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
    try:
        pa.Array.from_buffers(pa.string(), 1, buffers).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
