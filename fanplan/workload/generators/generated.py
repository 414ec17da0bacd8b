"""What a generator makes: a description, tables, and the law its publications follow."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import WORKLOAD, whole_folder
from fanplan.core.options import Options, option
from fanplan.workload.description import Description, TopicEntry, to_toml
from fanplan.workload.description_schema import GridKind
from fanplan.workload.space import PLAIN, Attribute, CategoryAttribute, Space

TableFormat = Literal["parquet", "csv", "jsonl"]

InterestPairs = tuple[np.ndarray, np.ndarray]
"""Who wants what: positions of subscribers and, beside them, of topics."""

# Rows that are turned into plain strings at a time: bounds the memory of a write.
ROWS_AT_A_TIME = 1 << 20


@dataclass(frozen=True)
class GeneratorParams(Options):
    """What all kinds have in common. A kind adds its own options and relations."""

    rate: float = option(1.0, "mean rate of a topic, messages/s", above=0)
    message_bytes: int = option(200, "mean size of a message, bytes", at_least=1)


@dataclass(frozen=True, eq=False)
class AxisLaw:
    """How the values of one attribute are drawn: by weight per category value, else uniformly."""

    attribute: Attribute
    weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.weights is None:
            return
        name = self.attribute.name
        if not isinstance(self.attribute, CategoryAttribute):
            raise InputError(Problem(name, "a number has no weights", "Leave them out"))
        if self.weights.size != len(self.attribute.values) or not _are_shares(self.weights):
            what = "weights do not fit its values"
            raise InputError(Problem(name, what, "Give a weight of 0 or more for each value"))


@dataclass(frozen=True, eq=False)
class PublicationLaw:
    """How publications are drawn: an advertisement by rate, then each axis on its own.

    ``topics``, ``rates`` (messages/s) and ``publishers`` have an entry per advertisement; sizes are
    geometric with mean ``message_bytes``. All topics share the axes. With ``lo`` and ``hi``,
    advertisements × axes, numbers lie in the advertisement's box, else in the whole domain.
    """

    topics: pa.Array
    rates: np.ndarray
    publishers: pa.Array
    message_bytes: int
    axes: tuple[AxisLaw, ...] = ()
    lo: np.ndarray | None = None
    hi: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not len(self.topics) == len(self.publishers) == self.rates.size > 0:
            what = f"{len(self.topics)} topics, {len(self.publishers)} publishers"
            remedy = "Give a publisher and a rate for each topic"
            raise InputError(Problem("law", f"{what}, {self.rates.size} rates", remedy))
        if not _are_shares(self.rates):
            what = "a rate is negative or not finite, or all are 0"
            raise InputError(Problem("law", what, "Give finite rates of which one is positive"))
        shape = (self.rates.size, len(self.axes))
        if any(ends is not None and ends.shape != shape for ends in (self.lo, self.hi)):
            what = "boxes do not fit advertisements and axes"
            raise InputError(Problem("law", what, "Give an end for each of them"))

    @property
    def total_rate(self) -> float:
        """Messages/s over all topics: N publications last N / total_rate seconds."""
        return float(self.rates.sum())


def _are_shares(weights: np.ndarray) -> bool:
    """Whether numbers can be shares of a whole: finite, none negative, not all zero."""
    return bool((np.isfinite(weights) & (weights >= 0)).all() and weights.sum() > 0)


@dataclass(frozen=True, eq=False)
class Generated:
    """A workload in memory. Names in the tables are dictionary-encoded: 4 bytes per mention."""

    description: Description
    tables: Mapping[str, pa.Table]
    law: PublicationLaw


@dataclass(frozen=True)
class WorkloadKind:
    """One kind of workload: its name, its meaning, its options and how it is made from a seed."""

    name: str
    meaning: str
    params: type[GeneratorParams]
    generate: Callable[[Any, int], Generated]


def describe(
    name: str,
    axes: tuple[Attribute, ...] = (),
    cells: tuple[int, ...] = (),
    grid: GridKind = "exact",
) -> Description:
    """A description in which all topics are plain, or all have the attributes ``axes``."""
    if not axes:
        return Description(name=name, topic_syntax="nats")
    return Description(
        name=name,
        topic_syntax="nats",
        grid=grid,
        attributes={axis.name: axis for axis in axes},
        topics=(TopicEntry(">", 1),),
        spaces=(PLAIN, Space(axes, cells)),
    )


def subscribed(
    description: Description,
    law: PublicationLaw,
    subscribers: pa.Array,
    interest: InterestPairs,
    filters: Sequence[str | None] | None = None,
) -> Generated:
    """The workload of subscriptions to the law's topics, and an advertisement for each topic."""
    columns: dict[str, pa.Array] = {
        "subscriber": _mention(interest[0], subscribers),
        "topic": _mention(interest[1], law.topics),
    }
    if filters is not None:
        columns["filter"] = pa.array(filters, pa.string())
    sent = {"publisher": law.publishers, "topic": law.topics, "rate": pa.array(law.rates)}
    tables = {"subscriptions": pa.table(columns), "advertisements": pa.table(sent)}
    return Generated(description, tables, law)


def _mention(positions: np.ndarray, names: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(positions.astype(np.int32)), names)


def generated_brokers(brokers: pa.Array, capacity: float | np.ndarray) -> pa.Table:
    """Brokers with what each or all of them can do, in messages/s."""
    each = np.broadcast_to(capacity, len(brokers)).astype(np.float64)
    return pa.table({"broker": brokers, "capacity": pa.array(each)})


def generated_links(
    brokers: pa.Array, a: np.ndarray, b: np.ndarray, latency_ms: np.ndarray
) -> pa.Table:
    """Links between positions of brokers."""
    ends = {"a": brokers.take(pa.array(a)), "b": brokers.take(pa.array(b))}
    return pa.table(ends | {"latency_ms": pa.array(latency_ms)})


def write_workload(
    generated: Generated, folder: Path, format: TableFormat = "parquet", replace: bool = False
) -> None:
    """Write ``workload.toml`` and the tables into a folder that appears whole or not at all."""
    with whole_folder(folder, WORKLOAD, replace) as aside:
        write_into(generated, aside, format)


def write_into(generated: Generated, folder: Path, format: TableFormat = "parquet") -> None:
    """Write ``workload.toml`` and the tables, each as one file, into a folder that exists."""
    for name, table in generated.tables.items():
        schema, pieces = _in_pieces(table)
        with _writer(folder / f"{name}.{format}", schema) as write:
            for piece in pieces:
                write(piece)
    (folder / "workload.toml").write_text(to_toml(generated.description), encoding="utf-8")


@contextmanager
def _writer(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.Table], Any]]:
    """What writes a piece of a table into a file, in the format that its name ends with."""
    if path.suffix == ".jsonl":
        with path.open("w", encoding="utf-8") as lines:
            yield lambda piece: lines.writelines(json.dumps(r) + "\n" for r in piece.to_pylist())
    elif path.suffix == ".csv":
        with pa.csv.CSVWriter(path, schema) as writer:
            yield writer.write_table
    else:
        with pa.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
            yield writer.write_table


def _in_pieces(table: pa.Table) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """The table a piece at a time, with names as plain strings."""
    schema = pa.schema(
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    )
    starts = range(0, table.num_rows, ROWS_AT_A_TIME)
    return schema, (table.slice(start, ROWS_AT_A_TIME).cast(schema) for start in starts)
