"""CRAM and the placement of publishers, each against plain counting."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_allocation import problem_of, require_sound

from fanplan.core.errors import InputError
from fanplan.layers.overlay.allocation import cram
from fanplan.layers.overlay.allocation.allocation import (
    AllocationParams,
    Load,
    placing_of,
    ranked_allocation,
)
from fanplan.layers.overlay.allocation.bound import fewest_brokers
from fanplan.layers.overlay.allocation.cram import cram_allocation, merge_units, single_profiles
from fanplan.layers.overlay.allocation.phases import deployed
from fanplan.layers.overlay.allocation.publishers import (
    crossings,
    cut_messages,
    moved_publishers,
)
from fanplan.layers.overlay.params import CLOSENESS, AllocateParams, Closeness
from fanplan.layers.overlay.published.similar import overlap_tree
from fanplan.network.brokers import ClientProblem
from fanplan.network.trees import hang

Profile = frozenset[int]


def plain_closeness(metric: Closeness, one: Profile, other: Profile, rate: np.ndarray) -> float:
    shared, both = rate[[*one & other]].sum(), rate[[*one | other]].sum()
    if not shared:
        return 0.0
    if metric == "intersect":
        return float(shared)
    if metric == "xor":
        apart = both - shared
        return float(1 / apart) if apart > 1e-12 else 1e18
    return float(shared**2 / (both + shared if metric == "ios" else both))


def plain_clusters(problem: ClientProblem, metric: Closeness, room: float) -> set[frozenset[int]]:
    """Always the two closest that fit a broker together; brokers are plenty."""
    routes = problem.routes
    rate = routes.messages / problem.seconds
    reached = [set(routes.destinations(route).tolist()) for route in range(len(routes))]
    units = {
        s: (frozenset([s]), frozenset(r for r, who in enumerate(reached) if s in who))
        for s in range(len(problem.subscribers))
    }
    barred: set[tuple[int, int]] = set()
    while True:
        close = [
            (-np.float32(plain_closeness(metric, units[a][1], units[b][1], rate)), a, b)
            for a, b in combinations(sorted(units), 2)
            if (a, b) not in barred
        ]
        least, a, b = min(close, default=(0.0, 0, 0))
        if least == 0:
            return {members for members, _ in units.values()}
        wanted = units[a][1] | units[b][1]
        if rate[[*wanted]].sum() > room:
            barred.add((a, b))
            continue
        units[a] = (units[a][0] | units.pop(b)[0], wanted)
        barred = {pair for pair in barred if a not in pair and b not in pair}


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(CLOSENESS), st.sampled_from([6.0, 12.0, 30.0]))
def test_clusters_are_those_of_plain_sets(seed: int, metric: Closeness, capacity: float) -> None:
    problem = problem_of(4, 9, seed, capacity=capacity)
    placing = placing_of(problem, AllocationParams(lcf=1.0, load="exact"))
    units = single_profiles(placing)
    stack = np.arange(len(problem.brokers))
    merge_units(placing, units, stack, CLOSENESS.index(metric))
    found = {frozenset(np.flatnonzero(units.unit == u).tolist()) for u in np.unique(units.unit)}
    assert found == plain_clusters(problem, metric, capacity)


cases = st.tuples(st.integers(1, 10), st.integers(1, 30), st.integers(0, 10**6))


@settings(max_examples=25, deadline=None)
@given(
    cases,
    st.sampled_from(["estimate", "exact"]),
    st.sampled_from(CLOSENESS),
    st.sampled_from([0.4, 1.0]),
)
def test_loads_are_exact_and_limits_hold(
    case: tuple[int, int, int], load: Load, closeness: Closeness, lcf: float
) -> None:
    problem, params = problem_of(*case), AllocationParams(lcf=lcf, load=load)
    found = cram_allocation(problem, closeness, params)
    require_sound(problem, params, found)
    assert found.brokers >= fewest_brokers(problem, params)


def test_few_brokers_are_packed_or_units_stay_apart() -> None:
    """With as few brokers as there can be, a merge that leaves no packing is undone."""
    for seed in range(20):
        problem = problem_of(5, 14, seed, brokers=40, capacity=14.0)
        params = AllocationParams(lcf=1.0, load="exact")
        free = cram_allocation(problem, "ios", params)
        tight = problem_of(5, 14, seed, brokers=free.brokers, capacity=14.0)
        found = cram_allocation(tight, "ios", params)
        require_sound(tight, params, found)


def test_too_many_profiles_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cram, "MOST_UNITS", 3)
    with pytest.raises(InputError, match="pair by pair"):
        cram_allocation(problem_of(5, 14, 0), "ios", AllocationParams())


# ---- publishers


def joined_links(edges: list[tuple[int, int]], places: set[int], size: int) -> int:
    """Links of the smallest part of a tree with some places: those with some on both sides."""
    count = 0
    for i in range(len(edges)):
        others = np.array(edges[:i] + edges[i + 1 :], int).reshape(-1, 2)
        side = set(hang(others, edges[i][0], size).order.tolist())
        count += bool(places & side) and bool(places - side)
    return count


@pytest.mark.parametrize("seed", range(10))
def test_crossings_are_links_beyond_those_between_destinations(seed: int) -> None:
    random = np.random.default_rng(seed)
    size = 8
    edges = [(int(random.integers(0, b)), b) for b in range(1, size)]
    ends = [np.sort(random.choice(size, random.integers(0, 5), replace=False)) for _ in range(6)]
    publisher, messages = random.integers(0, 3, 6).astype(np.int32), random.integers(1, 9, 6)
    costs = crossings(
        hang(np.array(edges), 0, size), publisher,
        np.append(0, np.cumsum([len(end) for end in ends])),
        np.concatenate(ends).astype(np.int32), messages.astype(float), 3,
    )  # fmt: skip
    between = [joined_links(edges, set(end), size) for end in ends]
    for p in range(3):
        for broker in range(size):
            more = sum(
                messages[r] * (joined_links(edges, {broker, *ends[r]}, size) - between[r])
                for r in np.flatnonzero(publisher == p)
                if len(ends[r])
            )
            assert costs[p, broker] == more


@pytest.mark.parametrize("load", ["estimate", "exact"])
@pytest.mark.parametrize("seed", range(5))
def test_publishers_move_to_where_fewer_messages_cross(seed: int, load: Load) -> None:
    problem, params = problem_of(8, 30, seed, capacity=25.0), AllocationParams(load=load)
    before = deployed(problem, ranked_allocation(problem, "gli", params, 0), overlap_tree)
    moved = moved_publishers(problem, params, before)
    require_sound(problem, params, moved)
    assert (moved.broker[8:] == before.allocation.broker[8:]).all()
    after = cut_messages(
        problem, before, lambda _, found: deployed(problem, found, overlap_tree), params
    )
    assert after.ledger.link_messages <= before.ledger.link_messages
    if seed == 0:
        assert after.ledger.link_messages < before.ledger.link_messages


def test_options_that_do_not_go_together() -> None:
    for given_, told in (
        ({"closeness": "ios"}, "ranking cram"),
        ({"publishers": "cut", "trees": 2}, "one tree"),
        ({"fewest": "messages", "trees": 2}, "one tree"),
        ({"fewest": "messages", "ranking": "cram"}, "does not look at messages"),
        ({"ranking": "cram", "start": "older"}, "always allocates afresh"),
    ):
        with pytest.raises(InputError, match=told):
            AllocateParams.given(given_)
