"""Merged descriptors: counts against sets of regions, and the best marking against all markings."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marking_worlds import Literal, all_markings, random_shared_problem, random_source_problem

from fanplan.core.arrays import Longs
from fanplan.core.errors import InputError
from fanplan.layers.marking import merged as marking_merged
from fanplan.layers.marking.check import recount
from fanplan.layers.marking.ledger import cost_of_marks, violations
from fanplan.layers.marking.merged import merged_counts
from fanplan.layers.marking.problem.covers import BothCovers, Covers, covering_nodes, uncovered
from fanplan.layers.marking.problem.marking import MarkingProblem
from fanplan.layers.marking.search.marking import exact_marking

Region = tuple[int, int, int]
"""A topic, and the ends of an interval."""
Regions = dict[int, set[Region]]


def draw_regions(rng: np.random.Generator, counts: Longs) -> Regions:
    """At each node that has any about as many regions as it counts, none covers another there."""
    found = {}
    for node in np.flatnonzero(counts).tolist():
        topic, lo = rng.integers(0, 2, counts[node]), rng.integers(0, 3, counts[node])
        rows = zip(topic, lo, lo + rng.integers(1, 4, counts[node]), strict=True)
        found[node] = maximal({(int(t), int(a), int(b)) for t, a, b in rows})
    return found


def maximal(regions: set[Region]) -> set[Region]:
    """Those that no other one covers."""
    return {r for r in regions if not any(r != o and covers(o, r) for o in regions)}


def covers(one: Region, other: Region) -> bool:
    return one[0] == other[0] and one[1] <= other[1] and other[2] <= one[2]


def covers_among(regions: Regions) -> Covers:
    """As the pipeline finds them."""
    rows = [(node, *region) for node, own in regions.items() for region in sorted(own)]
    node, topic, lo, hi = np.array(rows, np.int64).reshape(-1, 4).T
    ends = lo[:, None].astype(float), hi[:, None].astype(float)
    assert uncovered(topic * (node.max() + 1) + node, *ends).all()
    found = covering_nodes(topic, node, *ends, 10**6)
    assert found is not None
    some = np.diff(found[0]) > 0
    starts = np.concatenate(([0], found[0][1:][some]))
    return Covers(node[some], np.ones(some.sum(), np.int64), starts, found[1])


def world(seed: int, shared: bool) -> tuple[MarkingProblem, Regions, Regions]:
    make = random_shared_problem if shared else random_source_problem
    problem, rng = make(seed, nodes=5), np.random.default_rng(seed)
    published, subscribed = (draw_regions(rng, m) for m in (problem.published, problem.subscribed))
    counts = np.zeros((2, len(problem.nodes)), np.int64)
    for count, regions in zip(counts, (published, subscribed), strict=True):
        count[[*regions]] = [len(own) for own in regions.values()]
    problem = dataclasses.replace(problem, published=counts[0], subscribed=counts[1])
    return problem, published, subscribed


def joint(regions: Regions, nodes: set[int]) -> int:
    """Descriptors that have to travel for some nodes together."""
    return len(maximal(set().union(*(regions.get(node, set()) for node in nodes))))


def literal_cost(literal: Literal, publish: np.ndarray, ads: Regions, subs: Regions) -> int:
    """Eq. 2 with what travels by the marks themselves, merged link by link."""
    marked = dict(zip(literal.links, publish.tolist(), strict=True))
    return sum(
        joint(ads, literal.senders(link, marked)) + joint(subs, literal.behind(link, marked))
        for link in literal.links
    )


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.booleans())
def test_counts_are_those_of_joint_regions(seed: int, shared: bool) -> None:
    problem, ads, subs = world(seed, shared)
    covers = BothCovers(covers_among(ads), covers_among(subs))
    counts = merged_counts(problem, covers)
    literal = Literal(problem)
    for counted, regions, who, publish in (
        (counts.sigma, ads, literal.senders, True),
        (counts.tau, subs, literal.behind, False),
    ):
        marked = dict.fromkeys(literal.links, publish)
        assert counted.tolist() == [joint(regions, who(link, marked)) for link in literal.links]
    links, recounted = recount(problem, covers)
    assert links.tolist() == [*range(problem.size)]
    assert [own.tolist() for own in recounted] == [own.tolist() for own in counts]


def test_the_best_merged_marking_is_the_best_of_all() -> None:
    saved = 0.0
    for seed in range(24):
        problem, ads, subs = world(seed, shared=seed % 2 == 0)
        if problem.size > 9:
            continue
        counts = merged_counts(problem, BothCovers(covers_among(ads), covers_among(subs)))
        best, literal = exact_marking(problem, counts), Literal(problem)
        costs = [
            literal_cost(literal, publish, ads, subs)
            for publish in all_markings(problem.size)
            if not violations(problem, publish).size
        ]
        assert best.cost == min(costs) == literal_cost(literal, best.publish, ads, subs)
        saved += cost_of_marks(problem, counts, exact_marking(problem).publish) - best.cost
    assert saved > 0


@pytest.mark.parametrize("shared", [False, True])
def test_what_would_take_hours_is_refused(monkeypatch: pytest.MonkeyPatch, shared: bool) -> None:
    problem, ads, subs = world(3, shared)
    monkeypatch.setattr(marking_merged, "STEPS", 1)
    with pytest.raises(InputError, match=r"merge: up to .* Mark without merging"):
        merged_counts(problem, BothCovers(covers_among(ads), covers_among(subs)))
