"""Lloyd passes as Spark jobs: rows choose channels in tasks, demand is summed per channel.

Members travel as a file that tasks read by its path. Sums are of whole numbers, so the result does
not depend on how rows are dealt to tasks: a message total m counts as the whole number nearest to
m · 2^e. The exponent e is as large as the sum of all rows allows in 62 bits. Whole totals (counted
publications) lose nothing; of others, n rows lose at most n · 2^−61 of the sum together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import blake2b
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from fanplan.core.arrays import Bytes, Floats, Ints, Longs, starts_of
from fanplan.core.kernels import compiled
from fanplan.core.prices import Weights
from fanplan.core.progress import Progress
from fanplan.core.stop import Stop
from fanplan.layers.channels.search.effort import SETTLED
from fanplan.layers.channels.search.model.assign import assign_rows
from fanplan.layers.channels.search.model.demand import Demand, demand_of

Batches = Iterator[pa.RecordBatch]

SENT_BYTES = 64 << 20
"""Demand that a task hands over at a time."""
SHARES = pa.schema(
    [
        ("channel", pa.int32()),
        ("traffic", pa.int64()),
        ("users", pa.binary()),
        ("wanted", pa.binary()),
    ]
)

JOINED = pa.schema([("channel", pa.int32()), ("gain", pa.float64()), ("members", pa.binary())])
BITS = 61
"""Binary digits of the largest sum; rounding adds far less than the one that is left."""


@dataclass(frozen=True)
class LloydSetting:
    """What all tasks know; ``exponent`` is that of whole-number demand."""

    users: int
    channels: int
    weights: Weights
    exponent: int


def lloyd_on_spark(
    classes: DataFrame,
    setting: LloydSetting,
    members: Bytes,
    passes: int,
    folder: Path,
    stop: Stop,
    progress: Progress,
    all_unicast: float,
) -> Bytes:
    """Alternate until settled or for a number of passes, as ``lloyd`` does in memory.

    ``classes`` has ``subscribers`` and ``messages``. Each pass reads it once; a task holds the
    members and the demand, channels × users; the driver only the members.
    """
    before = 0.0
    for number in range(passes):
        with progress.stage(f"pass {number + 1}") as told:
            path = save_members(members, folder)
            joined, gain = lloyd_pass(classes, setting, path)
            told.update(best=all_unicast - gain)
        settled = number > 0 and gain <= before * (1 + SETTLED)
        if settled or stop(all_unicast - gain) or np.array_equal(joined, members):
            break
        members, before = joined, gain
    return members


def lloyd_pass(classes: DataFrame, setting: LloydSetting, path: Path) -> tuple[Bytes, float]:
    """The best members for what rows choose with those in ``path``, and the gain of the latter."""
    share, join = (partial(task, setting, str(path)) for task in (task_shares, task_joins))
    rows = classes.select("subscribers", "messages")
    shares = rows.mapInArrow(share, from_arrow_schema(SHARES)).repartition("channel")
    joined = shares.mapInArrow(join, from_arrow_schema(JOINED)).toArrow().sort_by("channel")
    members = np.zeros((setting.users, setting.channels), dtype=np.uint8)
    for channel, bits in zip(joined["channel"].to_pylist(), joined["members"], strict=True):
        packed = np.frombuffer(bits.as_py(), dtype=np.uint8)
        members[:, channel] = np.unpackbits(packed, count=setting.users)
    gain = sum(joined["gain"].to_pylist())
    return members, float(np.ldexp(gain, -setting.exponent))


def task_shares(setting: LloydSetting, path: str, batches: Batches) -> Batches:
    """In a task: each row's best channel, and what that adds to the demand on the channels."""
    wanted = np.zeros((setting.channels, setting.users), dtype=np.int64)
    traffic = np.zeros(setting.channels, dtype=np.int64)
    for demand, members, _ in demands(setting, path, batches):
        amount = to_whole(demand.rate, setting.exponent)
        best = assign_rows(demand, members).best
        add_shares(demand.indptr, demand.audience, amount, best, wanted, traffic)
    yield from share_batches(wanted, traffic)


def demands(
    setting: LloydSetting, path: str, batches: Batches
) -> Iterator[tuple[Demand, Bytes, pa.RecordBatch]]:
    """In a task: the rows of each batch as demand, with the members, on the task's one core."""
    numba.set_num_threads(1)
    members = load_members(path, setting.channels)
    for batch in batches:
        yield rows_demand(batch, setting), members, batch


