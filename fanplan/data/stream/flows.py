"""One batch of a stream on Spark: publications to flows, counted by window.

Publications are read, checked and matched as ingest does it. Of each flow and window the driver
gets how much was sent, the signature of the audience, and one point, by which the flow can be
matched again when subscriptions have changed: the least, so that it does not depend on how rows
are divided into batches and tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from fanplan.boxes import matching
from fanplan.core.arrays import Bools, Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.core.tables import Table, arrow_schema
from fanplan.data import tables
from fanplan.data.ingest.exact import Selectors, dense_halves
from fanplan.data.ingest.joins import (
    Batches,
    audience_slices,
    chunk_points,
    chunks_of,
    row_codes,
    shared_index,
)
from fanplan.data.ingest.points import to_points
from fanplan.data.read.rows import mark_where, parted, read_rows
from fanplan.data.read.sources import (
    FORMATS,
    SPLIT_BYTES,
    SourceFile,
    TableSource,
    ending,
    file_label,
    known_names,
    measured_source,
    unreadable_file,
    vet_file,
)
from fanplan.data.reader import read_stage
from fanplan.data.signatures import Hashes, as_words, signatures
from fanplan.data.stream.interest import CHANGES, Interest
from fanplan.workload.description import Description
from fanplan.workload.tables import PUBLICATIONS

SIGN_BYTES = 16
COUNTED = "window long, topic string, sign binary, point array<double>, messages long, bytes long"
NAMES = ("window", "topic", "sign", "point", "messages", "bytes")


@dataclass(frozen=True)
class Lost:
    """Rows of a batch that were set apart, and files that could not be read at all."""

    rows: pa.Table
    files: tuple[Problem, ...]


def sources_of(
    folder: Path, files: Sequence[Path], table: Table, description: Description
) -> tuple[list[TableSource], list[Problem]]:
    """The files of a batch, those of one format together; what cannot be read is told."""
    known = known_names(table, description.attributes)
    good: dict[str, list[SourceFile]] = {}
    problems: list[Problem] = []
    for path in files:
        wrong: list[Problem] = []
        if ending(path) is None:
            what = f"does not end in {', '.join(FORMATS)}"
            wrong.append(Problem(path.name, what, "Rename it, and write it again"))
        else:
            vetted = vet_file(folder, path, table, known, wrong)
            try:
                measured_source(table, [] if wrong else [vetted], (), SPLIT_BYTES)
            except InputError as error:
                wrong += error.problems
            if not wrong and not vetted.empty:
                good.setdefault(vetted.format, []).append(vetted)
        problems += wrong
    return [measured_source(table, group, (), SPLIT_BYTES) for group in good.values()], problems


def read_changes(
    spark: SparkSession, folder: Path, files: Sequence[Path], description: Description
) -> tuple[list[dict[str, str]], Lost]:
    """Changes of subscriptions in the order of their times, and what could not be understood."""
    sources, wrong = sources_of(folder, files, CHANGES, description)
    found, lost = [], []
    for source in sources:
        rows = read_rows(spark, source, CHANGES, description).fillna("", "filter")
        odd = ~F.col("action").isin("add", "remove")
        rows = mark_where(rows, odd, "action: neither add nor remove").persist()
        fine = rows.filter("_reason IS NULL")
        found += fine.select("_source", "_line", *CHANGES.names).toArrow().to_pylist()
        lost.append(set_apart(rows, CHANGES))
        rows.unpersist()
    found.sort(key=lambda row: (row["time"], row["_source"], row["_line"]))
    return found, Lost(together_lost(lost), tuple(wrong))


def set_apart(rows: DataFrame, table: Table) -> pa.Table:
    """The quarantine of a table's annotated rows."""
    apart = parted(rows, table).filter("NOT ok")
    return apart.select(F.lit(table.name).alias("table"), "_quarantined.*").toArrow()


def together_lost(parts: Sequence[pa.Table]) -> pa.Table:
    """Quarantined rows of several reads, in the order of their places."""
    schema = pa.schema([field.with_nullable(True) for field in arrow_schema(tables.QUARANTINE)])
    whole = pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts)])
    return whole.sort_by([("source", "ascending"), ("line", "ascending")])


def count_sound(
    spark: SparkSession,
    folder: Path,
    files: Sequence[Path],
    description: Description,
    interest: Interest,
    window: float,
) -> tuple[pa.Table, Lost]:
    """As `count_flows`; a file that turns out to be damaged in the middle is left out and told."""
    try:
        return count_flows(spark, folder, files, description, interest, window)
    except PySparkException:
        wrong = damaged(folder, files)
        if not wrong:
            raise
    sound = [path for path in files if path not in wrong]
    counted, lost = count_flows(spark, folder, sound, description, interest, window)
    return counted, Lost(lost.rows, (*lost.files, *wrong.values()))


def damaged(folder: Path, files: Sequence[Path]) -> dict[Path, Problem]:
    """Parquet files with rows that cannot be read; other files are read whole before."""
    found = {}
    for path in files:
        if ending(path) == ".parquet":
            try:
                for _ in pq.ParquetFile(path).iter_batches():
                    pass
            except (OSError, pa.ArrowException) as error:
                found[path] = unreadable_file(file_label(path, folder), error)
    return found


