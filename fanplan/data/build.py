"""Interest problems made in memory, from pairs of numbers or from a generated workload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fanplan.core.arrays import Floats, Ints, Longs, starts_of
from fanplan.core.bits import mix
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.data.interest import InterestProblem, Rows, per_flow, take_audiences
from fanplan.workload.generators.generated import Generated

Hashes = NDArray[np.uint64]


def from_pairs(
    rows: Any,
    subscribers: Any,
    messages: Any,
    bytes: Any = None,
    seconds: float = 1.0,
    names: Sequence[str] | pa.Array | None = None,
    kind: Rows = "class",
    source: str = "pairs",
) -> InterestProblem:
    """The problem in which subscriber ``subscribers[p]`` wants flow ``rows[p]`` for every pair p.

    Flow ``i`` sends ``messages[i]``, and ``bytes[i]`` (default 0), in ``seconds``. Pairs may come
    in any order and more than once; a flow that nobody wants is left out. Flows with equal
    audiences become one row, classes in order of first appearance, unless ``kind`` is "flow".
    Linear in the pairs, apart from a sort of the flows; memory is a few times theirs.
    """
    amounts = np.asarray(messages, dtype=np.float64)
    sizes = np.zeros(len(amounts)) if bytes is None else np.asarray(bytes, dtype=np.float64)
    flow, who = np.asarray(rows), np.asarray(subscribers)
    if names is None:
        names = [f"s{i}" for i in range(int(who.max(initial=-1)) + 1)]
    require_pairs(flow, who, amounts, sizes, len(names))
    flow, who = flow.astype(np.int32), who.astype(np.int32)
    indptr, audience = sorted_audiences(flow, who, len(amounts), len(names))
    wanted = np.flatnonzero(np.diff(indptr))
    first, group = equal_audiences(indptr, audience, wanted)
    problem = InterestProblem(
        indptr=starts_of(np.diff(indptr)[first]),
        audience=take_audiences(indptr, audience, first),
        messages=group_sums(group, amounts[wanted], len(first)),
        bytes=group_sums(group, sizes[wanted], len(first)),
        flows=np.bincount(group, minlength=len(first)),
        classes=np.arange(len(first), dtype=np.int32),
        seconds=seconds,
        subscribers=pa.array(names, pa.string()),
        source=source,
    )
    if kind == "class":
        return problem
    return per_flow(problem, group.astype(np.int32), amounts[wanted], sizes[wanted])


def from_workload(
    generated: Generated, kind: Rows = "class", seconds: float = 1.0
) -> InterestProblem:
    """The problem of a generated workload whose topics are plain; rates become totals."""
    table = generated.tables["subscriptions"]
    if "filter" in table.column_names:
        what = "its subscriptions have filters, so a topic is not a flow"
        raise InputError(Problem(generated.description.name, what, "Write it and ingest it"))
    law = generated.law
    subscriber = table["subscriber"].combine_chunks()
    topic = pc.index_in(table["topic"].combine_chunks().cast(pa.string()), law.topics)
    if topic.null_count:
        what = "a subscription is not to one of its topics by name"
        raise InputError(Problem(generated.description.name, what, "Write it and ingest it"))
    messages = law.rates * seconds
    return from_pairs(
        topic.to_numpy(zero_copy_only=False),
        subscriber.indices.to_numpy(),
        messages,
        messages * law.message_bytes,
        seconds,
        subscriber.dictionary,
        kind,
        generated.description.name,
    )


def require_pairs(flow: Ints, who: Ints, messages: Floats, bytes: Floats, subscribers: int) -> None:
    """Pairs must name known flows and subscribers; totals must be numbers of at least 0."""
    problems = []
    for name, ids, size in (("rows", flow, len(messages)), ("subscribers", who, subscribers)):
        if len(ids) != len(flow):
            problems.append(Problem(name, f"{len(ids)} for {len(flow)} rows", "Give one for each"))
        elif len(ids) and not 0 <= ids.min() <= ids.max() < size:
            problems.append(Problem(name, f"a number outside 0 to {size - 1}", "Number from 0"))
    for name, totals in (("messages", messages), ("bytes", bytes)):
        if len(totals) != len(messages) or not (np.isfinite(totals) & (totals >= 0)).all():
            what = "not a finite number of at least 0 for each flow"
            problems.append(Problem(name, what, "Correct the totals"))
    if problems:
        raise InputError(problems)


def group_sums(group: Longs, amounts: Floats, groups: int) -> Floats:
    """The amounts of each group together."""
    return np.bincount(group, amounts, groups).astype(np.float64)


@compiled
def sorted_audiences(flow: Ints, who: Ints, flows: int, users: int) -> tuple[Longs, Ints]:
    """The different subscribers of each flow, ascending, one flow after the other.

    Flows are dealt to subscribers by counting; subscribers, in their order, then to flows.
    """
    user_starts, wanted = dealt(who, flow, users)
    starts = key_starts(flow, flows)
    place = starts[:-1].copy()
    audience = np.empty(len(flow), dtype=np.int32)
    for user in range(users):
        for i in wanted[user_starts[user] : user_starts[user + 1]]:
            if place[i] == starts[i] or audience[place[i] - 1] != user:
                audience[place[i]] = user
                place[i] += 1
    indptr = np.zeros(flows + 1, dtype=np.int64)
    for i in range(flows):
        indptr[i + 1] = indptr[i] + place[i] - starts[i]
        for k in range(place[i] - starts[i]):
            audience[indptr[i] + k] = audience[starts[i] + k]
    return indptr, audience[: indptr[-1]].copy()


@compiled
def dealt(key: Ints, values: Ints, keys: int) -> tuple[Longs, Ints]:
    """The values of each key in their order, and where each key's values start."""
    starts = key_starts(key, keys)
    place = starts[:-1].copy()
    result = np.empty(len(values), dtype=np.int32)
    for p in range(len(key)):
        result[place[key[p]]] = values[p]
        place[key[p]] += 1
    return starts, result


