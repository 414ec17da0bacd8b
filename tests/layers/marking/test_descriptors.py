"""Which regions no other one of their group covers, against a loop over all pairs."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fanplan.layers.marking.problem.covers import BLOCK, covering_nodes, uncovered


def by_pairs(group: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """A box counts unless a larger one holds it, or an equal one comes before it."""
    within = (lo[None] <= lo[:, None]).all(axis=2) & (hi[:, None] <= hi[None]).all(axis=2)
    within &= group[:, None] == group
    earlier = np.arange(len(group))[:, None] > np.arange(len(group))
    return np.asarray(~(within & (~within.T | earlier)).any(axis=1))


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(0, 40))
def test_covered_boxes_are_left_out(seed: int, axes: int, count: int) -> None:
    draw = np.random.default_rng(seed)
    group = draw.integers(0, 3, count)
    lo = draw.integers(0, 5, (count, axes)).astype(float)
    hi = lo + draw.integers(1, 5, (count, axes)).astype(float)
    assert uncovered(group, lo, hi).tolist() == by_pairs(group, lo, hi).tolist()


def test_many_boxes_in_many_blocks() -> None:
    draw = np.random.default_rng(1)
    count = 8 * BLOCK
    lo = draw.integers(0, 200, (count, 2)).astype(float)
    hi = lo + draw.integers(1, 30, (count, 2)).astype(float)
    group = np.zeros(count, np.int64)
    kept = uncovered(group, lo, hi)
    assert kept.tolist() == by_pairs(group, lo, hi).tolist()
    assert 2 * BLOCK < kept.sum() < count


@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([0, 5, 40, 3 * BLOCK]))
def test_covering_nodes_are_those_of_all_pairs(seed: int, axes: int, count: int) -> None:
    draw = np.random.default_rng(seed)
    group, node = draw.integers(0, 2, count), draw.integers(0, 6, count)
    lo = draw.integers(0, 5, (count, axes)).astype(float)
    hi = lo + draw.integers(1, 5, (count, axes)).astype(float)
    within = (lo[None] <= lo[:, None]).all(axis=2) & (hi[:, None] <= hi[None]).all(axis=2)
    within &= (group[:, None] == group) & (node[:, None] != node)
    within &= ~within.T | (node[:, None] > node)
    wanted = [sorted(set(node[row].tolist())) for row in within]
    pairs = sum(map(len, wanted))
    found = covering_nodes(group, node, lo, hi, pairs)
    assert found is not None
    starts, nodes = found
    assert [nodes[a:b].tolist() for a, b in itertools.pairwise(starts)] == wanted
    assert not pairs or covering_nodes(group, node, lo, hi, pairs - 1) is None
