"""Meshes: greedy merge against looking at all pairs, the bound and ours against brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanplan.core.arrays import Longs
from fanplan.core.stop import never
from fanplan.layers.mesh.bound import mesh_bound
from fanplan.layers.mesh.check import proved_bounds
from fanplan.layers.mesh.problem import MeshProblem, Wants, wants_of
from fanplan.layers.mesh.published import merge
from fanplan.layers.mesh.published.merge import (
    degrees_of,
    drawn_ranks,
    flat_merge,
    greedy_merge,
    merge_from,
)
from fanplan.layers.mesh.search.mesh import fewest_links, lowest_degree, separate_trees
from fanplan.layers.mesh.search.spare import without_spare

Interest = list[set[int]]
"""Per topic, who wants it."""


def wants_in(interest: Interest, nodes: int) -> Wants:
    pairs = [(topic, node) for topic, members in enumerate(interest) for node in members]
    topic, node = np.array(pairs, np.int64).reshape(-1, 2).T
    return wants_of(topic, node, len(interest), nodes)


def draw_interest(nodes: int, topics: int, seed: int, share: float = 0.3) -> Interest:
    wanted = np.random.default_rng(seed).random((topics, nodes)) < share
    return [set(np.flatnonzero(row).tolist()) for row in wanted if row.sum() > 1]


def parts_of(members: set[int], links: list[tuple[int, int]]) -> list[set[int]]:
    """Connected parts of a topic, by joining sets."""
    parts = [{node} for node in members]
    for u, v in links:
        if {u, v} <= members:
            one = next(part for part in parts if u in part)
            other = next(part for part in parts if v in part)
            if one is not other:
                one |= other
                parts.remove(other)
    return parts


def ends(links: Longs, nodes: int) -> list[tuple[int, int]]:
    return [(int(link) // nodes, int(link) % nodes) for link in links]


def connects(interest: Interest, links: list[tuple[int, int]]) -> bool:
    return all(len(parts_of(members, links)) == 1 for members in interest)


def plain_greedy(interest: Interest, nodes: int, seed: int, most: int) -> list[tuple[int, int]]:
    """Before each link all pairs are looked at (Chockler et al. 2007); equal gains are drawn."""
    pairs = list(combinations(range(nodes), 2))
    draws = drawn_ranks(np.array([u * nodes + v for u, v in pairs]), np.uint64(seed))
    links: list[tuple[int, int]] = []
    while True:
        parts = [parts_of(members, links) for members in interest]
        degrees = np.bincount(np.array(links, int).ravel(), minlength=nodes)
        gains = [
            0
            if degrees[u] >= most or degrees[v] >= most
            else sum(
                any(u in part and v not in part for part in own) and v in members
                for own, members in zip(parts, interest, strict=True)
            )
            for u, v in pairs
        ]
        top = max(gains, default=0)
        # Links that gain one are all alike, so they are not drawn one by one.
        if top < 2:
            return links
        best = min((d, pair) for d, pair, g in zip(draws, pairs, gains, strict=True) if g == top)
        links.append(best[1])


cases = st.tuples(st.integers(2, 14), st.integers(1, 8), st.integers(0, 10**6))


@settings(max_examples=40, deadline=None)
@given(cases, st.sampled_from([2, 3, 100]), st.sampled_from([1, 10**6]))
def test_greedy_merge_chooses_as_if_it_looked_at_all_pairs(
    case: tuple[int, int, int], most: int, listed: int
) -> None:
    nodes, topics, seed = case
    interest = draw_interest(nodes, topics, seed, 0.5)
    plain = plain_greedy(interest, nodes, seed, most)
    kept, merge.LISTED = merge.LISTED, listed
    try:
        wants = wants_in(interest, nodes)
        found = merge.merge_parts(wants, merge.apart(wants), most, seed, never)
    finally:
        merge.LISTED = kept
    assert ends(found, nodes)[: len(plain)] == plain
    open_parts = [parts_of(members, ends(found, nodes)) for members in interest]
    degrees = degrees_of(found, nodes)
    free = set(np.flatnonzero(degrees < most).tolist())
    assert all(sum(bool(part & free) for part in own) <= 1 for own in open_parts)
    if most == 100:
        assert len(found) == len(plain) + sum(
            len(parts_of(members, plain)) - 1 for members in interest
        )


@settings(max_examples=40, deadline=None)
@given(cases)
def test_every_method_connects_each_topic(case: tuple[int, int, int]) -> None:
    nodes, topics, seed = case
    interest = draw_interest(nodes, topics, seed)
    wants = wants_in(interest, nodes)
    greedy, flat = greedy_merge(wants, seed, never), flat_merge(wants, seed, never)
    ours, low = fewest_links(wants, None, seed, never), lowest_degree(wants, seed, never)
    told_to_stop = greedy_merge(wants, seed, lambda _: True)
    for links in (greedy, flat, ours, low, told_to_stop, separate_trees(wants)):
        assert len(np.unique(links)) == len(links)
        assert connects(interest, ends(links, nodes))
        bound = mesh_bound(wants)
        assert bound.links <= len(links)
        assert bound.degree <= degrees_of(links, nodes).max(initial=0)
    assert len(ours) <= len(greedy)
    key = [(degrees_of(links, nodes).max(initial=0), len(links)) for links in (low, flat)]
    assert key[0] <= key[1]


@settings(max_examples=40, deadline=None)
@given(cases)
def test_the_check_proves_the_same_bounds(case: tuple[int, int, int]) -> None:
    nodes, topics, seed = case
    interest = draw_interest(nodes, topics, seed)
    names = [str(topic) for topic in range(len(interest))]
    wants = wants_in(interest, nodes)
    problem = MeshProblem(pa.array([f"s{i}" for i in range(nodes)]), names, wants, "test")
    assert proved_bounds(problem) == tuple(mesh_bound(wants))


@pytest.mark.parametrize("seed", range(12))
def test_against_brute_force(seed: int) -> None:
    """The fewest links of all sets of links, and the lowest degree of all."""
    nodes = 5
    interest = draw_interest(nodes, 4, seed, 0.6)
    wants = wants_in(interest, nodes)
    pairs = list(combinations(range(nodes), 2))
    valid = [
        some
        for size in range(len(pairs) + 1)
        for some in combinations(pairs, size)
        if connects(interest, list(some))
    ]
    fewest = len(valid[0])
    degree = min(
        int(np.bincount(np.array(some, int).ravel(), minlength=nodes).max()) for some in valid
    )
    bound = mesh_bound(wants)
    assert bound.links <= fewest <= len(fewest_links(wants, None, seed, never)) <= fewest + 1
    lowest = lowest_degree(wants, seed, never)
    assert bound.degree <= degree <= degrees_of(lowest, nodes).max(initial=0) <= degree + 1


def test_one_link_serves_all_topics_of_two_nodes() -> None:
    wants = wants_in([{0, 1}, {0, 1}, {0, 1, 2}], 3)
    links = ends(greedy_merge(wants, 0, never), 3)
    assert links[0] == (0, 1)
    assert len(links) == 2
    assert mesh_bound(wants).links == 2


def test_a_limit_of_links_is_exceeded_only_where_it_must_be() -> None:
    """A node that shares a topic with each of four others needs four links."""
    interest = [{0, other} for other in range(1, 5)] + [{5, 6, 7, 8}]
    wants = wants_in(interest, 9)
    links = merge_from(wants, 1, 0, never)
    assert degrees_of(links, 9).tolist()[0] == 4
    assert mesh_bound(wants).degree == 4


def test_spare_links_go() -> None:
    """In a triangle of nodes that want the same, one link is enough for each but one."""
    wants = wants_in([{0, 1, 2}], 3)
    assert len(without_spare(wants, np.array([1, 2, 5]))) == 2
    assert mesh_bound(wants) == (2, 2), "two links are 4/3 a node, so somebody has two"