@compiled
def key_starts(key: Ints, keys: int) -> Longs:
    """Where the pairs of each key start if they lie together, with the end appended."""
    starts = np.zeros(keys + 1, dtype=np.int64)
    for k in key:
        starts[k + 1] += 1
    return np.cumsum(starts)


def equal_audiences(indptr: Longs, audience: Ints, rows: Longs) -> tuple[Longs, Longs]:
    """The first row with each different audience, and for each row which of those it equals.

    Rows are grouped by a 128-bit hash and then compared, so a collision cannot merge two.
    """
    hashes = audience_hashes(indptr, audience, rows)
    order = np.lexsort((np.arange(len(rows)), hashes[:, 1], hashes[:, 0]))
    representative = first_equals(indptr, audience, rows, hashes, order)
    firsts, group = np.unique(representative, return_inverse=True)
    return rows[firsts], group


@compiled
def audience_hashes(indptr: Longs, audience: Ints, rows: Longs) -> Hashes:
    """Two independent 64-bit hashes of each row's subscribers in order."""
    hashes = np.empty((len(rows), 2), dtype=np.uint64)
    for i in range(len(rows)):
        a, b = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
        for subscriber in audience[indptr[rows[i]] : indptr[rows[i] + 1]]:
            a = mix(a ^ np.uint64(subscriber))
            b = mix(b + np.uint64(0x8CB92BA72F3D8DD7) * np.uint64(subscriber + 1))
        hashes[i, 0], hashes[i, 1] = a, b
    return hashes


@compiled
def first_equals(indptr: Longs, audience: Ints, rows: Longs, hashes: Hashes, order: Longs) -> Longs:
    """For each row the position of the first with the same audience; ``order`` sorts by hash."""
    result = np.arange(len(rows))
    start = 0
    for k in range(1, len(order)):
        here = order[k]
        if hashes[here, 0] != hashes[order[start], 0] or hashes[here, 1] != hashes[order[start], 1]:
            start = k
        for other in order[start:k]:
            if same_audience(indptr, audience, rows[other], rows[here]):
                result[here] = result[other]
                break
    return result


@compiled
def same_audience(indptr: Longs, audience: Ints, a: int, b: int) -> bool:
    if indptr[a + 1] - indptr[a] != indptr[b + 1] - indptr[b]:
        return False
    for k in range(indptr[a + 1] - indptr[a]):
        if audience[indptr[a] + k] != audience[indptr[b] + k]:
            return False
    return True
