"""Who wants what at a time: each version of the subscriptions compiled by the stages of ingest.

A version is a folder with the stages up to `regions`, as ingest writes them, and a manifest. Beside
it lies the table it was made from, all rows, understood or not: what means nothing today may mean
something when a topic has appeared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fanplan.boxes import matching
from fanplan.core.arrays import Floats, Ints, Longs, starts_of
from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import aside
from fanplan.core.progress import Progress
from fanplan.core.tables import Column, Table, arrow_schema
from fanplan.data.ingest.exact import SelectorData
from fanplan.data.ingest.ingest import (
    checked_interest,
    filters_meaning,
    interest_rows,
    key_of,
    named_topics,
    quarantine,
)
from fanplan.data.ingest.interest import Inputs, grid_stage, region_stages
from fanplan.data.ingest.joins import shared_index
from fanplan.data.ingest.points import with_space
from fanplan.data.ingest.regions import number_topics
from fanplan.data.ingest.run import IngestRun
from fanplan.data.ingest.store import StageStore
from fanplan.data.quarantine import LossRule
from fanplan.data.read.rows import read_rows
from fanplan.data.read.sources import (
    SPLIT_BYTES,
    TableSource,
    files_of,
    find_sources,
    known_names,
    list_files,
    measured_source,
    vet_file,
)
from fanplan.data.reader import read_manifest, read_stage
from fanplan.data.signatures import Hashes, signatures
from fanplan.data.tables import TOPICS
from fanplan.workload.description import Description
from fanplan.workload.tables import ADVERTISEMENTS, SUBSCRIPTIONS

ALL_MAY_BE_LOST = LossRule(1.0, "")

CHANGES = Table(
    "changes",
    "how subscriptions change while a stream runs",
    (
        Column("time", "time", "when it changes", required=True),
        Column("action", "string", "add or remove", required=True),
        *SUBSCRIPTIONS.columns,
    ),
    key=("time", "action", *SUBSCRIPTIONS.key),
)
"""A subscription is removed by its subscriber, topic and filter."""


def workload_table(workload: Path, table: Table) -> TableSource | None:
    """A table of a workload, whatever lies beside it; None if there is none."""
    problems: list[Problem] = []
    there = [workload / name for name in (table.name, *files_of(table))]
    there = [path for path in there if path.exists()]
    if not there:
        return None
    if len(there) > 1:
        what = f"has more than one table {table.name}"
        raise InputError(Problem(str(workload), what, "Keep one of them"))
    known = known_names(table, ())
    files = list_files(there[0], workload, problems)
    vetted = [vet_file(workload, path, table, known, problems) for path in files]
    if problems:
        raise InputError(problems)
    return measured_source(table, vetted, (), SPLIT_BYTES)


def subscriptions_of(workload: Path) -> TableSource:
    """The subscriptions that a watch begins with."""
    found = workload_table(workload, SUBSCRIPTIONS)
    if found is None:
        what = "has no table subscriptions"
        raise InputError(Problem(str(workload), what, "Name the folder of a workload"))
    return found


def first_subscriptions(
    spark: SparkSession, workload: Path, description: Description, out: Path
) -> None:
    """The subscriptions of a workload as one table; rows that cannot be read are left out."""
    rows = read_rows(spark, subscriptions_of(workload), SUBSCRIPTIONS, description).filter(
        "_reason IS NULL"
    )
    found = rows.orderBy("_source", "_line").select(*SUBSCRIPTIONS.names).toArrow()
    write_subscriptions(found, out)


def write_subscriptions(table: pa.Table, out: Path) -> None:
    """As a workload of subscriptions alone, whole or not at all."""
    if not out.exists():
        with aside(out) as folder:
            folder.mkdir(parents=True)
            names = arrow_schema(SUBSCRIPTIONS)
            whole = pa.table([table[n].cast(pa.string()) for n in names.names], names=names.names)
            pq.write_table(whole, folder / "subscriptions.parquet")


def changed_subscriptions(table: pa.Table, changes: Iterable[dict[str, str]]) -> pa.Table:
    """The table after changes in their order; what is there already is not added again."""

    def key(row: dict[str, str]) -> tuple[str, ...]:
        return tuple(row[name] or "" for name in SUBSCRIPTIONS.key)

    rows = {key(row): row for row in table.to_pylist()}
    for change in changes:
        if change["action"] == "remove":
            rows.pop(key(change), None)
        else:
            rows[key(change)] = {name: change[name] for name in SUBSCRIPTIONS.names}
    return pa.Table.from_pylist(list(rows.values()), schema=table.schema)


def compile_interest(
    spark: SparkSession,
    description: Description,
    workload: Path,
    table: Path,
    topics: Sequence[str],
    out: Path,
    progress: Progress,
) -> None:
    """Compile a table of subscriptions for all topics that are known or were seen.

    Who publishes is as the workload says.
    """
    sources = find_sources(table, description.attributes)
    advertised = workload_table(workload, ADVERTISEMENTS)
    if advertised is not None:
        sources[advertised.table] = advertised
    with StageStore(out, progress) as store:
        run = IngestRun(spark, store, description, sources, ALL_MAY_BE_LOST)
        rows = {found.name: frame.persist() for found, frame in interest_rows(run)}
        known = run.stage(
            TOPICS,
            lambda: number_topics(
                [*named_topics(run, {}, rows), seen_topics(run, topics)], store.scratch(TOPICS)
            ),
            list(sources.values()),
            params=[run.reading, key_of(*topics)],
        )
        meaning = filters_meaning(run, rows, known)
        read = {name: checked_interest(run, name, rows[name], meaning) for name in rows}
        inputs = Inputs(read, known, *meaning)
        built = region_stages(run, inputs)
        built["grid"] = grid_stage(run, inputs, built, "exact")
        quarantine(run, read)
        for frame in rows.values():
            frame.unpersist()
        store.finish(
            version_manifest(description, key_of(*(s.key for s in built.values()))), read_manifest
        )


def seen_topics(run: IngestRun, topics: Sequence[str]) -> DataFrame:
    """Topics with their spaces."""
    frame = run.spark.createDataFrame([(name,) for name in topics], "topic string")
    known = with_space(frame, run.description).filter(F.col("space").isNotNull())
    return known.select("topic", "space")


def version_manifest(description: Description, key: str) -> dict[str, object]:
    """What a version says about itself; flows, and with them the rest, come with the traffic."""
    return {
        "format": 1,
        "name": description.name,
        "key": key,
        "seconds": 1.0,
        "observed": None,
        "grid": "exact",
        "exact": True,
        "cover": description.cover,
        "rates": "measured",
        "parameters": {},
        "dimensions": description.dimensions,
        "topic_syntax": description.topic_syntax,
        "attributes": {name: asdict(a) for name, a in description.attributes.items()},
        "spaces": [[a.name for a in space.attributes] for space in description.spaces],
        "tables": {},
        "inputs": key,
    }


class Interest:
    """A compiled version: what topics there are, and who wants a point of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dimensions = read_manifest(path).dimensions
        known = read_stage(path, "topics").sort_by("topic_id")
        self.topics: pa.Array = known["topic"].combine_chunks()
        self.spaces: Ints = known["space"].to_numpy()
        people = read_stage(path, "subscribers").sort_by("subscriber_id")
        self.subscribers: pa.Array = people["subscriber"].combine_chunks()
        self.key = read_manifest(path).key

    @property
    def selectors(self) -> SelectorData:
        folder = self.path.absolute()
        return SelectorData(
            str(folder / "regions"), str(folder / "subscribers"), self.key, self.dimensions
        )

    def numbers(self, topics: pa.Array) -> Longs:
        """The numbers of topics; −1 if a topic is not known."""
        found = pc.index_in(topics, value_set=self.topics.cast(topics.type)).fill_null(-1)
        result: Longs = found.to_numpy(zero_copy_only=False).astype(np.int64)
        return result

    def audiences(self, topic: Longs, x: Floats) -> tuple[Longs, Ints, Hashes]:
        """Who wants each point: (offsets, subscribers), and the signature of each audience."""
        index = shared_index(self.selectors.regions, self.dimensions)
        order, offsets, owners = matching.find_audiences(index, topic, x)
        lists = pa.ListArray.from_arrays(offsets.astype(np.int32), owners)
        back = lists.take(pa.array(np.argsort(order, kind="stable")))
        starts = starts_of(back.value_lengths().to_numpy())
        flat: Ints = back.flatten().to_numpy(zero_copy_only=False).astype(np.int32)
        starts = starts.astype(np.int64)
        return starts, flat, signatures(starts, flat, self.selectors.hashes())
