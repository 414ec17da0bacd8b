"""The interest problem, the waist of the hourglass: who wants which traffic, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Floats, Ints, Longs, starts_of
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.data.reader import INGEST_AGAIN, read_manifest, read_stage

Rows = Literal["class", "flow"]

FLOW_COLUMNS = ("flow", "topic", "cell", "messages", "bytes", "audience_class")


@dataclass(frozen=True, eq=False)
class InterestProblem:
    """Which subscribers want each row of traffic, and how much traffic there is.

    A row is an audience class, or a single flow (``rows``). The audience of row ``i`` is
    ``audience[indptr[i]:indptr[i + 1]]``: ascending positions in ``subscribers``. ``messages``
    and ``bytes`` are totals over a window of ``seconds``. ``classes`` is the audience class of a
    row and ``flows`` its number of flows. ``source`` is the key of the dataset. ``wanted`` are the
    copies that selectors ask for: fewer than the audience gets where cells are coarser than they
    are; None if all is wanted.
    """

    indptr: Longs
    audience: Ints
    messages: Floats
    bytes: Floats
    flows: Longs
    classes: Ints
    seconds: float
    subscribers: pa.Array
    source: str
    rows: Rows = "class"
    wanted: Floats | None = None

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.messages)

    @property
    def nnz(self) -> int:
        """Number of (row, interested subscriber) pairs."""
        return len(self.audience)

    @property
    def flow_count(self) -> int:
        return int(self.flows.sum())

    @property
    def class_count(self) -> int:
        """Number of different audiences."""
        return len(np.unique(self.classes))

    @property
    def rates(self) -> Floats:
        """Messages per second of each row."""
        return self.messages / self.seconds

    @property
    def audience_sizes(self) -> Longs:
        return np.diff(self.indptr)

    @property
    def pair_rows(self) -> Longs:
        """The row of each pair, beside ``audience``."""
        return np.repeat(np.arange(self.size), self.audience_sizes)

    @property
    def deliveries(self) -> Floats:
        """Copies of each row's messages that somebody wants."""
        return self.messages * self.audience_sizes if self.wanted is None else self.wanted


def load_interest(dataset: Path, rows: Rows = "class") -> InterestProblem:
    """One row per audience class, or per flow that somebody wants in stored order."""
    return load_classes(dataset) if rows == "class" else load_flow_rows(dataset)


def load_classes(dataset: Path) -> InterestProblem:
    """One row per audience class, from a dataset's ``classes`` and ``subscribers`` tables."""
    manifest = read_manifest(dataset)
    names = read_stage(dataset, "subscribers", ("subscriber", "subscriber_id"))
    columns = ("audience_class", "subscribers", "messages", "bytes", "flows")
    table = read_stage(dataset, "classes", columns).sort_by("audience_class").combine_chunks()
    require_dense(table["audience_class"], dataset / "classes")
    require_dense(names["subscriber_id"].combine_chunks().sort(), dataset / "subscribers")
    audiences = table["subscribers"].combine_chunks()
    audience = audiences.flatten().to_numpy(zero_copy_only=False).astype(np.int32)
    indptr = starts_of(audiences.value_lengths().to_numpy())
    require_audiences(audience, indptr, len(names), dataset / "classes")
    require_totals(table, dataset / "classes")
    return InterestProblem(
        indptr=indptr.astype(np.int64),
        audience=audience,
        messages=table["messages"].to_numpy().astype(np.float64),
        bytes=table["bytes"].to_numpy().astype(np.float64),
        flows=table["flows"].to_numpy().astype(np.int64),
        classes=np.arange(len(table), dtype=np.int32),
        seconds=manifest.seconds,
        subscribers=names.sort_by("subscriber_id")["subscriber"].combine_chunks(),
        source=manifest.key,
        wanted=None if manifest.exact else wanted_of(dataset, "classes", "audience_class"),
    )


def wanted_of(dataset: Path, stage: str, order: str | None = None) -> Floats:
    """What is wanted of each row of a stage."""
    table = read_stage(dataset, stage, ["wanted", *([order] if order else [])])
    wanted: Floats = (table.sort_by(order) if order else table)["wanted"].to_numpy()
    return wanted


def load_flow_rows(dataset: Path) -> InterestProblem:
    """One row per flow that somebody wants, in stored order."""
    flows = read_stage(dataset, "flows", ("messages", "bytes", "audience_class"))
    flow_class = flows["audience_class"].to_numpy().astype(np.int32)
    wanted = flow_class >= 0
    messages, size = flows["messages"].to_numpy(), flows["bytes"].to_numpy()
    classes = load_classes(dataset)
    problem = per_flow(classes, flow_class[wanted], messages[wanted], size[wanted])
    if classes.wanted is None:
        return problem
    return replace(problem, wanted=wanted_of(dataset, "flows")[wanted])