def rows_demand(rows: pa.RecordBatch | pa.Table, setting: LloydSetting) -> Demand:
    """Rows of the dataset's ``classes`` as demand at the price of unicast."""
    audiences = rows["subscribers"]
    if isinstance(audiences, pa.ChunkedArray):
        audiences = audiences.combine_chunks()
    indptr = starts_of(audiences.value_lengths().to_numpy())
    audience = audiences.flatten().to_numpy().astype(np.int32)
    messages = rows["messages"].to_numpy().astype(np.float64)
    weights = setting.weights
    price = np.full(len(messages), weights.unicast)
    return demand_of(indptr, audience, messages, price, setting.users, weights.w1, weights.w2)


def share_batches(wanted: Longs, traffic: Longs) -> Batches:
    """A row for each channel in use: its traffic, and who wants how much of it."""
    used = np.flatnonzero(traffic)
    step = max(1, SENT_BYTES // (12 * wanted.shape[1] + 1))
    for first in range(0, len(used), step):
        rows = []
        for channel in used[first : first + step]:
            users = np.flatnonzero(wanted[channel]).astype(np.int32)
            amounts = wanted[channel, users].tobytes()
            rows.append((channel, traffic[channel], users.tobytes(), amounts))
        columns = zip(*rows, strict=True)
        yield pa.record_batch([pa.array(column) for column in columns], SHARES)


def task_joins(setting: LloydSetting, path: str, batches: Batches) -> Batches:
    """In a task: add up all shares of its channels; their gains as they are and best members."""
    wanted: dict[int, Longs] = {}
    traffic: Counter[int] = Counter()
    for row in (row for batch in batches for row in batch.to_pylist()):
        users, amounts = np.frombuffer(row["users"], np.int32), np.frombuffer(row["wanted"], "i8")
        of_channel = wanted.setdefault(row["channel"], np.zeros(setting.users, dtype=np.int64))
        of_channel[users] += amounts
        traffic[row["channel"]] += row["traffic"]
    members = load_members(path, setting.channels)
    for channel, asked in wanted.items():
        gain = channel_gain(asked, traffic[channel], members[:, channel] != 0, setting.weights)
        best = np.packbits(joins(asked, traffic[channel], setting.weights)).tobytes()
        row = {"channel": channel, "gain": gain, "members": best}
        yield pa.RecordBatch.from_pylist([row], JOINED)


def save_members(members: Bytes, folder: Path) -> Path:
    """Write members, a bit for each user and channel, where tasks can read them.

    The file is named after its content, so that a worker never takes old members for new ones.
    """
    packed = np.packbits(members, axis=1)
    path = folder / f"members-{blake2b(packed.tobytes(), digest_size=16).hexdigest()}.npy"
    np.save(path, packed)
    return path


@lru_cache(maxsize=1)
def load_members(path: str, channels: int) -> Bytes:
    """Members as saved, users × channels. A worker process keeps those of its last task."""
    return np.unpackbits(np.load(path), axis=1, count=channels)


def exponent_of(total: float) -> int:
    """The exponent e for rows whose totals add up to ``total``."""
    return BITS - math.frexp(total)[1] if total > 0 else 0


def to_whole(messages: Floats, exponent: int) -> Longs:
    return np.rint(np.ldexp(messages, exponent)).astype(np.int64)


@compiled
def add_shares(
    indptr: Longs, audience: Ints, amount: Longs, channel: Ints, wanted: Longs, traffic: Longs
) -> None:
    """Add each row's amount to its channel's traffic and to what its audience wants there.

    ``wanted`` is channels × users. A row on channel −1 adds nothing.
    """
    for row in range(len(amount)):
        if channel[row] >= 0:
            traffic[channel[row]] += amount[row]
            for user in audience[indptr[row] : indptr[row + 1]]:
                wanted[channel[row], user] += amount[row]


def joins(wanted: Longs, traffic: int, weights: Weights) -> NDArray[np.bool_]:
    """Y-step of one channel: join iff the priced demand exceeds what all its traffic costs."""
    return weights.unicast * wanted.astype(np.float64) > weights.w1 * float(traffic)


def channel_gain(
    wanted: Longs, traffic: int, members: NDArray[np.bool_], weights: Weights
) -> float:
    """What a channel with these members saves against unicast, in units of 2^−e messages."""
    served = float(wanted[members].sum(dtype=np.float64))
    cost = weights.w2 + weights.w1 * int(members.sum())
    return weights.unicast * served - cost * float(traffic)
