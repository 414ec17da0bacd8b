"""Rates of flows, folded window by window in whole numbers: batches may end where they like.

A weight is what was sent, `SCALE` times, where each window that ended since counts a bit less. The
same is done with a one for each window, so that weight / windows is what a window has on average.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fanplan.core.arrays import Floats, Longs
from fanplan.data.signatures import Hashes
from fanplan.data.stream.interest import Interest
from fanplan.plan.axis import whole

SHIFT = 12
SCALE = 1 << SHIFT
"""Weights below 2^51, so 2^39 messages of a flow in a window, and no product overflows."""
MOST_HELD = 4_000_000
"""Rows of a batch that are held before those of one flow are added up."""


@dataclass(frozen=True, eq=False)
class Flows:
    """Flows by topic and signature, in this order, each once for each window.

    ``x`` is a point of each, NaN beyond the attributes of its topic.
    """

    topic: pa.Array
    sign: Hashes
    x: Floats
    window: Longs
    messages: Longs
    bytes: Longs

    def __len__(self) -> int:
        return len(self.messages)

    def take(self, at: Longs) -> Flows:
        return Flows(
            self.topic.take(pa.array(at)),
            self.sign[at],
            self.x[at],
            self.window[at],
            self.messages[at],
            self.bytes[at],
        )

    def table(self) -> pa.Table:
        columns = {
            "topic": self.topic,
            "high": self.sign[:, 0],
            "low": self.sign[:, 1],
            "window": self.window,
            "messages": self.messages,
            "bytes": self.bytes,
        }
        return pa.table(columns | {f"x{i}": self.x[:, i] for i in range(self.x.shape[1])})


def flows_from_table(table: pa.Table) -> Flows:
    """What `Flows.table` gave."""
    table = table.combine_chunks()
    axes = [name for name in table.column_names if name.startswith("x")]
    x = np.column_stack([table[name].to_numpy() for name in axes]) if axes else None
    return Flows(
        whole(table["topic"]),
        np.column_stack([table["high"].to_numpy(), table["low"].to_numpy()]),
        np.zeros((len(table), 0)) if x is None else x,
        *(table[name].to_numpy() for name in ("window", "messages", "bytes")),
    )


def counted_flows(tables: Iterable[pa.Table], dimensions: int) -> Flows:
    """What was counted in a batch, in tables that may have a flow more than once."""
    held = [no_flows(dimensions)]
    for table in tables:
        flows = flows_from_table(table)
        # Spark has no numbers without a sign.
        held.append(replace(flows, sign=flows.sign.view(np.uint64)))
        if sum(map(len, held)) > MOST_HELD:
            held = [flows_together(*held)]
    return flows_together(*held)


def no_flows(dimensions: int) -> Flows:
    none = np.zeros(0, np.int64)
    empty = np.zeros((0, 2), np.uint64), np.zeros((0, dimensions))
    return Flows(pa.array([], pa.string()), *empty, none, none, none)


def flows_together(*parts: Flows) -> Flows:
    """Flows of several tables, those of one topic, signature and window added up."""
    rows = zip(*((p.sign, p.x, p.window, p.messages, p.bytes) for p in parts), strict=True)
    topic = pa.concat_arrays([part.topic for part in parts])
    sign, x, window, messages, bytes_ = (np.concatenate(column) for column in rows)
    names = topic.dictionary_encode()
    rank = np.argsort(pc.sort_indices(names.dictionary).to_numpy())
    code = rank[names.indices.to_numpy(zero_copy_only=False)]
    # By the point too, so that the least stands for all.
    axes = [x[:, i] for i in reversed(range(x.shape[1]))]
    order = np.lexsort((*axes, window, sign[:, 1], sign[:, 0], code))
    key = np.column_stack([code, window, sign.view(np.int64)])[order]
    first = np.flatnonzero(np.append(True, (key[1:] != key[:-1]).any(axis=1))[: len(order)])
    if not len(first):
        return parts[0]
    sums = [np.add.reduceat(column[order], first) for column in (messages, bytes_)]
    kept = order[first]
    return Flows(topic.take(pa.array(kept)), sign[kept], x[kept], window[kept], *sums)


@dataclass(frozen=True, eq=False)
class Rates:
    """Decayed weights of flows at the end of window ``last``; ``windows`` is that of a one."""

    flows: Flows
    windows: int = 0
    last: int | None = None

    @property
    def messages(self) -> Floats:
        """Messages of each flow in a window."""
        result: Floats = self.flows.messages / max(1, self.windows)
        return result

    @property
    def bytes(self) -> Floats:
        result: Floats = self.flows.bytes / max(1, self.windows)
        return result


def kept_of(half_life: float) -> int:
    """What is left of `SCALE` after a window."""
    return round(SCALE * math.pow(0.5, 1 / half_life))


def folded(rates: Rates, sent: Flows, window: int, kept: int) -> Rates:
    """The rates after one more window; those in between had no traffic."""
    passed = 1 if rates.last is None else window - rates.last
    flows, windows = rates.flows, rates.windows
    messages, size = flows.messages, flows.bytes
    for _ in range(passed):
        if not (windows or messages.any() or size.any()):
            break
        messages, size = messages * kept >> SHIFT, size * kept >> SHIFT
        windows = windows * kept >> SHIFT
    # Windows without traffic count as windows.
    windows += sum(SCALE * kept**i >> SHIFT * i for i in range(min(passed, 1000)))
    alive = np.flatnonzero(messages > 0)
    old = replace(flows, messages=messages, bytes=size).take(alive)
    new = replace(sent, messages=sent.messages << SHIFT, bytes=sent.bytes << SHIFT)
    same = np.zeros(len(old), np.int64), np.zeros(len(new), np.int64)
    both = flows_together(replace(old, window=same[0]), replace(new, window=same[1]))
    return Rates(both, windows, window)


def matched_again(flows: Flows, interest: Interest) -> Flows:
    """The same flows by who wants them now; topics with attributes by a point of each."""
    number = interest.numbers(flows.topic)
    spaced = (number >= 0) & (interest.spaces[number] > 0)
    sign = np.zeros_like(flows.sign)
    if spaced.any():
        sign[spaced] = interest.audiences(number[spaced], flows.x[spaced])[2]
    return flows_together(replace(flows, sign=sign))


def save_flows(flows: Flows, path: Path) -> None:
    pq.write_table(flows.table(), path, compression="zstd")


def load_flows(path: Path) -> Flows:
    return flows_from_table(pq.read_table(path))
