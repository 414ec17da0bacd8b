"""Marking problems from networks: trees are shortest, pruned and laid out; bad input is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from marking_worlds import Literal, figure_2, links, mesh, network, tree_table

from fanplan.core.arrays import NONE
from fanplan.core.errors import InputError
from fanplan.layers.marking.problem.marking import (
    MarkedNetwork,
    MarkingProblem,
    SharedTree,
    SourceTrees,
)
from fanplan.layers.marking.problem.trees import (
    given_problem,
    given_shared_problem,
    shared_problem,
    source_problem,
)
from fanplan.layers.marking.search.marking import exact_marking


def tree_of(problem: MarkingProblem, number: int) -> list[tuple[int, int]]:
    trees = problem.trees
    assert isinstance(trees, SourceTrees)
    link = trees.link[trees.starts[number] : trees.starts[number + 1]]
    return list(zip(problem.tail[link].tolist(), problem.head[link].tolist(), strict=True))


def ends_of(problem: MarkingProblem) -> set[tuple[int, int]]:
    return set(zip(problem.tail.tolist(), problem.head.tolist(), strict=True))


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_trees_of_sources_are_shortest_paths_to_all_subscribers(seed: int, whole: bool) -> None:
    world = mesh(seed, whole=whole)
    problem, size = source_problem(world), world.size
    given = world.links
    assert given is not None
    length = {(a, b): w for a, b, w in zip(given.a, given.b, given.latency_ms, strict=True)}
    length |= {(b, a): w for (a, b), w in length.items()}
    # SciPy takes a stored 0 for no link; links this short change no comparison of whole numbers.
    data = np.maximum([*length.values()], 1e-9)
    graph = scipy.sparse.csr_array((data, tuple(zip(*length, strict=True))), shape=(size, size))
    shortest = scipy.sparse.csgraph.dijkstra(graph, indices=np.flatnonzero(world.published))
    for number, root in enumerate(np.flatnonzero(world.published).tolist()):
        tree = tree_of(problem, number)
        away = {root: 0.0}
        for parent, child in tree:
            assert child not in away
            away[child] = away[parent] + length[parent, child]
        assert set(np.flatnonzero(world.subscribed)) <= set(away)
        assert [*away.values()] == pytest.approx(shortest[number][[*away]], abs=1e-6)
        leaves = {child for _, child in tree} - {parent for parent, _ in tree}
        assert all(world.subscribed[leaf] for leaf in leaves)
        assert set(tree) <= ends_of(problem)


@pytest.mark.parametrize("seed", range(4))
def test_entries_below_a_link_follow_it_and_know_the_one_above(seed: int) -> None:
    problem = source_problem(mesh(seed))
    trees = problem.trees
    assert isinstance(trees, SourceTrees)
    for root, start, end in zip(trees.root, trees.starts[:-1], trees.starts[1:], strict=True):
        open_: list[int] = []
        for entry in range(start, end):
            while open_ and open_[-1] != trees.above[entry]:
                open_.pop()
            above = trees.above[entry]
            assert above == (open_[-1] if open_ else NONE)
            before = root if above == NONE else problem.head[trees.link[above]]
            assert problem.tail[trees.link[entry]] == before
            open_.append(entry)
    assert set(trees.link.tolist()) == set(range(problem.size))


def test_of_equal_paths_the_one_with_fewer_links_then_lower_predecessors() -> None:
    pairs = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 4), (4, 5), (5, 3)]
    latency = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 2.0]
    counts = np.array([1, 0, 0, 0, 0, 0]), np.array([0, 0, 0, 1, 0, 0])
    world = MarkedNetwork(pa.array(list("abcdef")), *counts, links(pairs[::-1], latency[::-1]))
    assert tree_of(source_problem(world), 0) == [(0, 1), (1, 3)]


@pytest.mark.parametrize("seed", range(6))
def test_a_shared_tree_has_the_links_between_publishers_and_subscribers(seed: int) -> None:
    world = mesh(seed)
    problem = shared_problem(world, "n12")
    tree = problem.trees
    assert isinstance(tree, SharedTree)
    assert (tree.core, tree.order[0], tree.parent[12]) == (12, 12, NONE)
    literal = Literal(problem)
    assert set().union(*literal.trees.values()) == ends_of(problem)
    parents = {(int(tree.parent[node]), int(node)) for node in tree.order[1:]}
    assert ends_of(problem) <= parents | {(b, a) for a, b in parents}
    for node in tree.order[1:].tolist():
        parent = int(tree.parent[node])
        for link, ends in ((tree.down[node], (parent, node)), (tree.up[node], (node, parent))):
            assert link == NONE or literal.links[link] == ends


def test_prices_follow_the_links_in_both_directions() -> None:
    world = network("ABC", ["AB", "CB"], {"A": 1, "C": 1}, {"A": 1, "C": 1},
                    sending=np.array([3.0, 5.0]), storing=np.array([0.0, 10.0, 20.0]))  # fmt: skip
    for problem in (shared_problem(world, "B"), source_problem(world)):
        rows = zip(problem.tail.tolist(), problem.head.tolist(), strict=True)
        prices = zip(problem.publication_price, problem.subscription_price, strict=True)
        assert dict(zip(rows, prices, strict=True)) == {
            (0, 1): (13, 3), (1, 0): (3, 13), (1, 2): (25, 15), (2, 1): (15, 25)
        }  # fmt: skip


def test_a_node_that_publishes_to_itself_alone_uses_no_link() -> None:
    world = network("AB", ["AB"], {"A": 1}, {"A": 1})
    assert shared_problem(world, "B").size == source_problem(world).size == 0
    empty = tree_table(B="BA")
    assert given_problem(world, empty).size == 0


def test_trees_of_nodes_that_publish_nothing_are_not_used() -> None:
    problem = given_problem(network("AB", None, {"A": 1}, {"B": 1}), tree_table(A="AB", B="BA"))
    assert ends_of(problem) == {(0, 1)}


def test_given_trees_are_pruned_to_subscribers() -> None:
    world = network("ABCD", ["AB", "BC", "BD"], {"A": 1}, {"C": 1}, sending=np.array([1.0, 2, 3]))
    problem = given_problem(world, tree_table(A="AB BC BD"))
    assert (ends_of(problem), problem.sending.tolist()) == ({(0, 1), (1, 2)}, [1.0, 2.0])


@pytest.mark.parametrize("linked", [True, False])
def test_a_given_shared_tree_is_used_in_both_directions(linked: bool) -> None:
    """The shortest paths to the core are but one tree that may be given."""
    pairs = ["AB", "BC", "BD", "CD", "DE"]
    world = network("ABCDE", pairs if linked else None, {"A": 1, "C": 2}, {"C": 1, "D": 3})
    problem = given_shared_problem(world, tree_table(B="BA BC CD DE"))
    tree = problem.trees
    assert isinstance(tree, SharedTree)
    assert (tree.core, tree.order.tolist()) == (1, [1, 0, 2, 3])
    assert ends_of(problem) == {(0, 1), (1, 2), (2, 3)}
    assert set().union(*Literal(problem).trees.values()) == ends_of(problem)


@pytest.mark.parametrize("seed", range(3))
def test_shortest_paths_given_as_a_tree_are_the_same_problem(seed: int) -> None:
    world = mesh(seed)
    own = shared_problem(world, "n12")
    tree = own.trees
    assert isinstance(tree, SharedTree)
    names = [name.as_py() for name in world.nodes]
    child = tree.order[1:].tolist()
    columns = (["n12"] * len(child), [names[tree.parent[c]] for c in child])
    table = dict(
        zip(("root", "parent", "child"), (*columns, [names[c] for c in child]), strict=True)
    )
    given = given_shared_problem(world, pa.table(table))
    assert ends_of(given) == ends_of(own)
    assert exact_marking(given).cost == exact_marking(own).cost


@pytest.mark.parametrize(
    ("trees", "told"),
    [
        ({"B": "BA BC", "A": "AB"}, "there are 2, of 'A', 'B'. Give one, whose root is the core"),
        ({"B": "BA BC"}, "'B' does not reach 'D'"),
        ({"B": "BA BC CD BD"}, "'D' is entered again in that of 'B'"),
        ({"B": "BA CD DC"}, "'B' does not join 'C', 'D' to its root"),
        ({"B": "BA AC BD"}, "no link leads from 'A' to 'C'"),
    ],
)
def test_a_given_shared_tree_that_is_none_is_named(trees: dict[str, str], told: str) -> None:
    pairs = ["AB", "BC", "BD", "CD"]
    world = network("ABCD", pairs, {"A": 2}, {"C": 1, "D": 3})
    with pytest.raises(InputError, match=told):
        given_shared_problem(world, tree_table(**trees))


@pytest.mark.parametrize(
    ("trees", "told"),
    [
        ({"A": "AB BC"}, "'A' does not reach 'D'"),
        ({"A": "AB BC CD DC"}, "'C' is entered again in that of 'A'"),
        ({"A": "AB BC BD DA"}, "'A' is entered again in that of 'A'"),
        ({"A": "BD DB"}, "'A' does not join 'B', 'D' to its root"),
        ({"A": "AB BC BX"}, "child 'X' is not a node"),
        ({"A": "AB XC"}, "parent 'X' is not a node"),
        ({"X": "AB"}, "root 'X' is not a node"),
        ({"B": "BC BD"}, "publishing node 'A' has none"),
        ({"A": "AC CB BD"}, "no link leads from 'A' to 'C'"),
    ],
)
def test_given_trees_that_are_none_are_named(trees: dict[str, str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        given_problem(figure_2(), tree_table(**trees))


def test_nodes_that_no_path_leads_to_are_named() -> None:
    world = network("ABCD", ["AB", "CD"], {"A": 1}, {"B": 1, "C": 1, "D": 1})
    with pytest.raises(InputError, match="'A' does not reach 'C', 'D'"):
        source_problem(world)
    with pytest.raises(InputError, match="'B' does not reach 'C', 'D'"):
        shared_problem(world, "B")


def test_an_unknown_core_is_named() -> None:
    with pytest.raises(InputError, match="there is no node 'E'"):
        shared_problem(figure_2(), "E")


def test_paths_need_links() -> None:
    world = network("AB", None, {"A": 1}, {"B": 1})
    with pytest.raises(InputError, match="links: there are none"):
        source_problem(world)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"pairs": ["AB", "BC", "BA"]}, "'A', 'B' have parallel links"),
        ({"pairs": ["AB", "BB"]}, "'B' is linked with itself"),
        ({"sending": np.array([1.0, -1.0])}, "sending: a price is negative"),
        ({"storing": np.array([1.0, np.inf, 0.0])}, "storing: a price is negative or not finite"),
    ],
)
def test_networks_that_make_no_sense_are_refused(change: dict[str, Any], told: str) -> None:
    given = {"pairs": ["AB", "BC"], "published": {"A": 1}, "subscribed": {"C": 1}} | change
    with pytest.raises(InputError, match=told):
        network("ABC", **given)