def per_flow(
    problem: InterestProblem, flow_class: Ints, messages: Floats, bytes: Floats
) -> InterestProblem:
    """One row per flow, where ``flow_class`` is each flow's row in a problem of classes.

    The flows of a class may then go to different channels. Memory: one audience per flow.
    """
    if len(flow_class) and not 0 <= flow_class.min() <= flow_class.max() < problem.size:
        what = f"a flow's audience class lies outside 0 to {problem.size - 1}"
        raise InputError(Problem("flows", what, INGEST_AGAIN))
    indptr = starts_of(problem.audience_sizes[flow_class])
    return replace(
        problem,
        indptr=indptr,
        audience=take_audiences(problem.indptr, problem.audience, flow_class),
        messages=np.array(messages, dtype=np.float64),
        bytes=np.array(bytes, dtype=np.float64),
        flows=np.ones(len(flow_class), dtype=np.int64),
        classes=np.array(flow_class, dtype=np.int32),
        rows="flow",
        wanted=None,
    )


def per_class(problem: InterestProblem) -> InterestProblem:
    """One row per audience class, with the totals of the class's rows."""
    if problem.rows == "class":
        return problem
    classes, first, group = np.unique(problem.classes, return_index=True, return_inverse=True)
    sizes = problem.audience_sizes[first]
    indptr = starts_of(sizes)
    return replace(
        problem,
        indptr=indptr,
        audience=take_audiences(problem.indptr, problem.audience, first),
        messages=summed(problem.messages, group, len(first)),
        bytes=summed(problem.bytes, group, len(first)),
        flows=np.bincount(group, problem.flows, len(first)).astype(np.int64),
        classes=classes.astype(np.int32),
        rows="class",
        wanted=None if problem.wanted is None else summed(problem.wanted, group, len(first)),
    )


def summed(amounts: Floats, group: Longs, groups: int) -> Floats:
    """What each group has in all."""
    return np.bincount(group, amounts, groups).astype(np.float64)


def require_dense(ids: pa.Array | pa.ChunkedArray, where: Path) -> None:
    """Sorted ids must be 0, 1, 2, …: each number once and none left out."""
    if not np.array_equal(ids.to_numpy(), np.arange(len(ids))):
        what = f"{len(ids)} rows are not numbered 0 to {len(ids) - 1}, each once"
        raise InputError(Problem(str(where), what, INGEST_AGAIN))


def require_audiences(audience: Ints, indptr: Longs, subscribers: int, where: Path) -> None:
    """Every audience must be an ascending list of known subscribers."""
    if len(audience) and not 0 <= audience.min() <= audience.max() < subscribers:
        what = f"a subscriber id lies outside 0 to {subscribers - 1}"
        raise InputError(Problem(str(where), what, INGEST_AGAIN))
    row = first_unsorted(indptr, audience)
    if row >= 0:
        what = f"audience class {row} has subscribers out of order or twice"
        raise InputError(Problem(str(where), what, INGEST_AGAIN))


def require_totals(table: pa.Table, where: Path) -> None:
    """Messages and bytes must be numbers of at least 0."""
    for name in ("messages", "bytes"):
        values = table[name].to_numpy()
        wrong = ~(np.isfinite(values) & (values >= 0))
        if wrong.any():
            what = f"audience class {wrong.argmax()} has {name} {values[wrong][0]}"
            raise InputError(Problem(str(where), what, INGEST_AGAIN))


@compiled
def first_unsorted(indptr: Longs, audience: Ints) -> int:
    """The first row that does not ascend strictly, or −1."""
    for row in range(len(indptr) - 1):
        for i in range(indptr[row] + 1, indptr[row + 1]):
            if audience[i - 1] >= audience[i]:
                return row
    return -1


@compiled
def take_audiences(indptr: Longs, audience: Ints, rows: Longs | Ints) -> Ints:
    """The audiences of ``rows`` one after the other."""
    size = 0
    for row in rows:
        size += indptr[row + 1] - indptr[row]
    result = np.empty(size, dtype=np.int32)
    end = 0
    for row in rows:
        for subscriber in audience[indptr[row] : indptr[row + 1]]:
            result[end] = subscriber
            end += 1
    return result
