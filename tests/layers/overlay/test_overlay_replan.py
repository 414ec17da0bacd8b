"""Planning again: few changes to an earlier tree, also when brokers came or went."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from test_overlay_improve import problem_of, random_links

from fanplan.core.arrays import NONE
from fanplan.core.errors import InfeasibleError
from fanplan.core.stop import never
from fanplan.layers.overlay.published.similar import random_tree
from fanplan.layers.overlay.search.improve import improved_tree, with_link_replaced
from fanplan.layers.overlay.search.judge import ImproveParams, TreeLimits, judge_tree, search_of
from fanplan.layers.overlay.search.movable import movable_of
from fanplan.layers.overlay.search.starts import repaired
from fanplan.layers.overlay.search.swap import best_swap
from fanplan.network.trees import Tree, tree_of


def pairs_of(tree: Tree) -> set[tuple[int, int]]:
    return set(zip(tree.a.tolist(), tree.b.tolist(), strict=True))


@settings(max_examples=25, deadline=None)
@given(st.integers(3, 14), st.integers(0, 10**6), st.integers(0, 4), st.booleans())
def test_no_more_links_change_than_may(size: int, seed: int, most: int, given_links: bool) -> None:
    links = random_links(size, seed) if given_links else None
    problem = problem_of(size, seed, links=links)
    start = random_tree(problem, seed)
    found = improved_tree(problem, ImproveParams(most_changes=most), seed, never, start)
    before = judge_tree(search_of(problem, ImproveParams(), seed), start).objective
    assert found.changed == len(pairs_of(found.tree) - pairs_of(start)) <= most
    assert found.objective <= before
    assert most > 0 or pairs_of(found.tree) == pairs_of(start)


def test_each_change_helps_and_a_dear_change_is_not_made() -> None:
    problem = problem_of(25, 4, routes=40)
    start = random_tree(problem, 4)
    costs = []
    for most in (0, 1, 3, 10, None):
        params = ImproveParams(most_changes=most)
        costs.append(improved_tree(problem, params, 0, never, start).objective)
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > costs[1] > costs[2] > costs[3]
    free = improved_tree(problem, ImproveParams(), 0, never, start)
    some = improved_tree(problem, ImproveParams(change_price=40.0), 0, never, start)
    none = improved_tree(problem, ImproveParams(change_price=1e6), 0, never, start)
    assert free.changed > some.changed > none.changed == 0


def test_new_brokers_are_linked_to_the_most_similar() -> None:
    problem = problem_of(6, 0)
    alike = np.zeros((6, 6))
    alike[4, 2] = alike[2, 4] = alike[5, 3] = alike[3, 5] = 1.0
    alike[4, 1] = alike[1, 4] = 0.5
    overlap = scipy.sparse.csr_array(alike)
    problem = replace(problem, similarity=replace(problem.similarity, overlap=overlap))
    start = tree_of(np.array([0, 1, 2], np.int32), np.array([1, 2, 3], np.int32))
    new = pairs_of(repaired(problem, TreeLimits(), start)) - pairs_of(start)
    assert new == {(2, 4), (3, 5)}
    tight = pairs_of(repaired(problem, TreeLimits(degrees=((2, 2),)), start)) - pairs_of(start)
    assert tight == {(1, 4), (3, 5)}
    kept = improved_tree(problem, ImproveParams(most_changes=2), 0, never, start)
    assert kept.changed == 2
    with pytest.raises(InfeasibleError, match="3 parts, such as those of 'b0' and 'b4'") as caught:
        improved_tree(problem, ImproveParams(most_changes=1), 0, never, start)
    assert (caught.value.limit, caught.value.value) == ("changes", 2)


def test_links_that_may_no_longer_be_used_are_replaced() -> None:
    links = random_links(10, 2)
    problem = problem_of(10, 2, links=links)
    start = random_tree(problem, 0)
    gone = (links.a == start.a[0]) & (links.b == start.b[0])
    left = replace(problem, links=links.only(~gone))
    found = improved_tree(left, ImproveParams(most_changes=1), 0, never, start)
    assert found.changed == 1


@settings(max_examples=30, deadline=None)
@given(st.integers(4, 10), st.integers(0, 10**6), st.booleans())
def test_swaps_know_the_price_of_changes_and_of_links_that_other_trees_have(
    size: int, seed: int, given_links: bool
) -> None:
    links = random_links(size, seed) if given_links else None
    problem = problem_of(size, seed, routes=5, links=links)
    params = ImproveParams(cost=2.0, change_price=3.0, most_changes=size)
    tree, start, shared = (random_tree(problem, seed + i) for i in range(3))
    search = search_of(problem, params, seed, start, shared)
    hung = movable_of(tree, search.offers, search.rules.degree)
    before = judge_tree(search, tree)
    spare = seed % 2
    for link in range(len(tree.a)):
        swap = best_swap(hung, search.terms, link, spare)
        if swap.x != NONE:
            after = judge_tree(search, with_link_replaced(tree, link, swap.x, swap.y))
            assert after.objective - before.objective == pytest.approx(swap.change, abs=1e-6)
            assert after.changed <= before.changed + spare
