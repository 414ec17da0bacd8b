"""Groups are disjoint parts of the traffic and deliver exactly what is wanted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from group_worlds import EDGES, cell_of, cells_of_world, members_of, random_world, routes_of, way
from hypothesis import given, settings
from hypothesis import strategies as st
from overlays import routes_of as routes_from

from fanplan.core.arrays import NONE
from fanplan.core.errors import InputError
from fanplan.layers.groups.problem.build import cell_groups, exact_groups
from fanplan.layers.groups.problem.grid import grid_of
from fanplan.layers.groups.problem.groups import BrokerTrees
from fanplan.layers.groups.problem.matchers import DEFAULT, match_groups, matcher_of
from fanplan.layers.groups.problem.subtrees import shortcuts_of
from fanplan.layers.groups.problem.trees import given_trees, hung_at

FOUR = pa.array(["b0", "b1", "b2", "b3"])
STAR = np.array([(0, 1), (0, 2), (3, 0)])
SEEDS = st.integers(0, 2**32 - 1)
ROOTS = st.sampled_from([1, 3])


@settings(max_examples=50)
@given(seed=SEEDS, roots=ROOTS)
def test_exact_groups_deliver_exactly_the_matching_set(seed: int, roots: int) -> None:
    world = random_world(seed, roots)
    routes, _ = routes_of(world)
    problem = exact_groups(world.names, world.trees, routes)
    found = [(int(problem.span[g]), members_of(problem, g)) for g in range(problem.size)]
    assert len(set(found)) == len(found)
    counted: dict[tuple[int, tuple[int, ...]], int] = dict.fromkeys(found, 0)
    for source, x, y in world.sent:
        if world.reached(x, y):
            tree = problem.trees.root.tolist().index(source)
            counted[tree, world.reached(x, y)] += 1
    assert problem.messages.tolist() == list(counted.values())
    assert not problem.unwanted.any()
    assert (problem.group == NONE).tolist() == (np.diff(routes.starts) == 0).tolist()


@settings(max_examples=50)
@given(seed=SEEDS, roots=ROOTS, full=st.booleans(), least=st.sampled_from([0.0, 1.0]))
def test_cells_deliver_by_their_marks(seed: int, roots: int, full: bool, least: float) -> None:
    """A publication's group, by the matcher, is that of its cell, and reaches all who want it."""
    world = random_world(seed, roots)
    routes, cell = routes_of(world)
    trees = world.trees
    problem = cell_groups(world.names, trees, routes, cells_of_world(world, cell, full), least)
    inside = problem.group >= 0
    matcher = matcher_of(
        grid_of([[EDGES, EDGES]]), problem.tree[inside], cell[inside], problem.group[inside]
    )
    source, *point = np.array(world.sent).T
    tree = trees.of(source.astype(np.int32))
    matched = match_groups(matcher, np.zeros(len(source), np.int32), np.stack(point, axis=1), tree)
    density = Counter((t, cell_of(x, y)) for (_, x, y), t in zip(world.sent, tree, strict=True))
    for (_, x, y), t, group in zip(world.sent, tree, matched, strict=True):
        place = cell_of(x, y)
        marks, whole = world.marked(place)
        dense = density[t, place] > least
        assert (group != DEFAULT) == (bool(marks) and dense and (whole or not full))
        if group != DEFAULT:
            assert problem.span[group] == t
            assert members_of(problem, group) == marks
            assert set(world.reached(x, y)) <= set(marks)
            assert not full or world.reached(x, y) == marks
    sent = sum(group != DEFAULT for group in matched)
    assert (problem.messages.sum(), routes.messages.sum()) == (sent, len(world.sent))
    assert not (full and problem.unwanted.any())


@settings(max_examples=50)
@given(seed=SEEDS, roots=ROOTS)
def test_shortcuts_bypass_neither_branches_nor_members(seed: int, roots: int) -> None:
    world = random_world(seed, roots)
    routes, cell = routes_of(world)
    problem = cell_groups(world.names, world.trees, routes, cells_of_world(world, cell, False))
    short = shortcuts_of(problem)
    for group in range(problem.size):
        tree, members = problem.span[group], members_of(problem, group)
        ways = [way(problem, tree, member) for member in members]
        visited = set().union(*ways) | {int(problem.trees.root[tree])}
        below = {
            b: {up[at - 1] for up in ways for at in range(1, len(up)) if up[at] == b}
            for b in visited
        }
        spared = {b for b in visited if len(below[b]) == 1} - set(members)
        spared -= {int(problem.trees.root[tree])}
        mine = slice(short.starts[group], short.starts[group + 1])
        links = zip(short.tail[mine], short.head[mine], short.bypassed[mine], strict=True)
        entered = []
        for tail, head, bypassed in links:
            up = way(problem, tree, head)
            between = up[1 : up.index(tail)]
            assert len(between) == bypassed
            assert set(between) <= spared
            entered.append(int(head))
        # Each broker that is not spared is entered once, so the links form one tree again.
        assert sorted(entered) == sorted(visited - spared - {int(problem.trees.root[tree])})


