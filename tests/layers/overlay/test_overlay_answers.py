"""Limits that no tree meets: the answer names the limit, the brokers, and a value that would do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from test_overlay_improve import problem_of

from fanplan.core.errors import InfeasibleError
from fanplan.core.stop import never
from fanplan.layers.overlay.search.improve import improved_tree, not_found
from fanplan.layers.overlay.search.judge import ImproveParams, TreeLimits, judge_tree, search_of
from fanplan.network.brokers import Links
from fanplan.network.trees import Tree, tree_of


def ring(size: int, bandwidth: float = np.inf) -> Links:
    a, b = np.array(sorted([(i, i + 1) for i in range(size - 1)] + [(0, size - 1)]), np.int32).T
    ones = np.ones(size)
    return Links(a.copy(), b.copy(), ones, bandwidth * ones, ones)


@pytest.mark.parametrize(
    ("limits", "limit", "value", "why"),
    [
        (TreeLimits(degree=1), "degree", 2, "allow 20 ends of links, but a tree has 38"),
        (TreeLimits(degree=3, diameter=3), "diameter", 6, "of 3 or less under the degree limits"),
        (TreeLimits(diameter=1), "diameter", 2, "no tree of 20 brokers has a diameter of 1"),
        (TreeLimits(hops=((0, 1, 1), (1, 2, 1), (0, 2, 1))), "hops", 2, "closed by 'b1' and 'b2'"),
    ],
)
def test_proved_to_be_impossible(limits: TreeLimits, limit: str, value: int, why: str) -> None:
    with pytest.raises(InfeasibleError, match=why) as caught:
        improved_tree(problem_of(20, 0), ImproveParams(limits=limits), 0, never)
    assert (caught.value.limit, caught.value.value) == (limit, value)


def test_given_links_keep_brokers_apart() -> None:
    problem = problem_of(8, 0, links=ring(8))
    limits = TreeLimits(hops=((0, 4, 3),))
    with pytest.raises(InfeasibleError, match="'b0' and 'b4' are 4 hops apart at least") as caught:
        improved_tree(problem, ImproveParams(limits=limits), 0, never)
    assert (caught.value.limit, caught.value.value) == ("hops", 4)
    improved_tree(problem, ImproveParams(limits=TreeLimits(hops=((0, 4, 4),))), 0, never)


def star(size: int) -> Tree:
    return tree_of(np.zeros(size - 1, np.int32), np.arange(1, size, dtype=np.int32))


def chain(size: int) -> Tree:
    return tree_of(np.arange(size - 1, dtype=np.int32), np.arange(1, size, dtype=np.int32))


@pytest.mark.parametrize(
    ("limits", "make", "limit", "value", "why"),
    [
        (TreeLimits(degree=3), star, "degree", 5, "'b0' has 5 links"),
        (TreeLimits(degrees=((2, 1),)), chain, "degree", 2, "'b2' has 2 links"),
        (TreeLimits(diameter=4), chain, "diameter", 5, "a diameter of 5"),
        (TreeLimits(hops=((1, 2, 1), (1, 5, 2))), chain, "hops", 4, "'b1' and 'b5' are 4 hops"),
    ],
)
def test_what_the_best_tree_comes_to(
    limits: TreeLimits, make: Callable[[int], Tree], limit: str, value: int, why: str
) -> None:
    problem = problem_of(6, 0)
    answer = not_found(
        problem, limits, judge_tree(search_of(problem, ImproveParams(limits=limits), 0), make(6))
    )
    assert (answer.limit, answer.value) == (limit, value)
    assert why in str(answer)
    assert f"Allow {value}" in answer.problem.remedy


def test_narrow_links_are_named_with_the_bandwidth_that_would_do() -> None:
    problem = problem_of(6, 1, links=ring(6, 0.5))
    with pytest.raises(InfeasibleError) as caught:
        improved_tree(problem, ImproveParams(), 0, never)
    assert caught.value.limit == "bandwidth"
    assert "most of all that of 'b" in str(caught.value)
    wide = replace(problem, links=ring(6, caught.value.value))
    improved_tree(wide, ImproveParams(), 0, never)


def test_limits_and_changes_that_exclude_each_other() -> None:
    problem = problem_of(6, 0)
    params = ImproveParams(limits=TreeLimits(diameter=2), most_changes=1)
    with pytest.raises(InfeasibleError) as caught:
        improved_tree(problem, params, 0, never, chain(6))
    assert caught.value.limit in ("diameter", "changes")
    more = ImproveParams(limits=TreeLimits(diameter=2), most_changes=4)
    assert improved_tree(problem, more, 0, never, chain(6)).tree.diameter == 2
