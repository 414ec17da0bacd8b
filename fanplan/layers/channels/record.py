"""The section of plan.json on channels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import FiniteFloat

from fanplan.core.arrays import Longs
from fanplan.core.prices import Weights
from fanplan.core.tables import Table
from fanplan.data.described import load_words
from fanplan.data.interest import FLOW_COLUMNS, Rows
from fanplan.data.reader import read_manifest, read_stage, stage_batches
from fanplan.layers.channels.map import ChannelsSection, MapPairs
from fanplan.layers.channels.params import ChannelsParams
from fanplan.plan.numbers import Count
from fanplan.plan.parquet import BATCH_ROWS, by_key, parquet_writer, write, write_table
from fanplan.plan.section import SectionRecord
from fanplan.plan.tables import CHANNEL_TABLES, DUAL_VALUES, SWITCH_ENTRIES


class ChannelsRecord(SectionRecord):
    """How channels were decided and what they cost.

    ``params`` are what was asked for; their options are all that the method was told. ``seconds``
    is the window that the ledger covers, not a run time.
    """

    layer = "channels"
    main = "channel_flows"

    params: ChannelsParams
    channels: Count
    flows: Count
    audience_classes: Count
    seconds: FiniteFloat
    cost: FiniteFloat
    perfect: FiniteFloat
    excess_percent: FiniteFloat
    bound: FiniteFloat
    bound_name: str
    bound_percent: FiniteFloat
    single_bound: FiniteFloat
    single_bound_name: str
    single_bound_percent: FiniteFloat
    unicast_fraction: FiniteFloat
    ledger: dict[str, FiniteFloat]
    traffic: dict[str, FiniteFloat] | None = None
    """messages times links, where tables of switches are limited"""

    @property
    def method(self) -> str:
        return self.params.full_method

    @property
    def weights(self) -> Weights:
        return self.params.prices.weights

    def tables(self) -> tuple[Table, ...]:
        dual = self.single_bound_name.startswith("dual")
        limited = self.traffic is not None
        further = (*((DUAL_VALUES,) if dual else ()), *((SWITCH_ENTRIES,) if limited else ()))
        return CHANNEL_TABLES + further


RECORD = ChannelsRecord


def channels_record(layer: ChannelsSection) -> ChannelsRecord:
    return ChannelsRecord(
        params=layer.params,
        channels=layer.map.channels,
        flows=layer.flows,
        audience_classes=layer.audience_classes,
        seconds=layer.seconds,
        cost=layer.cost,
        perfect=layer.perfect,
        excess_percent=layer.excess_percent,
        bound=layer.bound.cost,
        bound_name=layer.bound.name,
        bound_percent=layer.bound_percent,
        single_bound=layer.single_bound.cost,
        single_bound_name=layer.single_bound.name,
        single_bound_percent=layer.single_bound_percent,
        unicast_fraction=layer.unicast_fraction,
        ledger=asdict(layer.ledger),
        traffic=None if layer.switches is None else dict(layer.switches.traffic),
    )


def write_channels(plan: ChannelsSection, dataset: Path, folder: Path) -> None:
    """All tables in one pass over the dataset's flows.

    Rows of the map are expanded to the user's own flows and subscribers batch by batch, so memory
    does not grow with the flows.
    """
    subscribers, seconds = subscriber_names(dataset), read_manifest(dataset).seconds
    words = load_words(dataset)
    size = plan.flows if plan.rows == "flow" else plan.audience_classes
    channel_starts, unicast_starts = plan.map.assigned.starts(size), plan.map.unicast.starts(size)
    with ExitStack() as stack:
        flows, channel_flows, channel_subscribers, unicast = (
            stack.enter_context(parquet_writer(folder, table)) for table in CHANNEL_TABLES
        )
        for rows, batch in planned_batches(dataset, plan.rows, words.columns):
            write(flows, [*flow_columns(batch, seconds), words.describe(batch)])
            for names, channels in expand(batch, rows, channel_starts, plan.map.assigned):
                write(channel_flows, [channels, names])
            for names, numbers in expand(batch, rows, unicast_starts, plan.map.unicast):
                write(unicast, [names, subscribers.take(numbers)])
        for channels, names in member_columns(plan.map.members, subscribers):
            write(channel_subscribers, [channels, names])
    if plan.single_bound.values is not None:
        proof = {"audience_class": plan.single_bound.classes, "value": plan.single_bound.values}
        write_table(by_key(pa.table(proof), DUAL_VALUES), DUAL_VALUES, folder)
    if plan.switches is not None:
        write_table(by_key(plan.switches.entries, SWITCH_ENTRIES), SWITCH_ENTRIES, folder)


def subscriber_names(dataset: Path) -> pa.Array:
    """Names by subscriber id."""
    table = read_stage(dataset, "subscribers", ("subscriber", "subscriber_id"))
    return table.sort_by("subscriber_id")["subscriber"].combine_chunks()


def planned_batches(
    dataset: Path, rows: Rows, beside: tuple[str, ...]
) -> Iterator[tuple[Longs, pa.RecordBatch]]:
    """The flows that somebody wants in stored order, with each one's row in the map."""
    planned, columns = 0, tuple(dict.fromkeys((*FLOW_COLUMNS, *beside)))
    for batch in stage_batches(dataset, "flows", columns, BATCH_ROWS):
        wanted = batch.filter(pc.greater_equal(batch["audience_class"], 0))
        classes = wanted["audience_class"].to_numpy().astype(np.int64)
        numbers = np.arange(planned, planned + len(wanted))
        yield (numbers if rows == "flow" else classes), wanted
        planned += len(wanted)


def flow_columns(batch: pa.RecordBatch, seconds: float) -> list[pa.Array]:
    """Columns of the plan's ``flows`` but for words: rates for totals, no cell for plain topics."""
    cell = batch["cell"]
    cell = pc.if_else(pc.equal(pc.list_value_length(cell), 0), pa.scalar(None, cell.type), cell)
    rate, bytes_rate = (pc.divide(batch[name], seconds) for name in ("messages", "bytes"))
    return [batch["flow"], batch["topic"], cell, rate, bytes_rate, batch["audience_class"]]


def expand(
    batch: pa.RecordBatch, rows: Longs, starts: Longs, related: MapPairs
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


def member_columns(members: MapPairs, subscribers: pa.Array) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Channels beside the names of their members, in pieces of bounded size."""
    for first in range(0, len(members), BATCH_ROWS):
        piece = slice(first, first + BATCH_ROWS)
        numbers = pa.array(members.right[piece])
        yield pa.array(members.left[piece]), subscribers.take(numbers)
