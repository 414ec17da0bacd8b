"""Independent pieces of work as Spark tasks: one task per item, results in the items' order.

Restarts of a planner, islands of a genetic algorithm and samples of an experiment run this way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from queue import Empty, Queue
from threading import Thread
from typing import Any

import numba
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from fanplan.core.errors import StageError

Batches = Iterator[pa.RecordBatch]
Work = Callable[[dict[str, Any]], dict[str, Any]]

PAYLOAD = "payload"
"""A result may have bytes under this key; all else in items and results is JSON."""

WAVES = 4
"""Waves under way at once: while one waits for its slowest task, the next fill the cores."""

GLANCE = 0.3
"""Seconds between two calls of ``meanwhile``."""

COLUMNS = pa.schema(
    [
        ("position", pa.int64()),
        ("result", pa.string()),
        (PAYLOAD, pa.binary()),
        ("failure", pa.string()),
    ]
)
SCHEMA = from_arrow_schema(COLUMNS)


def run_tasks(
    spark: SparkSession,
    work: Work,
    items: Sequence[Mapping[str, Any]],
    finished: Callable[[int], None] = lambda done: None,
    meanwhile: Callable[[], None] = lambda: None,
) -> list[dict[str, Any]]:
    """What ``work`` makes of each item, one Spark task per item, in the order of the items.

    ``work`` is a function of a Fanplan module; a task has one thread for compiled loops. Items
    start in their order, so the longest should come first. ``finished`` is told how many are done,
    and ``meanwhile`` is called now and then until all are.
    An item that fails ends the run, as Ctrl-C does: no further task starts, and the end of the
    session or of the process ends those under way.
    """
    size = task_slots(spark)
    waves = Queue[range]()
    for start in range(0, len(items), size):
        waves.put(range(start, min(start + size, len(items))))
    done = Queue[pa.Table | BaseException]()
    # Daemons: nobody waits for them when the process ends.
    for _ in range(min(WAVES, waves.qsize())):
        Thread(target=run_waves, args=(spark, work, items, waves, done), daemon=True).start()
    results: dict[int, dict[str, Any]] = {}
    try:
        while len(results) < len(items):
            meanwhile()
            with suppress(Empty):
                results.update(read_results(done.get(timeout=GLANCE), items))
                finished(len(results))
    finally:
        drain(waves)
    return [results[i] for i in range(len(items))]


def run_waves(
    spark: SparkSession,
    work: Work,
    items: Sequence[Mapping[str, Any]],
    waves: Queue[range],
    done: Queue[pa.Table | BaseException],
) -> None:
    """Run waves until none is left; an error takes the place of a result."""
    with suppress(Empty):
        while True:
            wave = waves.get_nowait()
            try:
                done.put(run_wave(spark, work, wave, [items[i] for i in wave]))
            # Whatever it is must get to the caller, who waits for every wave.
            except BaseException as error:
                done.put(error)


def drain(waves: Queue[range]) -> None:
    """Leave nothing to run."""
    with suppress(Empty):
        while True:
            waves.get_nowait()


def task_slots(spark: SparkSession) -> int:
    """How many tasks run at once, as Spark's default number of partitions tells it."""
    # Asked with a job: over Spark Connect there is no SparkContext to tell.
    parts = spark.range(1 << 16).select(F.spark_partition_id().alias("part"))
    return parts.distinct().count()


def run_wave(
    spark: SparkSession, work: Work, wave: range, items: list[Mapping[str, Any]]
) -> pa.Table:
    """One Spark job for a few items, each in a partition of its own."""
    numbers = spark.range(wave.start, wave.stop, 1, len(wave))
    texts = [json.dumps(item) for item in items]
    return numbers.mapInArrow(worked(work, texts, wave.start), SCHEMA).toArrow()


def worked(work: Work, texts: list[str], first: int) -> Callable[[Batches], Batches]:
    """A batch function that turns the numbers of items into their results."""

    def step(batches: Batches) -> Batches:
        numba.set_num_threads(1)
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            rows = [work_on(work, texts[number - first], number) for number in numbers]
            yield pa.RecordBatch.from_pylist(rows, COLUMNS)

    return step


def work_on(work: Work, text: str, position: int) -> dict[str, Any]:
    """The row of one item. A failure is a row too: Spark would try in vain three times more."""
    try:
        result = work(json.loads(text))
        payload = result.pop(PAYLOAD, None)
        return {"position": position, "result": json.dumps(result), PAYLOAD: payload}
    except Exception as error:
        return {"position": position, "failure": f"{type(error).__name__}: {error}"}


def read_results(
    table: pa.Table | BaseException, items: Sequence[Mapping[str, Any]]
) -> dict[int, dict[str, Any]]:
    """The results of a wave by the positions of their items."""
    if isinstance(table, BaseException):
        raise table
    results = {}
    for row in table.to_pylist():
        position = row["position"]
        if row["failure"] is not None:
            raise StageError(f"item {position}, {dict(items[position])}: {row['failure']}")
        payload = {} if row[PAYLOAD] is None else {PAYLOAD: row[PAYLOAD]}
        results[position] = json.loads(row["result"]) | payload
    return results
