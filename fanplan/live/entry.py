"""Where a publication enters: which flow of the plan it belongs to, by the exact selectors.

The flow is found as ingest finds it: publications are matched with all regions, and the topic with
the signature of the audience names the flow; on a grid, the topic and the cell. Spark is not
needed, nor is the dataset: `EntryTables` holds all of it, and an export stores them.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.boxes import matching
from fanplan.boxes.matching import BoxIndex
from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.data.reader import Manifest, read_manifest, read_spaces, read_stage
from fanplan.data.signatures import WORDS, Hashes, as_words, name_hashes, signatures
from fanplan.live.points import Topics
from fanplan.workload.space import CategoryAttribute, Space
from fanplan.workload.topics import TopicSyntax

DEFAULT = -1
"""No flow of the plan has this audience: the publication takes the default way."""
NOBODY = -2
"""Nobody wants the publication: it is not sent."""
UNKNOWN = -3
"""Not found yet."""
MOST_REMEMBERED = 1 << 21
"""Cells whose flow is remembered."""

EXPORT_AGAIN = "Write the export again with `fanplan export`"
DAMAGED = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    EOFError,
    RecursionError,
    BadZipFile,
    zlib.error,
)
"""What files of an export raise that were cut or edited."""


@dataclass(frozen=True, eq=False)
class EntryTables:
    """All that flows are found with, as arrays.

    Boxes are rows of ``lo`` and ``hi``, ``box_topic`` and ``box_subscriber`` say whose. A flow is a
    row of ``places``: its topic, how many numbers its cell or signature has, and these;
    ``flow_wanted`` says whether anybody wants it. Flows are numbered as the dataset's stage
    ``flows`` has them. On a grid, ``edges`` has the edges of (``edge_topic``, ``edge_axis``) one
    after the other.
    """

    topics: Topics
    syntax: TopicSyntax
    subscribers: tuple[str, ...]
    matched: bool
    box_topic: Longs
    box_subscriber: Longs
    lo: Floats
    hi: Floats
    places: Longs
    flow_wanted: Longs
    edge_topic: Longs
    edge_axis: Longs
    edge_count: Longs
    edges: Floats

    @cached_property
    def dimensions(self) -> Longs:
        """How many attributes each topic has."""
        return np.array([s.dimensions for s in map(self.topics.space, self._numbers)], np.int64)

    @property
    def _numbers(self) -> range:
        return range(len(self.topics.names))

    @property
    def flows(self) -> int:
        return len(self.places)


ARRAYS = ("box_topic", "box_subscriber", "lo", "hi", "places", "flow_wanted", "edge_topic",
          "edge_axis", "edge_count", "edges")  # fmt: skip


def read_entry(dataset: Path) -> EntryTables:
    """The tables of a dataset, read without Spark."""
    manifest = read_manifest(dataset)
    require_exact_ways(dataset, manifest)
    topics = read_stage(dataset, "topics", ("topic", "topic_id", "space")).sort_by("topic_id")
    people = read_stage(dataset, "subscribers", ("subscriber", "subscriber_id"))
    boxes = read_stage(dataset, "regions", ("topic_id", "subscriber_id", "lo", "hi"))
    flows = read_stage(dataset, "flows", ("topic_id", "cell", "audience_class"))
    grid = read_stage(dataset, "grid", ("topic_id", "axis", "edges"))
    if manifest.matched:
        grid = grid.slice(0, 0)
    spaces = manifest.spaces or (Space(),)
    return EntryTables(
        topics=Topics(
            tuple(topics["topic"].to_pylist()), spaces, tuple(topics["space"].to_pylist())
        ),
        syntax=manifest.topic_syntax,
        subscribers=tuple(people.sort_by("subscriber_id")["subscriber"].to_pylist()),
        matched=manifest.matched,
        box_topic=_longs(boxes["topic_id"]),
        box_subscriber=_longs(boxes["subscriber_id"]),
        lo=_padded(boxes["lo"], manifest.dimensions, 0.0),
        hi=_padded(boxes["hi"], manifest.dimensions, 0.0),
        places=_flow_rows(flows, max(WORDS, manifest.dimensions)),
        flow_wanted=(_longs(flows["audience_class"]) >= 0).astype(np.int64),
        edge_topic=_longs(grid["topic_id"]),
        edge_axis=_longs(grid["axis"]),
        edge_count=_longs(pc.list_value_length(grid["edges"])),
        edges=pc.list_flatten(grid["edges"]).to_numpy().astype(np.float64),
    )


def require_exact_ways(dataset: Path, manifest: Manifest) -> None:
    """A cell that is covered in part leaves out people who want some of it."""
    if manifest.cover == "full" and not manifest.exact:
        what = "its cells leave out subscribers who want a part of them (cover full)"
        remedy = "Ingest without a grid, or with --cover overlap, and plan again"
        raise InputError(Problem(str(dataset), what, remedy))


def _longs(column: pa.ChunkedArray) -> Longs:
    result: Longs = column.to_numpy().astype(np.int64)
    return result


def _padded(lists: pa.ChunkedArray, width: int, beyond: float) -> Floats:
    """Lists as rows of one width."""
    lengths = _longs(pc.list_value_length(lists))
    rows = np.full((len(lists), width), beyond)
    rows[np.arange(width) < lengths[:, None]] = pc.list_flatten(lists).to_numpy()
    return rows


def _flow_rows(flows: pa.Table, width: int) -> Longs:
    """Rows of topic, length and the numbers of the cell or signature, −1 beyond them."""
    cells = flows["cell"]
    numbers = _padded(cells, width, -1).astype(np.int64)
    sizes = _longs(pc.list_value_length(cells))
    return np.ascontiguousarray(np.column_stack([_longs(flows["topic_id"]), sizes, numbers]))


# ---- stored


def save_entry(tables: EntryTables, folder: Path) -> None:
    """Write ``entry.json`` and ``entry.npz``."""
    topics = tables.topics
    told = {
        "topics": topics.names,
        "attributes": {a.name: vars_of(a) for space in topics.spaces for a in space.attributes},
        "spaces": [[a.name for a in space.attributes] for space in topics.spaces],
        "space_of": topics.space_of,
        "topic_syntax": tables.syntax,
        "subscribers": tables.subscribers,
        "matched": tables.matched,
    }
    (folder / "entry.json").write_text(json.dumps(told), encoding="utf-8")
    np.savez(folder / "entry.npz", **{name: getattr(tables, name) for name in ARRAYS})


def vars_of(attribute: Any) -> dict[str, Any]:
    if isinstance(attribute, CategoryAttribute):
        return {"values": attribute.values}
    return {field.name: getattr(attribute, field.name) for field in fields(attribute)}


def load_entry(folder: Path) -> EntryTables:
    """Read what `save_entry` wrote."""
    try:
        told = json.loads((folder / "entry.json").read_text(encoding="utf-8"))
        with np.load(folder / "entry.npz") as stored:
            arrays = {name: stored[name] for name in ARRAYS}
        topics = Topics(tuple(told["topics"]), read_spaces(told), tuple(told["space_of"]))
        syntax, people, matched = (told[k] for k in ("topic_syntax", "subscribers", "matched"))
    except DAMAGED as error:
        raise InputError(
            Problem(str(folder), f"is not an export ({error})", EXPORT_AGAIN)
        ) from error
    return EntryTables(topics, syntax, tuple(people), bool(matched), **arrays)


# ---- flows


class Entry:
    """Finds the flows of publications, in batches or one at a time.

    The ends of a topic's regions cut its space into cells that no region cuts: points of one cell
    are in one flow. So the flow of a cell is found once and remembered.
    """

    def __init__(self, tables: EntryTables) -> None:
        self.tables = tables
        self.topics = tables.topics
        self._hashes: Hashes = name_hashes(tables.subscribers)
        self._index = _index(tables)
        self._slots = hashed(tables.places)
        self._grid = _grid(tables)
        self._cuts = _region_ends(tables)
        self._known = Remembered(tables.lo.shape[1] + 1)

    def audiences(self, topic: Longs, x: Floats) -> tuple[Longs, Ints]:
        """The subscribers that want each publication: (offsets, subscribers)."""
        order, offsets, owners = matching.find_audiences(self._index, topic, x)
        return in_point_order(order, offsets, owners)

    def flows(self, topic: Longs, x: Floats) -> Longs:
        """The flow of each publication, or ``DEFAULT``, or ``NOBODY``.

        ``topic`` has numbers of topics, ``x`` a row of coordinates each, NaN beyond its own.
        """
        uncut = np.zeros((len(topic), x.shape[1] + 1), np.int64)
        uncut[:, 0] = topic
        cells_of(*self._cuts, topic, x, uncut[:, 1:])
        found = self._known.find(uncut)
        new = np.flatnonzero(found == UNKNOWN)
        if len(new):
            found[new] = self.matched_flows(topic[new], x[new])
            self._known.add(uncut[new], found[new])
        return found

    def matched_flows(self, topic: Longs, x: Floats) -> Longs:
        """The same, by matching each with all regions."""
        keys, empty = self.places(topic, x)
        found = lookup(self.tables.places, self._slots, keys)
        known = np.where(self.tables.flow_wanted[np.maximum(found, 0)] > 0, found, NOBODY)
        unknown = np.where(empty, NOBODY, DEFAULT)
        result: Longs = np.where(found >= 0, known, unknown)
        return result

    def places(self, topic: Longs, x: Floats) -> tuple[Longs, Ints]:
        """Rows as ``EntryTables.places`` has them, and whether nobody wants a publication."""
        return self._matched(topic, x) if self.tables.matched else self._cells(topic, x)

    def flow(self, topic: str, x: tuple[float, ...]) -> int:
        """The flow of one publication."""
        numbers, points = self.batch([topic], [x])
        return int(self.flows(numbers, points)[0])

    def batch(self, topics: list[str], points: list[tuple[float, ...]]) -> tuple[Longs, Floats]:
        """Publications as the arrays that `flows` takes."""
        numbers = np.array([self.topics.find(topic) for topic in topics], np.int64)
        return numbers, self.rows(points)

    def rows(self, points: list[tuple[float, ...]]) -> Floats:
        """Coordinates as rows, NaN beyond the attributes that a topic has."""
        return coordinate_rows(points, self.tables.lo.shape[1])

    def audience(self, topic: int, x: Floats) -> tuple[int, ...]:
        """The subscribers that want one publication."""
        _, people = self.audiences(np.array([topic]), x[None, :])
        return tuple(people.tolist())

    def _matched(self, topic: Longs, x: Floats) -> tuple[Longs, Ints]:
        """By signatures."""
        offsets, owners = self.audiences(topic, x)
        signed = as_words(signatures(offsets, owners, self._hashes))
        sizes = np.where(self.tables.dimensions[topic] > 0, WORDS, 0)
        keys = keys_of(topic, sizes, signed, self.tables.places.shape[1])
        return keys, (np.diff(offsets) == 0).astype(np.int32)

    def _cells(self, topic: Longs, x: Floats) -> tuple[Longs, Ints]:
        """By cells; who wants what of an unknown cell is asked of the regions."""
        cells = np.zeros(x.shape, np.int64)
        cells_of(*self._grid, topic, x, cells)
        keys = keys_of(topic, self.tables.dimensions[topic], cells, self.tables.places.shape[1])
        return keys, (np.diff(self.audiences(topic, x)[0]) == 0).astype(np.int32)


def coordinate_rows(points: list[tuple[float, ...]], width: int) -> Floats:
    """Coordinates as rows, NaN beyond the attributes that a topic has."""
    if all(len(point) == width for point in points):
        return np.array(points, np.float64).reshape(len(points), width)
    rows = np.full((len(points), width), np.nan)
    for row, point in zip(rows, points, strict=True):
        row[: len(point)] = point
    return rows


def _index(tables: EntryTables) -> BoxIndex:
    axes = tables.dimensions[tables.box_topic].astype(np.int32)
    owner, rank = tables.box_subscriber, np.arange(len(tables.lo))
    return matching.index_boxes(tables.box_topic, axes, tables.lo, tables.hi, owner, rank)


def _grid(tables: EntryTables) -> tuple[Longs, Longs, Floats]:
    """Where the edges of each topic and axis start, how many they are, and all of them."""
    shape = (len(tables.topics.names), max(tables.lo.shape[1], 1))
    start, count = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    start[tables.edge_topic, tables.edge_axis] = np.cumsum(tables.edge_count) - tables.edge_count
    count[tables.edge_topic, tables.edge_axis] = tables.edge_count
    return start, count, tables.edges


def _region_ends(tables: EntryTables) -> tuple[Longs, Longs, Floats]:
    """The ends of all regions of each topic on each axis, with the edges of a grid."""
    shape = (len(tables.topics.names), max(tables.lo.shape[1], 1))
    start, count = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    parts, size = [np.empty(0)], 0
    for axis in range(tables.lo.shape[1]):
        on = tables.edge_axis == axis
        own = np.repeat(on, tables.edge_count)
        topic = np.concatenate(
            (np.tile(tables.box_topic, 2), np.repeat(tables.edge_topic, tables.edge_count)[own])
        )
        ends = np.concatenate((tables.lo[:, axis], tables.hi[:, axis], tables.edges[own]))
        has = tables.dimensions[topic] > axis
        rows = np.unique(np.column_stack([topic[has], ends[has]]), axis=0)
        number = rows[:, 0].astype(np.int64)
        count[:, axis] = np.bincount(number, minlength=shape[0])
        start[:, axis] = size + np.cumsum(count[:, axis]) - count[:, axis]
        size += len(rows)
        parts.append(rows[:, 1])
    return start, count, np.concatenate(parts)


@compiled
def cells_of(
    start: Longs, count: Longs, edges: Floats, topic: Longs, x: Floats, cells: Longs
) -> None:
    """The cell of each point on each axis of its topic: the last edge that is at or below it."""
    for i in range(len(topic)):
        for axis in range(x.shape[1]):
            first, size = start[topic[i], axis], count[topic[i], axis]
            if size:
                own = edges[first : first + size]
                cells[i, axis] = np.searchsorted(own, x[i, axis], side="right") - 1


@compiled
def in_point_order(order: Longs, offsets: Longs, values: Ints) -> tuple[Longs, Ints]:
    """Compressed rows of points in the order of the points."""
    starts = np.zeros(len(order) + 1, np.int64)
    for i in range(len(order)):
        starts[order[i] + 1] = offsets[i + 1] - offsets[i]
    for i in range(len(order)):
        starts[i + 1] += starts[i]
    result = np.empty(len(values), np.int32)
    for i in range(len(order)):
        at = starts[order[i]]
        for k in range(offsets[i], offsets[i + 1]):
            result[at + k - offsets[i]] = values[k]
    return starts, result


@compiled
def keys_of(topic: Longs, sizes: Longs, numbers: Ints | Longs, width: int) -> Longs:
    """Rows as ``EntryTables.places`` has them."""
    keys = np.full((len(topic), width), -1, np.int64)
    for i in range(len(topic)):
        keys[i, 0], keys[i, 1] = topic[i], sizes[i]
        for k in range(sizes[i]):
            keys[i, 2 + k] = numbers[i, k]
    return keys


# ---- rows that are found by all their numbers


@compiled
def row_hash(rows: Longs, i: int) -> int:
    """Some bits of a row."""
    h = np.uint64(0x9E3779B97F4A7C15)
    for k in range(rows.shape[1]):
        h = (h ^ np.uint64(rows[i, k])) * np.uint64(0xFF51AFD7ED558CCD)
        h ^= h >> np.uint64(32)
    return int(h >> np.uint64(1))


@compiled
def same_row(a: Longs, i: int, b: Longs, j: int) -> bool:
    k = 0
    while k < a.shape[1] and a[i, k] == b[j, k]:
        k += 1
    return bool(k == a.shape[1])


@compiled
def hashed(rows: Longs) -> Longs:
    """A table of at least twice as many slots as rows: where each row is found, −1 if none is."""
    size = 16
    while size < 2 * len(rows):
        size *= 2
    slots = np.full(size, -1, np.int64)
    for i in range(len(rows)):
        slots[slot_of(rows, slots, rows, i)] = i
    return slots


@compiled
def slot_of(rows: Longs, slots: Longs, keys: Longs, i: int) -> int:
    """The slot of the row that is equal to a key, or the free one where it would be."""
    at = row_hash(keys, i) & (len(slots) - 1)
    while slots[at] >= 0 and not same_row(rows, slots[at], keys, i):
        at = (at + 1) & (len(slots) - 1)
    return at


@compiled
def lookup(rows: Longs, slots: Longs, keys: Longs) -> Longs:
    """The row that is equal to each key, −1 where none is."""
    result = np.empty(len(keys), np.int64)
    for i in range(len(keys)):
        result[i] = slots[slot_of(rows, slots, keys, i)]
    return result


class Remembered:
    """Rows with a number each; a table that grows up to a limit, after which it learns no more.

    A slot has a row and, last, its number: to look one up reads one place in memory.
    """

    def __init__(self, width: int) -> None:
        self._slots = free_slots(1 << 11, width)
        self._size = 0

    def find(self, keys: Longs) -> Longs:
        """What was remembered for each, or ``UNKNOWN``."""
        return remembered(self._slots, keys)

    def add(self, keys: Longs, values: Longs) -> None:
        need = self._size + len(keys)
        if need > MOST_REMEMBERED:
            return
        if 2 * need > len(self._slots):
            old = self._slots[self._slots[:, -1] != UNKNOWN]
            size = 1 << (4 * need - 1).bit_length()
            self._slots = free_slots(size, keys.shape[1])
            remember(self._slots, old[:, :-1], old[:, -1])
        self._size += remember(self._slots, keys, values)


def free_slots(count: int, width: int) -> Longs:
    return np.full((count, width + 1), UNKNOWN, np.int64)


@compiled
def remembered(slots: Longs, keys: Longs) -> Longs:
    result = np.empty(len(keys), np.int64)
    for i in range(len(keys)):
        result[i] = slots[find_slot(slots, keys, i), -1]
    return result


@compiled
def remember(slots: Longs, keys: Longs, values: Longs) -> int:
    """Add keys that are not there yet; how many these were."""
    added = 0
    for i in range(len(keys)):
        at = find_slot(slots, keys, i)
        if slots[at, -1] == UNKNOWN:
            slots[at, :-1], slots[at, -1] = keys[i], values[i]
            added += 1
    return added


@compiled
def find_slot(slots: Longs, keys: Longs, i: int) -> int:
    """The slot that has a key, or the free one where it would be."""
    at = row_hash(keys, i) & (len(slots) - 1)
    while slots[at, -1] != UNKNOWN and not same_row(keys, i, slots, at):
        at = (at + 1) & (len(slots) - 1)
    return at


# ---- what one subscriber asked for


class Selectors:
    """The exact selectors of one subscriber, for what it receives."""

    def __init__(self, tables: EntryTables, subscriber: str) -> None:
        if subscriber not in tables.subscribers:
            remedy = "Name one of the plan's subscribers"
            raise InputError(Problem(f"subscriber {subscriber!r}", "is not in the plan", remedy))
        self._boxes: dict[str, list[tuple[tuple[float, float], ...]]] = {}
        own = np.flatnonzero(tables.box_subscriber == tables.subscribers.index(subscriber))
        for box in own:
            topic = int(tables.box_topic[box])
            axes = int(tables.dimensions[topic])
            ends = zip(tables.lo[box, :axes].tolist(), tables.hi[box, :axes].tolist(), strict=True)
            self._boxes.setdefault(tables.topics.names[topic], []).append(tuple(ends))

    def wants(self, topic: str, x: tuple[float, ...]) -> bool:
        """Whether any of its subscriptions holds for a publication."""
        return any(
            len(box) == len(x) and all(lo <= at < hi for (lo, hi), at in zip(box, x, strict=True))
            for box in self._boxes.get(topic, ())
        )