def test_a_group_of_one_leaf_is_a_unicast_path() -> None:
    trees = hung_at(np.array([(0, 1), (1, 2), (2, 3)]), np.array([0]), 4)
    problem = exact_groups(FOUR, trees, routes_from({(0, (3,)): 5.0, (0, (1, 3)): 1.0}))
    short = shortcuts_of(problem)
    links = zip(short.tail.tolist(), short.head.tolist(), short.bypassed.tolist(), strict=True)
    assert short.starts.tolist() == [0, 2, 3]
    assert sorted(links) == [(0, 1, 0), (0, 3, 2), (1, 3, 1)]


def test_each_source_has_the_tree_that_is_hung_at_it() -> None:
    trees = hung_at(STAR, np.array([0, 2]), 4)
    assert trees.parent.tolist() == [[-1, 0, 0, 0], [2, 0, -1, 0]]
    assert trees.inner.tolist() == [[True, False, False, False], [True, False, True, False]]
    assert trees.of(np.array([2, 0, 2])).tolist() == [1, 0, 1]
    with pytest.raises(InputError, match="trees: broker 'b3' sends, but is not a root"):
        exact_groups(FOUR, trees, routes_from({(0, (1,)): 1.0, (3, (1,)): 1.0}))
    with pytest.raises(InputError, match="trees: nothing is published at 'b0', 'b2'"):
        exact_groups(FOUR, trees, routes_from({(0, (1,)): 0.0}))


def test_without_brokers_the_lack_of_traffic_is_named_and_not_a_broker_without_a_name() -> None:
    nowhere = BrokerTrees(np.zeros(1, np.int32), np.full((1, 1), -1, np.int32))
    with pytest.raises(InputError, match=r"publications: there is no traffic.*Add publications"):
        exact_groups(pa.array([""]), nowhere, routes_from({(0, (0,)): 0.0}))


def test_trees_may_be_given_and_leave_brokers_out() -> None:
    trees = given_trees(np.array([2, 2, 0]), np.array([2, 1, 0]), np.array([1, 0, 3]), 4)
    assert trees.root.tolist() == [0, 2]
    assert trees.parent.tolist() == [[-1, -1, -1, 0], [1, 2, -1, -1]]
    with pytest.raises(InputError, match="route 0: broker 'b2' is not in its tree"):
        exact_groups(FOUR, trees, routes_from({(0, (2,)): 1.0}))


@pytest.mark.parametrize(
    ("parent", "told"),
    [
        ([-1, 0, 3, 2], "no way leads from the root, broker 0, to broker 2"),
        ([1, -1, 1, 1], "broker 0 is the root, but is none of the brokers or has a parent"),
        ([-1, 0, -1, 2], "to broker 3"),
    ],
)
def test_parents_that_form_no_tree_are_refused(parent: list[int], told: str) -> None:
    with pytest.raises(InputError, match=told):
        BrokerTrees(np.zeros(1, np.int32), np.array([parent], np.int32))


@pytest.mark.parametrize(
    ("links", "told"),
    [
        ([(0, 1), (2, 3)], "2 links are no tree of 4 brokers"),
        ([(0, 1), (1, 0), (2, 3)], "join only 2 of 4 brokers with broker 0"),
    ],
)
def test_links_that_form_no_tree_are_refused(links: list[tuple[int, int]], told: str) -> None:
    with pytest.raises(InputError, match=told):
        hung_at(np.array(links), np.array([0]), 4)


def test_a_group_that_would_miss_somebody_is_refused() -> None:
    trees = hung_at(STAR, np.array([0, 1]), 4)
    problem = exact_groups(FOUR, trees, routes_from({(0, (1, 2)): 1.0, (1, (1, 2, 3)): 1.0}))
    with pytest.raises(InputError, match="route 0: group 0 has another tree or lacks"):
        replace(problem, members=np.array([1, 3, 1, 2, 3], np.int32))
    with pytest.raises(InputError, match="route 0: group 1 has another tree or lacks"):
        replace(problem, group=np.array([1, 1], np.int32))
