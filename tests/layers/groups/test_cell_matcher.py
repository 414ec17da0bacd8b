"""The matcher finds for every point the group of its cell, and nothing where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanplan.core.errors import InputError
from fanplan.layers.groups.problem.grid import cells_at, grid_of, numbers_of
from fanplan.layers.groups.problem.matchers import DEFAULT, match_groups, matcher_of

AXIS = st.lists(st.integers(-20, 20), min_size=2, max_size=6, unique=True).map(sorted)


def located(axes: list[list[int]], point: np.ndarray) -> tuple[int, ...] | None:
    """The cell of a point by search along each axis."""
    found = []
    for edges, x in zip(axes, point, strict=False):
        at = [i for i in range(len(edges) - 1) if edges[i] <= x < edges[i + 1]]
        if not at:
            return None
        found += at
    return tuple(found)


@settings(max_examples=60)
@given(
    topics=st.lists(st.lists(AXIS, max_size=3), min_size=1, max_size=3),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_point_has_the_group_of_its_cell(topics: list[Any], seed: int) -> None:
    rng = np.random.default_rng(seed)
    topic = rng.integers(len(topics), size=40).astype(np.int32)
    tree = rng.integers(3, size=40).astype(np.int32)
    point = rng.integers(-44, 44, (40, 3)) / 2
    point[rng.random(point.shape) < 0.02] = np.nan
    grid = grid_of(topics)
    expected = [
        (t, where) if (where := located(topics[t], p)) is not None else None
        for t, p in zip(topic.tolist(), point, strict=True)
    ]
    numbers = cells_at(grid, topic, point)
    assert [n < 0 for n in numbers] == [where is None for where in expected]
    pairs = set(zip(numbers.tolist(), expected, strict=True)) - {(-1, None)}
    assert len({n for n, _ in pairs}) == len({where for _, where in pairs}) == len(pairs)
    inside = np.flatnonzero(numbers >= 0)
    places = [[*where[1], 0, 0, 0][:3] for where in expected if where is not None]
    again = numbers_of(grid, topic[inside], np.array(places).reshape(-1, 3))
    assert again.tolist() == numbers[inside].tolist()
    # Half of the cells have a group; it depends on the tree.
    held = (numbers >= 0) & (numbers % 2 == 0) & (tree < 2)
    group = (7 * tree + numbers % 5).astype(np.int32)
    matcher = matcher_of(grid, tree[held], numbers[held], group[held])
    keys = set(zip(tree[held].tolist(), numbers[held].tolist(), strict=True))
    for t in range(3):
        found = match_groups(matcher, topic, point, t)
        wanted = [
            7 * t + number % 5 if (t, number) in keys else DEFAULT for number in numbers.tolist()
        ]
        assert found.tolist() == wanted


def test_many_cells_are_all_found_again() -> None:
    edges = np.linspace(0.0, 1.0, 301)
    grid = grid_of([[edges, edges]])
    point = np.random.default_rng(1).random((50_000, 2))
    cell = cells_at(grid, 0, point)
    assert (cell == (point * 300).astype(int) @ [300, 1]).mean() > 0.999
    matcher = matcher_of(grid, np.zeros(len(cell), np.int32), cell, (cell % 97).astype(np.int32))
    assert (match_groups(matcher, 0, point) == cell % 97).all()


def test_cells_that_cannot_be_numbered_or_have_two_groups_are_refused() -> None:
    edges = np.arange(10_001.0)
    with pytest.raises(InputError, match=r"1e\+20 cells are too many to number"):
        grid_of([[edges] * 5])
    with pytest.raises(InputError, match="edges of axis 1 do not ascend"):
        grid_of([[edges, np.zeros(2)]])
    same, two = np.zeros(2, np.int32), np.array([0, 1], np.int32)
    with pytest.raises(InputError, match="a cell has two groups on the same tree"):
        matcher_of(grid_of([[edges]]), same, np.zeros(2, np.int64), two)
    far = np.array([100], np.int32)
    with pytest.raises(InputError, match="on 101 trees are too many to number"):
        matcher_of(grid_of([[edges] * 4 + [np.arange(20.0)]]), far, np.zeros(1, int), far)
