"""The tree and the counts of Zhang & Hu (2005), and the same as tables."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from fanplan.core.errors import InputError
from fanplan.workload.generators.networks import TreeGridParams, draw_tree_grid, generate_tree_grid
from fanplan.workload.selector import compile_selector


def test_the_paper_has_64_leaves_and_85_nodes() -> None:
    params = TreeGridParams()
    world = draw_tree_grid(params, 1)
    assert (params.leaves, params.brokers) == (64, 85)
    assert Counter(world.parent[1:].tolist()) == dict.fromkeys(range(21), 4)
    for cell in range(100):
        leaves = world.leaves[world.starts[cell] : world.starts[cell + 1]]
        assert (np.diff(leaves) > 0).all()
        assert 21 <= leaves[0] <= leaves[-1] < 85


def test_counts_are_uniform_or_those_of_zipf() -> None:
    zipf = draw_tree_grid(TreeGridParams(zipf_leaves=1, zipf_messages=1), 1)
    assert np.diff(zipf.starts).tolist() == [math.ceil(64 / i) for i in range(1, 101)]
    assert zipf.messages.tolist() == [math.ceil(100 / i) for i in range(1, 101)]
    uniform = draw_tree_grid(TreeGridParams(cells=4000), 1)
    for counts, most in ((np.diff(uniform.starts), 64), (uniform.messages, 100)):
        assert (counts.min(), counts.max()) == (1, most)
        assert counts.mean() == pytest.approx((1 + most) / 2, rel=0.03)


def test_leaves_are_chosen_uniformly() -> None:
    world = draw_tree_grid(TreeGridParams(cells=4000), 2)
    times = np.bincount(world.leaves)[21:]
    assert times / times.mean() == pytest.approx(np.ones(64), rel=0.1)


def test_tables_say_the_same() -> None:
    params = TreeGridParams(arity=2, levels=3, cells=5)
    made, world = generate_tree_grid(params, 7), draw_tree_grid(params, 7)
    space = made.description.spaces[1]
    assert space.cells == (5,)
    wanted = set()
    for row in made.tables["subscriptions"].to_pylist():
        (box,) = compile_selector(row["filter"], space, max_boxes=1)
        cell = box.lo[0]
        # The last cell holds the upper end of the domain too.
        assert box.hi[0] == pytest.approx(cell + 1)
        assert (box.lo[0] <= 5.0 < box.hi[0]) == (cell == 4)
        wanted.add((int(cell), int(row["broker"][1:])))
    cells = np.repeat(np.arange(5), np.diff(world.starts))
    assert wanted == set(zip(cells.tolist(), world.leaves.tolist(), strict=True))
    offered = made.tables["advertisements"]
    assert set(offered["broker"].to_pylist()) == {"b0"}
    rates = offered["rate"].to_numpy()
    assert rates / rates.sum() == pytest.approx(world.messages / world.messages.sum())
    links = made.tables["links"].to_pylist()
    assert [(int(row["a"][1:]), int(row["b"][1:])) for row in links] == [
        (world.parent[child], child) for child in range(1, 7)
    ]


def test_trees_too_large_are_refused() -> None:
    with pytest.raises(InputError, match="levels: 30 levels of arity 4 are too many brokers"):
        TreeGridParams(levels=30)
