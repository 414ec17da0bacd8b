"""One batch of a stream on Spark: publications to flows, counted by window.

Publications are read, checked and matched as ingest does it. Of each flow and window the driver
gets how much was sent, the signature of the audience, and one point, by which the flow can be
matched again when subscriptions have changed: the least, so that it does not depend on how rows
are divided into batches and tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from fanplan.boxes import matching
from fanplan.core.arrays import NONE, Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import remove
from fanplan.core.kernels import compiled
from fanplan.core.tables import Table, arrow_schema
from fanplan.data import tables
from fanplan.data.ingest.exact import SelectorData, dense, dense_halves
from fanplan.data.ingest.joins import (
    Batches,
    audience_slices,
    chunk_points,
    chunks_of,
    row_codes,
    shared_index,
)
from fanplan.data.ingest.points import to_points
from fanplan.data.read.plain import Plainly
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
from fanplan.data.signatures import Hashes, signatures
from fanplan.data.stream.interest import CHANGES, Interest
from fanplan.workload.description import Description
from fanplan.workload.tables import PUBLICATIONS

KEYS = "window long, topic string, high long, low long"
"""A flow in a window: the halves of its signature, of which a topic that is not known has none."""
SUMS = "messages long, bytes long"


@dataclass(frozen=True)
class SentBatch:
    """The publications of a batch: files below ``folder``, and a folder to work in."""

    folder: Path
    files: Sequence[Path]
    work: Path


@dataclass(frozen=True)
class Lost:
    """Rows of a batch that were set apart, and files that could not be read at all."""

    rows: pa.Table
    files: tuple[Problem, ...]


def batch_sources(
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
    """Changes of subscriptions in the order of their times, and what could not be understood.

    One that is damaged in the middle is an error: without it all that follows would be wrong.
    """
    try:
        return _read_changes(spark, folder, files, description)
    except PySparkException as error:
        wrong = damaged(folder, files)
        if not wrong:
            raise
        raise InputError(wrong.values()) from error


def _read_changes(
    spark: SparkSession, folder: Path, files: Sequence[Path], description: Description
) -> tuple[list[dict[str, str]], Lost]:
    sources, wrong = batch_sources(folder, files, CHANGES, description)
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
    batch: SentBatch,
    description: Description,
    interest: Interest,
    window: float,
) -> tuple[Iterator[pa.Table], Lost]:
    """As `count_flows`; a file that turns out to be damaged in the middle is left out and told."""
    try:
        return count_flows(spark, batch, description, interest, window)
    except PySparkException:
        wrong = damaged(batch.folder, batch.files)
        if not wrong:
            raise
    sound = replace(batch, files=[path for path in batch.files if path not in wrong])
    counted, lost = count_flows(spark, sound, description, interest, window)
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
    batch: SentBatch,
    description: Description,
    interest: Interest,
    window: float,
) -> tuple[Iterator[pa.Table], Lost]:
    """Flows of a batch by window (see `counted`), a table after the other; a flow may come again.

    Rows that are plainly right are counted by the tasks that read them, and what these found is in
    files, from which it comes without a way through the JVM.
    """
    sources, wrong = batch_sources(batch.folder, batch.files, PUBLICATIONS, description)
    remove(batch.work)
    found, lost = [], []
    for number, source in enumerate(sources):
        folder = batch.work.absolute() / str(number)  # A remote server works elsewhere.
        folder.mkdir(parents=True)
        counting = Plainly(folder, partial(counted_points, interest.selectors, window), timed=True)
        rows = read_rows(spark, source, PUBLICATIONS, description, counting)
        timed = mark_where(
            to_points(rows, description), F.col("time").isNull(), "time: a stream needs one"
        )
        bad = F.count(F.when(F.col("_reason").isNotNull(), 1))
        # What is wrong is counted on the way; only if there is any, files are read again for it.
        seen = Observation()
        good = timed.observe(seen, bad.alias("bad")).filter("_reason IS NULL")
        found.append(by_window(good, interest, window).toArrow())
        if seen.get["bad"]:
            lost.append(set_apart(timed, tables.publications(description.dimensions)))
    files = sorted(batch.work.glob("*/*.parquet"))
    return chain(found, map(pq.read_table, files)), Lost(together_lost(lost), tuple(wrong))


def by_window(points: DataFrame, interest: Interest, window: float) -> DataFrame:
    """Points counted by window and flow."""
    axes = tables.coordinates(interest.dimensions)
    count = partial(_counted_batches, interest.selectors, window)
    schema = ", ".join((KEYS, *(f"{axis} double" for axis in axes), SUMS))
    parts = points.select("time", "topic", "bytes", *axes).mapInArrow(count, schema)
    names = [*("window", "topic", "high", "low"), *axes, *("messages", "bytes")]
    # A structure is never without a field.
    least = F.min(F.struct(F.lit(0), *axes)).alias("least")
    sums = (F.sum("messages").alias("messages"), F.sum("bytes").alias("bytes"))
    found = parts.groupBy(*names[:4]).agg(least, *sums)
    return found.select([f"least.{name}" if name in axes else name for name in names])


def _counted_batches(selectors: SelectorData, window: float, batches: Batches) -> Batches:
    for chunk in chunks_of(batches):
        yield from counted_points(selectors, window, chunk).to_batches()


def counted_points(selectors: SelectorData, window: float, points: pa.Table) -> pa.Table:
    """The flows of publications by window: matched, where a topic has attributes."""
    known, spaces = _load_topics(selectors)
    topic = points["topic"].combine_chunks()
    topic = topic if pa.types.is_dictionary(topic.type) else topic.dictionary_encode()
    number = pc.index_in(topic.dictionary.cast(pa.string()), value_set=known).fill_null(NONE)
    code = topic.indices.to_numpy()
    at = number.to_numpy().astype(np.int64)[code]
    sign = np.zeros((len(points), 2), np.uint64)
    spaced = np.flatnonzero((at >= 0) & (spaces[at] > 0))
    x = np.empty((len(points), selectors.dimensions))
    for axis, name in enumerate(tables.coordinates(selectors.dimensions)):
        x[:, axis] = points[name].to_numpy()
    if len(spaced):
        sign[spaced] = found_signatures(selectors, at[spaced], x[spaced])
    windows = np.floor(points["time"].to_numpy() / window).astype(np.int64)
    codes, first = row_codes([code.astype(np.int64), dense(windows), *dense_halves(sign)])
    size = np.zeros(len(first), np.int64)
    np.add.at(size, codes, points["bytes"].to_numpy())
    high, low = sign[first].view(np.int64).T
    least = x[least_points(codes, len(first), x)]
    columns = {
        "window": windows[first],
        "topic": topic.take(pa.array(first)),
        "high": pa.array(high, mask=at[first] < 0),
        "low": low,
    }
    columns |= {name: least[:, axis] for axis, name in enumerate(tables.coordinates(x.shape[1]))}
    messages = np.bincount(codes, minlength=len(first)).astype(np.int64)
    return pa.table(columns | {"messages": messages, "bytes": size})


def found_signatures(selectors: SelectorData, topic: Longs, x: Floats) -> Hashes:
    """The signature of each point's audience; matched some at a time, for memory's sake."""
    index, done = shared_index(selectors.regions, selectors.dimensions), 0
    sign = np.empty((len(topic), 2), np.uint64)
    axes = tables.coordinates(selectors.dimensions)
    rows = pa.table({"topic_id": topic} | {name: x[:, i] for i, name in enumerate(axes)})
    for part in audience_slices(index, iter([rows])):
        numbers, places, _ = chunk_points(part, selectors.dimensions)
        order, offsets, owners = matching.find_audiences(index, numbers, places)
        sign[done + order] = signatures(offsets, owners, selectors.hashes())
        done += len(part)
    return sign


@lru_cache(maxsize=2)
def _load_topics(selectors: SelectorData) -> tuple[pa.Array, Ints]:
    """Names of the topics of a version, and their spaces."""
    known = read_stage(Path(selectors.regions).parent, "topics").sort_by("topic_id")
    return known["topic"].combine_chunks().cast(pa.string()), known["space"].to_numpy()


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