def count_flows(
    spark: SparkSession,
    folder: Path,
    files: Sequence[Path],
    description: Description,
    interest: Interest,
    window: float,
) -> tuple[pa.Table, Lost]:
    """Flows of a batch by window (`COUNTED`); topics that are not known yet have no sign."""
    sources, wrong = sources_of(folder, files, PUBLICATIONS, description)
    found, lost = [], []
    for source in sources:
        points = to_points(read_rows(spark, source, PUBLICATIONS, description), description)
        timed = mark_where(points, F.col("time").isNull(), "time: a stream needs one")
        bad = F.count(F.when(F.col("_reason").isNotNull(), 1))
        # What is wrong is counted on the way; only if there is any, files are read again for it.
        seen = Observation()
        good = timed.observe(seen, bad.alias("bad")).filter("_reason IS NULL")
        found.append(by_window(good, interest, window).toArrow())
        if seen.get["bad"]:
            lost.append(set_apart(timed, tables.publications(description.dimensions)))
    empty = spark.createDataFrame([], COUNTED).toArrow() if not found else None
    counted = pa.concat_tables(found) if found else empty
    assert counted is not None
    return counted, Lost(together_lost(lost), tuple(wrong))


def by_window(points: DataFrame, interest: Interest, window: float) -> DataFrame:
    """Points counted by window and flow; a topic without attributes is one flow."""
    number = F.floor(F.col("time") / F.lit(window)).cast("long").alias("window")
    rows = points.select(number, "topic", "bytes", *tables.coordinates(interest.dimensions))
    if not interest.dimensions:
        plain = rows.groupBy("window", "topic").agg(
            F.count(F.lit(1)).alias("messages"), F.sum("bytes").alias("bytes")
        )
        return plain.select(
            "window",
            "topic",
            F.lit(bytes(SIGN_BYTES)).alias("sign"),
            F.array().cast("array<double>").alias("point"),
            "messages",
            "bytes",
        )
    parts = rows.mapInArrow(
        partial(_window_batches, interest.selectors, str(interest.path.absolute())), COUNTED
    )
    keys = ("window", "topic", "sign")
    sums = (F.sum("messages").alias("messages"), F.sum("bytes").alias("bytes"))
    return parts.groupBy(*keys).agg(F.min("point").alias("point"), *sums).select(*NAMES)


def _window_batches(selectors: Selectors, path: str, batches: Batches) -> Batches:
    """The flows of publications by window: matched, where a topic has attributes."""
    known, spaces = _load_topics(path, selectors.key)
    index = shared_index(selectors.regions, selectors.dimensions)
    for chunk in chunks_of(batches):
        number = pc.index_in(chunk["topic"], value_set=known).fill_null(-1)
        at = number.to_numpy().astype(np.int64)
        spaced = (at >= 0) & (spaces[at] > 0)
        rest = chunk.filter(pa.array(~spaced))
        if len(rest):
            nobody = np.zeros((len(rest), 2), np.uint64)
            yield _counted(rest, nobody, selectors.dimensions, at[~spaced] >= 0)
        matched = chunk.append_column("topic_id", pa.array(at)).filter(pa.array(spaced))
        for part in audience_slices(index, iter([matched] if len(matched) else [])):
            numbers, x, _ = chunk_points(part, selectors.dimensions)
            order, offsets, owners = matching.find_audiences(index, numbers, x)
            signature = signatures(offsets, owners, selectors.hashes())
            all_known = np.ones(len(part), np.bool_)
            yield _counted(part.take(pa.array(order)), signature, selectors.dimensions, all_known)


@lru_cache(maxsize=2)
def _load_topics(path: str, _key: str) -> tuple[pa.Array, Ints]:
    """Names of the topics of a version, and their spaces."""
    known = read_stage(Path(path), "topics").sort_by("topic_id")
    return known["topic"].combine_chunks(), known["space"].to_numpy()


def _counted(rows: pa.Table, signature: Hashes, dimensions: int, known: Bools) -> pa.RecordBatch:
    """One row per window, topic and signature; topics that are not known have no signature."""
    topic = rows["topic"].combine_chunks().dictionary_encode()
    windows, place = np.unique(rows["window"].to_numpy(), return_inverse=True)
    codes, first = row_codes(
        [topic.indices.to_numpy().astype(np.int64), place, *dense_halves(signature)]
    )
    x = np.column_stack([rows[name].to_numpy() for name in tables.coordinates(dimensions)])
    least = x[least_points(codes, len(first), x)]
    words = as_words(signature[first]).tobytes()
    size = np.zeros(len(first), np.int64)
    np.add.at(size, codes, rows["bytes"].to_numpy())
    sign = [words[i * SIGN_BYTES : (i + 1) * SIGN_BYTES] for i in range(len(first))]
    ends = np.arange(0, least.size + 1, dimensions, dtype=np.int32)
    return pa.record_batch(
        {
            "window": windows[place[first]],
            "topic": topic.dictionary.take(topic.indices.take(pa.array(first))),
            "sign": pa.array(sign, pa.binary(), mask=~known[first]),
            "point": pa.ListArray.from_arrays(ends, least.ravel()),
            "messages": np.bincount(codes, minlength=len(first)).astype(np.int64),
            "bytes": size,
        }
    )


@compiled
def least_points(group: Longs, groups: int, x: Floats) -> Longs:
    """The row of each group's least point, by its coordinates in turn; NaN is beyond all."""
    least = np.full(groups, -1, np.int64)
    for i in range(len(group)):
        best = least[group[i]]
        if best < 0:
            least[group[i]] = i
            continue
        for axis in range(x.shape[1]):
            a, b = x[i, axis], x[best, axis]
            if a < b or (np.isnan(b) and not np.isnan(a)):
                least[group[i]] = i
                break
            if a > b or (np.isnan(a) and not np.isnan(b)):
                break
    return least
