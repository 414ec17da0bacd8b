"""Writing a plan folder: plan.json and Parquet tables, whole or not at all."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fanplan.errors import CheckError, InputError, Problem
from fanplan.folder import PLAN, whole_folder
from fanplan.plan.check import check_plan
from fanplan.plan.stored import InputRecord, PlanRecord, StoredPlan, WeightsRecord, load_plan
from fanplan.plan.tables import CHANNEL_TABLES, arrow_schema
from fanplan.plan.types import Pairs, Plan
from fanplan.problem.dataset import Manifest, read_manifest, read_stage, stage_batches
from fanplan.problem.interest import FLOW_COLUMNS, Longs, Rows
from fanplan.workload.tables import Table

__all__ = ["StoredPlan", "load_plan", "save_plan"]

BATCH_ROWS = 1 << 18
"""Flows read at a time, and rows written at a time; a row group of a table holds as many."""


def save_plan(plan: Plan, dataset: Path, out: Path, replace: bool = False) -> StoredPlan:
    """Write a plan for a dataset into the folder ``out``; with ``replace`` over an older plan.

    Rows of the map are expanded to the user's own flows and subscribers batch by batch, so memory
    does not grow with the flows. The same plan gives the same bytes. A plan that does not pass the
    check is not written.
    """
    manifest = read_manifest(dataset)
    require_same_input(plan, manifest, dataset)
    with whole_folder(out, PLAN, replace) as folder:
        write_tables(plan, dataset, manifest, folder)
        text = plan_record(plan, manifest).model_dump_json(indent=2)
        (folder / "plan.json").write_text(text + "\n", encoding="utf-8")
        require_valid(folder, dataset)
    return load_plan(out)


def require_same_input(plan: Plan, manifest: Manifest, dataset: Path) -> None:
    if plan.source != manifest.key:
        what = f"its key is {manifest.key}, but the plan was made for {plan.source}"
        raise InputError(Problem(str(dataset), what, "Name the dataset that was planned for"))


def require_valid(folder: Path, dataset: Path) -> None:
    """No plan is written unchecked."""
    violations = check_plan(folder, dataset).violations
    if violations:
        raise CheckError("the plan does not pass its check: " + "; ".join(violations))


def plan_record(plan: Plan, manifest: Manifest) -> PlanRecord:
    return PlanRecord(
        version=plan.version,
        layers=(plan.layer,),
        input=InputRecord(**asdict(manifest)),
        method=plan.method,
        params=plan.params,
        weights=WeightsRecord(**asdict(plan.weights)),
        seed=plan.seed,
        channels=plan.map.channels,
        flows=plan.flows,
        audience_classes=plan.audience_classes,
        seconds=plan.seconds,
        cost=plan.cost,
        perfect=plan.perfect,
        excess_percent=plan.excess_percent,
        bound=plan.bound.cost,
        bound_name=plan.bound.name,
        bound_percent=plan.bound_percent,
        single_bound=plan.single_bound.cost,
        single_bound_name=plan.single_bound.name,
        single_bound_percent=plan.single_bound_percent,
        unicast_fraction=plan.unicast_fraction,
        ledger=asdict(plan.ledger),
    )


def write_tables(plan: Plan, dataset: Path, manifest: Manifest, folder: Path) -> None:
    """All tables in one pass over the dataset's flows."""
    subscribers = subscriber_names(dataset)
    size = plan.flows if plan.rows == "flow" else plan.audience_classes
    channel_starts, unicast_starts = plan.map.assigned.starts(size), plan.map.unicast.starts(size)
    with ExitStack() as stack:
        flows, channel_flows, channel_subscribers, unicast = (
            stack.enter_context(parquet_writer(folder, table)) for table in CHANNEL_TABLES
        )
        for rows, batch in planned_batches(dataset, plan.rows):
            write(flows, flow_columns(batch, manifest.seconds))
            for names, channels in expand(batch, rows, channel_starts, plan.map.assigned):
                write(channel_flows, [channels, names])
            for names, numbers in expand(batch, rows, unicast_starts, plan.map.unicast):
                write(unicast, [names, subscribers.take(numbers)])
        for channels, names in member_columns(plan.map.members, subscribers):
            write(channel_subscribers, [channels, names])


def subscriber_names(dataset: Path) -> pa.Array:
    """Names by subscriber id."""
    table = read_stage(dataset, "subscribers", ("subscriber", "subscriber_id"))
    return table.sort_by("subscriber_id")["subscriber"].combine_chunks()


def planned_batches(dataset: Path, rows: Rows) -> Iterator[tuple[Longs, pa.RecordBatch]]:
    """The flows that somebody wants in stored order, with each one's row in the map."""
    planned = 0
    for batch in stage_batches(dataset, "flows", FLOW_COLUMNS, BATCH_ROWS):
        wanted = batch.filter(pc.greater_equal(batch["audience_class"], 0))
        classes = wanted["audience_class"].to_numpy().astype(np.int64)
        numbers = np.arange(planned, planned + len(wanted))
        yield (numbers if rows == "flow" else classes), wanted
        planned += len(wanted)


def flow_columns(batch: pa.RecordBatch, seconds: float) -> list[pa.Array]:
    """Columns of the plan's ``flows``: rates for totals, no cell for a plain topic."""
    cell = batch["cell"]
    cell = pc.if_else(pc.equal(pc.list_value_length(cell), 0), pa.scalar(None, cell.type), cell)
    rate, bytes_rate = (pc.divide(batch[name], seconds) for name in ("messages", "bytes"))
    return [batch["flow"], batch["topic"], cell, rate, bytes_rate, batch["audience_class"]]


def expand(
    batch: pa.RecordBatch, rows: Longs, starts: Longs, related: Pairs
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Flow names beside the numbers that their rows are related to, in pieces of bounded size."""
    counts = starts[rows + 1] - starts[rows]
    ends = np.cumsum(counts)
    cuts = np.searchsorted(ends, np.arange(0, ends[-1] if len(ends) else 0, BATCH_ROWS), "right")
    for first, last in itertools.pairwise([*np.unique(cuts), len(rows)]):
        size = counts[first:last]
        inside = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        numbers = related.right[np.repeat(starts[rows[first:last]], size) + inside]
        yield (
            batch["flow"].take(pa.array(np.repeat(np.arange(first, last), size))),
            pa.array(numbers),
        )


def member_columns(members: Pairs, subscribers: pa.Array) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Channels beside the names of their members, in pieces of bounded size."""
    for first in range(0, len(members), BATCH_ROWS):
        piece = slice(first, first + BATCH_ROWS)
        numbers = pa.array(members.right[piece])
        yield pa.array(members.left[piece]), subscribers.take(numbers)


def parquet_writer(folder: Path, table: Table) -> pq.ParquetWriter:
    """A writer of plain Parquet: nothing in the file depends on when or where it is written."""
    return pq.ParquetWriter(
        folder / f"{table.name}.parquet",
        arrow_schema(table),
        compression="zstd",
        store_schema=False,
    )


def write(writer: pq.ParquetWriter, columns: list[pa.Array]) -> None:
    """Write columns as row groups."""
    fields = zip(columns, writer.schema, strict=True)
    table = pa.table([column.cast(field.type) for column, field in fields], schema=writer.schema)
    writer.write_table(table, row_group_size=BATCH_ROWS)
