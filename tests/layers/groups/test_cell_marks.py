"""Marks of cells against points: cells are cut so finely that a point stands for all around it."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fanplan.boxes.volumes import union_holds
from fanplan.layers.groups.problem.cell_marks import mark_part, part_at, parts_met
from fanplan.layers.groups.problem.grid import GroupGrid, cells_at, cells_met, grid_of, places_of
from fanplan.layers.groups.problem.regions import set_signatures

END = 6
"""Coordinates are whole numbers from 0 to here, so that a point stands for a unit cell."""


def random_axis(rng: np.random.Generator) -> np.ndarray:
    inner = np.flatnonzero(rng.random(END - 1) < 0.4) + 1
    return np.array([0, *inner, END], float)


def random_boxes(rng: np.random.Generator, axes: list[int]) -> tuple[np.ndarray, ...]:
    """Topic, broker, lo and hi; sorted by broker. Every broker wants each plain topic once."""
    count = int(rng.integers(1, 20))
    topic = rng.integers(len(axes), size=count)
    ends = np.sort(rng.permuted(np.tile(np.arange(END + 1.0), (count, 2, 1)), axis=2)[:, :, :2])
    beyond = np.arange(2) >= np.take(axes, topic)[:, None]
    lo, hi = (np.where(beyond, fill, ends[:, :, k]) for k, fill in enumerate((0.0, 1.0)))
    broker = np.sort(rng.integers(4, size=count))
    return topic, broker, lo, hi


def all_marks(
    grid: GroupGrid, boxes: tuple[np.ndarray, ...], room: int
) -> dict[int, tuple[Any, ...]]:
    """Signature, number of brokers and of those that want all, by cell with any."""
    topic, broker, lo, hi = boxes
    box, first = parts_met(grid, topic, lo, hi, room)
    found: dict[int, tuple[Any, ...]] = {}
    for start in np.unique(first).tolist():
        own = box[first == start]
        part = part_at(grid, start, room)
        marks = mark_part(grid, part, broker[own], lo[own], hi[own])
        for cell in np.flatnonzero(marks.wanted).tolist():
            assert start + cell not in found
            counts = int(marks.wanted[cell]), int(marks.whole[cell])
            found[start + cell] = (*marks.signature[:, cell].tolist(), *counts)
    return found


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), room=st.sampled_from([1, 4, 1000]))
def test_marks_are_those_of_all_points(seed: int, room: int) -> None:
    rng = np.random.default_rng(seed)
    axes = rng.integers(3, size=3).tolist()
    grid = grid_of([[random_axis(rng) for _ in range(size)] for size in axes])
    boxes = random_boxes(rng, axes)
    wanted: dict[int, list[set[int]]] = {}
    for topic, x, y in product(range(3), range(END), range(END)):
        point = np.array([x, y], float)
        (cell,) = cells_at(grid, topic, point[None]).tolist()
        wanted.setdefault(cell, []).append(wanting(boxes, topic, point, axes[topic]))
    expected = {}
    for cell, sets in wanted.items():
        some, every = sorted(set.union(*sets)), set.intersection(*sets)
        signature = set_signatures(np.array([0, len(some)]), np.array(some, np.int32))[0]
        if some:
            expected[cell] = (*signature.tolist(), len(some), len(every))
    assert all_marks(grid, boxes, room) == expected


def wanting(boxes: tuple[np.ndarray, ...], topic: int, point: np.ndarray, size: int) -> set[int]:
    topics, broker, lo, hi = boxes
    inside = ((lo <= point) & (point < hi))[:, :size].all(axis=1)
    return set(broker[inside & (topics == topic)].tolist())


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_numbers_of_cells_turn_into_their_places(seed: int) -> None:
    rng = np.random.default_rng(seed)
    axes = rng.integers(3, size=4).tolist()
    grid = grid_of([[random_axis(rng) for _ in range(size)] for size in axes])
    topic, _, lo, hi = random_boxes(rng, axes)
    low, high, count = cells_met(grid, topic, lo, hi)
    number = np.arange(grid.cells[-1])
    at, place = places_of(grid, number, 2)
    for box in range(len(topic)):
        inside = (at == topic[box]) & ((low[box] <= place) & (place < high[box])).all(axis=1)
        corner = np.stack([lo[box], hi[box] - 0.5])
        ends = cells_at(grid, int(topic[box]), corner)
        assert inside.sum() == count[box] >= 1
        assert set(ends.tolist()) <= set(number[inside].tolist())


@settings(max_examples=100)
@given(seed=st.integers(0, 2**32 - 1))
def test_boxes_hold_a_box_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    axes = [int(rng.integers(1, 4))]
    ends = np.sort(rng.integers(0, 4, (int(rng.integers(1, 12)), axes[0], 2)), axis=2).astype(float)
    points = np.array(list(product(range(3), repeat=axes[0])), float)
    inside = (ends[:, None, :, 0] <= points) & (points < ends[:, None, :, 1])
    held = inside.all(axis=2).any(axis=0).all()
    low, high = np.zeros(axes[0]), np.full(axes[0], 3.0)
    lo, hi = (np.ascontiguousarray(ends[:, :, k]) for k in (0, 1))
    assert union_holds(low, high, lo, hi) == held
