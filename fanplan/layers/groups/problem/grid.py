"""The grid that groups of cells come from: as many cells on every axis of every topic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bools, Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.data.reader import read_manifest, read_stage

MOST_CELLS = 20_000_000

MOST_MARKS = 20_000_000_000
"""Beyond these a grid is refused: it takes hours, or more memory than a driver has."""

MOST_NUMBERS = 2**62


class GroupGrid(NamedTuple):
    """Grids of topics. Axes of topic t are ``axes[t]:axes[t + 1]``; of axis a, the edges are
    ``edges[starts[a]:starts[a + 1]]``, and ``per_unit[a]`` cells go to a unit of length on average.

    Cells of all topics are numbered in a row: those of topic t from ``cells[t]``, the last axis
    fastest. A topic without axes is one cell.
    """

    axes: Longs
    starts: Longs
    edges: Floats
    per_unit: Floats
    cells: Longs


class Domains(NamedTuple):
    """Ends of all axes with their topics; ``values``: the axis is a list of values."""

    topic: Longs
    lo: Floats
    hi: Floats
    values: Bools


def read_group_grid(folder: Path, topics: int) -> GroupGrid:
    """The grid of the stage `group_grid`; topics that it leaves out are plain."""
    table = read_stage(folder.parent, folder.name, ("topic_id", "axis", "edges"))
    axes: list[list[Floats]] = [[] for _ in range(topics)]
    for row in table.sort_by([("topic_id", "ascending"), ("axis", "ascending")]).to_batches():
        edges = row.column("edges")
        for topic, place in zip(row.column("topic_id").to_pylist(), range(len(edges)), strict=True):
            axes[topic].append(edges[place].values.to_numpy())
    return grid_of(axes)


def grid_of(topics: Sequence[Sequence[Floats]]) -> GroupGrid:
    """A grid from the edges of each axis of each topic, ascending."""
    axes = [np.asarray(axis, np.float64) for topic in topics for axis in topic]
    for number, axis in enumerate(axes):
        if len(axis) < 2 or not (np.diff(axis) > 0).all():
            what = f"edges of axis {number} do not ascend"
            raise InputError(Problem("grid", what, "Give two edges or more, in order"))
    sizes = [np.prod([len(axis) - 1 for axis in topic], dtype=object) for topic in topics]
    if sum(sizes) > MOST_NUMBERS:
        what = f"{sum(sizes):.2g} cells are too many to number"
        raise InputError(Problem("grid", what, "Give a coarser grid"))
    return GroupGrid(
        np.cumsum([0, *map(len, topics)], dtype=np.int64),
        np.cumsum([0, *map(len, axes)], dtype=np.int64),
        np.concatenate([*axes, np.empty(0)]),
        np.array([(len(axis) - 1) / (axis[-1] - axis[0]) for axis in axes], np.float64),
        np.array([0, *np.cumsum(sizes)], dtype=np.int64),
    )


# ---- what a grid would be, before any work


def require_coarse_grid(dataset: Path, cells: int, most: int = MOST_CELLS) -> int:
    """The number of cells of such a grid, known before any work; refused if it is too fine."""
    domains = read_domains(dataset)
    topics = read_manifest(dataset).stages["topics"]
    counts = cells_of_topics(domains, topics, cells)
    if counts.sum() <= most:
        return int(counts.sum())
    names = read_stage(dataset, "topics", ("topic", "topic_id")).sort_by("topic_id")["topic"]
    worst = int(counts.argmax())
    what = (
        f"{cells} cells per axis are {counts[worst]:,.0f} cells, and {counts.sum():,.0f} with all "
        f"topics; the limit is {most:,}"
    )
    fits = finest(domains, topics, cells, most)
    remedy = f"Use at most {fits} cells" if fits else "Use exact groups, without cells"
    raise InputError(Problem(f"topic {names[worst].as_py()!r}", what, remedy))


def require_few_marks(marks: float, cells: int, axes: int, most: int = MOST_MARKS) -> None:
    """Refuse a grid on which regions meet too many cells; ``axes`` is the most of any topic."""
    if marks > most:
        fits = max(1, int(cells * (most / marks) ** (1 / max(axes, 1))))
        what = f"regions of brokers meet {marks:,.0f} cells in all; the limit is {most:,}"
        raise InputError(Problem(f"{cells} cells per axis", what, f"Use about {fits} cells"))


def read_domains(dataset: Path) -> Domains:
    """The ends are the first and the last edge of the dataset's own grid, of whatever kind."""
    table = read_stage(dataset, "grid", ("topic_id", "edges")).combine_chunks()
    edges = table["edges"].combine_chunks()
    ends, offsets = edges.values.to_numpy(), edges.offsets.to_numpy()
    lo, hi = ends[offsets[:-1]], ends[offsets[1:] - 1]
    return Domains(table["topic_id"].to_numpy().astype(np.int64), lo, hi, is_list(lo, hi))


def cells_of_topics(domains: Domains, topics: int, cells: int) -> Floats:
    """How many cells each topic has; a plain one has one."""
    counts = np.ones(topics)
    along = np.where(domains.values, domains.hi, float(cells))
    np.multiply.at(counts, domains.topic, along)
    return counts


def finest(domains: Domains, topics: int, cells: int, most: int) -> int:
    """The most cells per axis that fit; 0 if not even one does. By bisection."""
    fits, fails = 0, cells
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if cells_of_topics(domains, topics, middle).sum() <= most:
            fits = middle
        else:
            fails = middle
    return fits


