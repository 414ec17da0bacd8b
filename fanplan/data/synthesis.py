"""Publications drawn from a law: any number of rows, the same for a seed on any cluster.

A row is a function of the seed and its own number. So tasks share no state, a task that is run
again writes the same rows, and the number of partitions does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

from fanplan.core.bits import mix
from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import WORKLOAD, whole_folder
from fanplan.core.kernels import compiled
from fanplan.workload.generators.generated import AxisLaw, PublicationLaw, TableFormat
from fanplan.workload.space import CategoryAttribute

Batches = Iterator[pa.RecordBatch]

# Rows of one task and one file: small enough to run again, large enough to be worth a start.
ROWS_PER_TASK = 1_000_000

# What each draw of a row is for; the draws of the axes follow.
TOPIC, TIME, BYTES, AXES = range(4)


@dataclass(frozen=True)
class Sample:
    """How many rows, over how many seconds, from which seed."""

    rows: int
    seconds: float
    seed: int

    def __post_init__(self) -> None:
        problems = []
        if self.rows < 0:
            problems.append(Problem("publications", f"{self.rows} rows", "Give 0 or more"))
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            what = f"{self.seconds} is not a length of time"
            problems.append(Problem("seconds", what, "Give a positive number of seconds"))
        if problems:
            raise InputError(problems)


def write_publications(
    spark: SparkSession,
    law: PublicationLaw,
    rows: int,
    seconds: float,
    seed: int,
    out: Path,
    format: TableFormat = "parquet",
) -> None:
    """Write ``rows`` publications, ordered by time, into a folder: whole or not at all.

    Memory per task does not depend on ``rows``. Executors must see the folder.
    """
    sample = Sample(rows, seconds, seed)
    with whole_folder(out.absolute(), WORKLOAD) as aside:
        # Spark has no broadcast behind a Connect server: tasks read the law from a hidden file.
        shared = aside / "_law.parquet"
        write_law(law, shared)
        publications = draw_publications(spark, str(shared), law, sample)
        _write(publications, aside, format)
        _tidy(aside)


def draw_publications(
    spark: SparkSession,
    shared: str,
    law: PublicationLaw,
    sample: Sample,
    partitions: int | None = None,
) -> DataFrame:
    """The publications as a DataFrame; ``shared`` is the law's file, which tasks read."""
    tasks = partitions or max(1, -(-sample.rows // ROWS_PER_TASK))
    numbers = spark.range(0, sample.rows, 1, tasks)
    step = partial(drawn_batches, shared, law.message_bytes, law.axes, sample)
    return numbers.mapInArrow(step, schema(law.axes))


def schema(axes: tuple[AxisLaw, ...]) -> str:
    """Columns of the table: a category is written as its value, a number as itself."""
    attributes = [
        f"`{axis.attribute.name}` "
        + ("string" if isinstance(axis.attribute, CategoryAttribute) else "double")
        for axis in axes
    ]
    return ", ".join(["time double", "publisher string", "topic string", "bytes long", *attributes])


def write_law(law: PublicationLaw, path: Path) -> None:
    """Topics, their publishers, the cumulative share of their rates, and boxes if there are any."""
    shares = np.cumsum(law.rates)
    columns = {
        "topic": law.topics,
        "publisher": law.publishers,
        "share": pa.array(shares / shares[-1]),
    }
    if law.lo is not None and law.hi is not None:
        columns |= {f"lo{i}": pa.array(ends) for i, ends in enumerate(law.lo.T)}
        columns |= {f"hi{i}": pa.array(ends) for i, ends in enumerate(law.hi.T)}
    pa.parquet.write_table(pa.table(columns), path)


def drawn_batches(
    shared: str, message_bytes: int, axes: tuple[AxisLaw, ...], sample: Sample, batches: Batches
) -> Batches:
    """Turn row numbers into publications."""
    keys = np.random.SeedSequence(sample.seed).generate_state(AXES + len(axes), np.uint64)
    law = pa.parquet.read_table(shared).combine_chunks()
    share = law["share"].to_numpy()
    for batch in batches:
        row = batch.column(0).to_numpy()
        topic = np.searchsorted(share, uniform(keys[TOPIC], row), side="right")
        columns = [
            pa.array((row + uniform(keys[TIME], row)) * (sample.seconds / sample.rows)),
            law["publisher"].chunk(0).take(pa.array(topic)),
            law["topic"].chunk(0).take(pa.array(topic)),
            pa.array(sizes(uniform(keys[BYTES], row), message_bytes)),
            *(
                values(axis, uniform(key, row), box_ends(law, i, topic))
                for i, (axis, key) in enumerate(zip(axes, keys[AXES:], strict=True))
            ),
        ]
        names = ["time", "publisher", "topic", "bytes", *(a.attribute.name for a in axes)]
        yield pa.RecordBatch.from_arrays(columns, names)


@compiled
def uniform(key: np.uint64, row: np.ndarray) -> np.ndarray:
    """Uniform numbers in [0, 1), each a function of its key and row alone.

    The row-th output of the SplitMix64 generator started at the key (Steele, Lea, Flood 2014).
    """
    out = np.empty(row.size)
    for i in range(row.size):
        state = mix(key + np.uint64(row[i]) * np.uint64(0x9E3779B97F4A7C15))
        out[i] = np.float64(state >> np.uint64(11)) * 2.0**-53
    return out


def sizes(uniforms: np.ndarray, mean: int) -> np.ndarray:
    """Sizes in bytes, at least 1, geometric with the given mean."""
    if mean == 1:
        return np.ones(uniforms.size, np.int64)
    result: np.ndarray = 1 + (np.log1p(-uniforms) / np.log1p(-1 / mean)).astype(np.int64)
    return result


def box_ends(law: pa.Table, axis: int, topic: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The interval of each row's advertisement on an axis; None if there are no boxes."""
    if f"lo{axis}" not in law.column_names:
        return None
    return law[f"lo{axis}"].to_numpy()[topic], law[f"hi{axis}"].to_numpy()[topic]


def values(
    axis: AxisLaw, uniforms: np.ndarray, box: tuple[np.ndarray, np.ndarray] | None = None
) -> pa.Array:
    """Values of one attribute: numbers uniform over box or domain, categories by weight."""
    attribute = axis.attribute
    if not isinstance(attribute, CategoryAttribute):
        lo, hi = box or (np.array(attribute.min), np.array(attribute.max))
        drawn = lo + uniforms * (hi - lo)
        # Rounding may reach the end of a box, which is open.
        return pa.array(drawn if box is None else np.minimum(drawn, np.nextafter(hi, lo)))
    weights = np.ones(len(attribute.values)) if axis.weights is None else axis.weights
    share = np.cumsum(weights)
    chosen = np.searchsorted(share / share[-1], uniforms, side="right")
    return pa.array(attribute.values, pa.string()).take(pa.array(chosen))


def _write(publications: DataFrame, folder: Path, format: TableFormat) -> None:
    """Append, because Spark would clear the folder and with it the law."""
    writer = publications.write.mode("append")
    if format == "parquet":
        writer.parquet(str(folder))
    elif format == "csv":
        writer.csv(str(folder), header=True)
    else:
        writer.json(str(folder))


def _tidy(folder: Path) -> None:
    """Leave the data alone: no law, no files of Spark's own, and names that end as the format."""
    for file in list(folder.iterdir()):
        if file.name.startswith((".", "_")):
            file.unlink()
        elif file.suffix == ".json":
            file.rename(file.with_suffix(".jsonl"))