def equal_cell_edges(lo: float, hi: float, cells: int) -> Floats:
    """Edges of equal cells between the ends of an axis; a list has a cell for each value."""
    if is_list(np.array(lo), np.array(hi)):
        return np.arange(hi + 1.0)
    width = (np.nextafter(hi, lo) - lo) / cells
    return np.concatenate(([lo], lo + np.arange(1, cells) * width, [hi]))


def is_list(lo: Floats, hi: Floats) -> Bools:
    """Whether axes are lists of values: a number's domain ends just above its largest number.

    Were one taken for the other, its grid would be another one, but a grid all the same.
    """
    found: Bools = (lo == 0) & (hi == np.floor(hi))
    return found


# ---- cells and their numbers


def cells_at(grid: GroupGrid, topic: Ints | int, point: Floats) -> Longs:
    """The number of the cell of each point; −1 outside of the grid."""
    return all_cells_at(grid, each(topic, len(point)), contiguous(point, np.float64))


def numbers_of(grid: GroupGrid, topic: Ints | int, cell: Ints) -> Longs:
    """The number of each cell, given as positions along the axes: cells × axes."""
    return number_all(grid, each(topic, len(cell)), contiguous(cell, np.int64))


def each(value: Ints | int, count: int) -> Ints:
    """One number for each; a copy, so that one compiled form serves all callers."""
    return np.array(np.broadcast_to(value, count), np.int32)


def contiguous(values: np.ndarray, kind: type) -> np.ndarray:
    return np.ascontiguousarray(values, kind)


@compiled
def all_cells_at(grid: GroupGrid, topic: Ints, point: Floats) -> Longs:
    cells = np.empty(len(point), np.int64)
    for i in range(len(point)):
        cells[i] = cell_at(grid, topic[i], point[i])
    return cells


@compiled
def cell_at(grid: GroupGrid, topic: int, point: Floats) -> int:
    """The cell of a point: on each axis first guessed as if cells were equal, then searched."""
    number = 0
    first = grid.axes[topic]
    for axis in range(first, grid.axes[topic + 1]):
        edges = grid.edges[grid.starts[axis] : grid.starts[axis + 1]]
        x, last = point[axis - first], len(edges) - 1
        if not edges[0] <= x < edges[last]:
            return -1
        at = min(int((x - edges[0]) * grid.per_unit[axis]), last - 1)
        if not edges[at] <= x < edges[at + 1]:
            at = np.searchsorted(edges, x, side="right") - 1
        number = number * last + at
    return int(grid.cells[topic] + number)


@compiled
def number_all(grid: GroupGrid, topic: Ints, cell: Longs) -> Longs:
    numbers = np.empty(len(cell), np.int64)
    for i in range(len(cell)):
        first, number = grid.axes[topic[i]], 0
        for axis in range(first, grid.axes[topic[i] + 1]):
            size = grid.starts[axis + 1] - grid.starts[axis] - 1
            number = number * size + cell[i, axis - first]
        numbers[i] = grid.cells[topic[i]] + number
    return numbers


@compiled
def places_of(grid: GroupGrid, number: Longs, axes: int) -> tuple[Longs, Longs]:
    """Topic and positions along the axes of numbered cells: what `numbers_of` turns around."""
    topic = np.searchsorted(grid.cells, number, side="right") - 1
    place = np.zeros((len(number), axes), np.int64)
    for row in range(len(number)):
        shape, rest = shape_of_topic(grid, topic[row]), number[row] - grid.cells[topic[row]]
        for axis in range(min(len(shape), axes) - 1, -1, -1):
            place[row, axis] = rest % shape[axis]
            rest //= shape[axis]
    return topic, place


@compiled
def cells_met(grid: GroupGrid, topic: Longs, lo: Floats, hi: Floats) -> tuple[Longs, Longs, Floats]:
    """Boxes in numbers of cells, by any overlap, and how many cells each meets."""
    low, high = np.zeros(lo.shape, np.int64), np.ones(lo.shape, np.int64)
    count = np.ones(len(topic))
    for row in range(len(topic)):
        for axis in range(grid.axes[topic[row] + 1] - grid.axes[topic[row]]):
            edges = edges_of(grid, topic[row], axis)
            low[row, axis], high[row, axis] = cells_along(edges, lo[row, axis], hi[row, axis])
            count[row] *= max(0, high[row, axis] - low[row, axis])
    return low, high, count


@compiled
def cells_along(edges: Floats, lo: float, hi: float) -> tuple[int, int]:
    """The cells that an interval meets: from the first up to before the second number."""
    if len(edges) == 0:
        return 0, 1
    low = int(np.searchsorted(edges, lo, side="right")) - 1
    high = int(np.searchsorted(edges, hi, side="left"))
    return max(low, 0), min(high, len(edges) - 1)


@compiled
def cells_held(edges: Floats, lo: float, hi: float) -> tuple[int, int]:
    """The cells that an interval holds as a whole."""
    if len(edges) == 0:
        return 0, 1
    low = int(np.searchsorted(edges, lo, side="left"))
    return low, int(np.searchsorted(edges, hi, side="right")) - 1


@compiled
def shape_of_topic(grid: GroupGrid, topic: int) -> Longs:
    """Cells along each axis of a topic; a plain one has an axis with one cell."""
    first, last = grid.axes[topic], grid.axes[topic + 1]
    shape = np.ones(max(1, last - first), np.int64)
    for axis in range(first, last):
        shape[axis - first] = grid.starts[axis + 1] - grid.starts[axis] - 1
    return shape


@compiled
def edges_of(grid: GroupGrid, topic: int, axis: int) -> Floats:
    """The edges of one axis of a topic; a plain topic has none."""
    at = grid.axes[topic] + axis
    if at == grid.axes[topic + 1]:
        return grid.edges[:0]
    return grid.edges[grid.starts[at] : grid.starts[at + 1]]
