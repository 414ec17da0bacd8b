"""kmodes: optimal where the optimum is known, honest about its cost, and within all limits."""

from __future__ import annotations

import json
import math
from importlib import import_module
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import pytest
from datasets import make_problem
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from fanplan.core.errors import InfeasibleError, InputError
from fanplan.core.ledger import cost
from fanplan.core.prices import Weights
from fanplan.core.stop import Stop, never
from fanplan.data.build import from_pairs, from_workload
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.bounds import best_bounds
from fanplan.layers.channels.ledger import analytic_ledger, perfect
from fanplan.layers.channels.lone import counted_fraction, kept_by, tidied
from fanplan.layers.channels.map import NO_PAIRS, ChannelMap, MapPairs, map_changes, map_pairs
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.published.exact import ExactParams, exact
from fanplan.layers.channels.published.params import FirstStepParams, HybridParams
from fanplan.layers.channels.published.second_step.two_step import MOVES
from fanplan.layers.channels.published.tock import tock
from fanplan.layers.channels.search.effort import Effort
from fanplan.layers.channels.search.kmodes import kmodes
from fanplan.layers.channels.search.model.assign import assign_rows, total_gain
from fanplan.layers.channels.search.model.cover import empty_cover, from_map
from fanplan.layers.channels.search.ruled.exchange import perturbed
from fanplan.layers.channels.search.ruled.flips import flip_members
from fanplan.layers.channels.search.ruled.obey import is_served, serve_by_clusters
from fanplan.layers.channels.search.task import make_task
from fanplan.layers.channels.search.unicast_limit import Allowed, fill_up
from fanplan.workload.generators import load_kind

USERS = 6
THREADS: int = vars(numba.config)["NUMBA_NUM_THREADS"]
QUICK: dict[str, Any] = {"swaps": 16, "passes": 4, "exact": False}
"""These instances are tiny; what is tested here is the search for larger ones."""
weight = st.floats(0.2, 4.0)
weights = st.one_of(st.just(Weights()), st.builds(Weights, weight, weight, weight))
instances = st.lists(
    st.tuples(st.sets(st.integers(0, USERS - 1), min_size=1), st.integers(0, 20)),
    min_size=1,
    max_size=8,
).map(lambda rows: make_problem([a for a, _ in rows], [float(m) for _, m in rows], USERS))
searching = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def generated(name: str, **sizes: int) -> InterestProblem:
    kind = load_kind(name)
    return from_workload(kind.generate(kind.params(**sizes), 1))


def wanted_by(wanted: np.ndarray, messages: np.ndarray) -> InterestProblem:
    """Who wants what as a matrix, rows × users."""
    row, user = np.nonzero(wanted)
    return from_pairs(row, user, messages)


def themed(rows: int, users: int, themes: int, seed: int) -> InterestProblem:
    """Rows that want a theme's users, give or take a few: what channels are good for."""
    random = np.random.default_rng(seed)
    theme = random.random((themes, users)) < 0.15
    wanted = theme[random.integers(0, themes, rows)] ^ (random.random((rows, users)) < 0.03)
    return wanted_by(wanted, random.pareto(1.5, rows) + 0.1)


def tiny(seed: int) -> InterestProblem:
    random = np.random.default_rng(seed)
    wanted = random.random((9, 7)) < random.uniform(0.2, 0.7)
    wanted[np.arange(9), random.integers(0, 7, 9)] = True
    sets = [set(np.flatnonzero(row)) for row in wanted]
    return make_problem(sets, random.integers(1, 20, 9), 7)


def listened(heard: list[float]) -> Stop:
    """Never stops, and keeps what it was told."""

    def stop(best: float) -> bool:
        heard.append(best)
        return False

    return stop


def cost_of(problem: InterestProblem, map: ChannelMap, w: Weights | None = None) -> float:
    ledger = analytic_ledger(problem, map)
    assert ledger.missed == 0
    return cost(ledger, w or Weights())


def test_optimal_on_random_tiny_instances() -> None:
    """More starts only where a few do not find the optimum: as a user would, but knowing it."""
    for seed in range(100):
        problem = tiny(seed)
        best = cost_of(problem, exact(problem, ExactParams(3), 0, never))
        for starts in (2, 8, 40, 200):
            params = KmodesParams(3, starts=starts, swaps=32, exact=False)
            found = cost_of(problem, kmodes(problem, params, seed, never))
            if found <= best * (1 + 1e-9):
                break
        assert found == pytest.approx(best), seed


def test_multicast_alone_is_near_the_optimum_on_random_tiny_instances() -> None:
    over = []
    for seed in range(30):
        problem = tiny(seed)
        best = exact(problem, ExactParams(3, multicast_only=True), 0, never)
        params = KmodesParams(3, starts=2, swaps=32, unicast_limit=0.0, exact=False)
        found = kmodes(problem, params, seed, never)
        assert counted_fraction(problem, found) == 0
        over.append(cost_of(problem, found) / cost_of(problem, best) - 1)
    assert max(over) < 0.06
    assert np.mean(over) < 0.01


@searching
@given(instances, weights, st.integers(1, 3), st.booleans())
def test_valid_and_between_bound_and_unicast(
    problem: InterestProblem, w: Weights, channels: int, multiple: bool
) -> None:
    params = KmodesParams(channels, w, multiple=multiple, **QUICK)
    reported: list[float] = []
    map = kmodes(problem, params, 1, listened(reported))
    total = cost_of(problem, map, w)
    unicast = w.unicast * float(problem.messages @ problem.audience_sizes)
    assert total <= unicast * (1 + 1e-9)
    assert best_bounds(problem, w, channels)[0 if multiple else 1].cost <= total * (1 + 1e-9)
    assert multiple or map.assigned.counts(problem.size).max(initial=0) <= 1
    assert all(best >= total * (1 - 1e-9) for best in reported)


limits = st.fixed_dictionaries(
    {
        "unicast_limit": st.sampled_from([None, 0.0, 0.1, 0.5]),
        "max_channels_per_subscriber": st.one_of(
            st.none(), st.integers(1, 2), st.lists(st.integers(0, 3), min_size=6, max_size=6)
        ),
        "max_channel_rate": st.one_of(st.none(), st.integers(1, 60).map(float)),
        "pin": st.booleans(),
        "off": st.booleans(),
        "multiple": st.booleans(),
    }
)


@settings(searching, max_examples=150)
@given(instances, st.integers(1, 4), limits, st.integers(0, 3))
def test_limits_are_kept_or_called_infeasible(
    problem: InterestProblem, channels: int, chosen: Any, seed: int
) -> None:
    chosen = dict(chosen)
    pinned = (0,) if chosen.pop("pin") else ()
    off = (problem.size - 1,) if chosen.pop("off") else ()
    if set(pinned) & set(off) or (off and chosen["unicast_limit"] == 0):
        off = ()
    params = KmodesParams(channels, pinned=pinned, off_multicast=off, **chosen, **QUICK)
    map = planned(problem, params, seed)
    if map is None:
        assert chosen["max_channels_per_subscriber"] or chosen["max_channel_rate"] or off
    else:
        assert_within(problem, map, params)


def planned(problem: InterestProblem, params: KmodesParams, seed: int) -> ChannelMap | None:
    try:
        return kmodes(problem, params, seed, never)
    except InfeasibleError:
        return None


def assert_within(problem: InterestProblem, map: ChannelMap, params: KmodesParams) -> None:
    ledger = analytic_ledger(problem, map)
    assert ledger.missed == 0
    assert no_channel_is_lone(map, params.pinned)
    if params.unicast_limit is not None:
        assert counted_fraction(problem, map) <= params.unicast_limit
    joined = np.bincount(map.members.right, minlength=len(problem.subscribers))
    if params.max_channels_per_subscriber is not None:
        assert np.all(joined <= np.asarray(params.max_channels_per_subscriber))
    load = np.bincount(map.assigned.right, problem.messages[map.assigned.left], map.channels)
    if params.max_channel_rate is not None:
        assert np.all(load <= params.max_channel_rate * (1 + 1e-9))
    assert not np.isin(map.unicast.left, params.pinned).any()
    assert not np.isin(map.assigned.left, params.off_multicast).any()
    assert params.multiple or map.assigned.counts(problem.size).max(initial=0) <= 1


def no_channel_is_lone(map: ChannelMap, pinned: tuple[int, ...] = ()) -> bool:
    """Whether two or more share every channel that carries something, but for pinned rows."""
    asked = map.assigned.right[np.isin(map.assigned.left, pinned)]
    used = np.setdiff1d(np.union1d(map.assigned.right, map.members.left), asked)
    return bool((map.members.counts(map.channels)[used] >= 2).all())


def test_relaxation_named_by_an_infeasible_limit_would_do() -> None:
    problem = make_problem([{0, 1}, {1, 2}, {0, 2}], [4.0, 3.0, 2.0], 3)
    with pytest.raises(InfeasibleError, match="max_channel_rate") as caught:
        kmodes(problem, KmodesParams(2, unicast_limit=0.0, max_channel_rate=4.0), 1, never)
    enough = caught.value.value
    assert 5.0 <= enough <= 5.001
    params = KmodesParams(2, unicast_limit=0.0, max_channel_rate=enough * (1 + 1e-9))
    assert_within(problem, kmodes(problem, params, 1, never), params)


def test_excluded_subscriber_is_named() -> None:
    problem = make_problem([{0, 1}], [4.0], 2)
    params = KmodesParams(1, pinned=(0,), max_channels_per_subscriber=[1, 0])
    with pytest.raises(InfeasibleError, match="subscriber 's1'"):
        kmodes(problem, params, 1, never)


def test_unicast_forced_by_rows_off_multicast_is_computed() -> None:
    problem = make_problem([{0, 1}, {1, 2}], [1.0, 2.0], 3)
    params = KmodesParams(1, off_multicast=(0,), unicast_limit=0.25)
    with pytest.raises(InfeasibleError, match="unicast_limit") as caught:
        kmodes(problem, params, 1, never)
    assert caught.value.value == pytest.approx(2 / 4)


def test_better_than_any_single_stage_on_structured_interest() -> None:
    problem = generated("websphere", topics=800, processes=40)
    least = perfect(problem, Weights())
    lloyd_only = cost_of(problem, kmodes(problem, KmodesParams(15, swaps=0), 1, never))
    full = cost_of(problem, kmodes(problem, KmodesParams(15), 1, never))
    one = cost_of(problem, kmodes(problem, KmodesParams(15, multiple=False), 1, never))
    assert least < full <= min(lloyd_only, one)


@pytest.mark.parametrize(
    "options", [{}, {"unicast_limit": 0.0}, {"max_channels_per_subscriber": 2}]
)
def test_same_map_on_any_number_of_threads(options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("fanplan.layers.channels.search.model.assign"), "PARALLEL", 0)
    problem = themed(1500, 60, 25, seed=2)
    params = KmodesParams(12, swaps=32, **options)
    before = numba.get_num_threads()
    maps = []
    try:
        for threads in sorted({1, min(2, THREADS), before}):
            numba.set_num_threads(threads)
            maps.append(kmodes(problem, params, 5, never))
    finally:
        numba.set_num_threads(before)
    assert len(maps) >= 1 + (THREADS > 1)
    assert all(map == maps[0] for map in maps)


def test_stopping_at_once_still_gives_a_valid_map() -> None:
    problem = themed(400, 40, 10, seed=3)
    for limit in (None, 0.0, 0.2):
        params = KmodesParams(8, starts=3, unicast_limit=limit)
        assert_within(problem, kmodes(problem, params, 1, lambda best: True), params)


def test_seeding_stops_between_channels_and_reports_what_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seed = import_module("fanplan.layers.channels.search.free.seed")
    monkeypatch.setattr(seed, "ROWS_AT_A_TIME", 0)
    problem = themed(400, 40, 10, seed=3)
    task = make_task(problem, KmodesParams(8))
    heard: list[float] = []
    told, ended = (
        Effort(task.params, np.random.default_rng(1), stop, 0.0)
        for stop in (listened(heard), lambda c: True)
    )
    members = seed.seed_members(task.demand, 8, told)
    part = seed.seed_members(task.demand, 8, ended)
    assert len(heard) == 8
    assert heard == sorted(heard, reverse=True)
    assert heard[-1] == pytest.approx(-total_gain(task.demand, assign_rows(task.demand, members)))
    assert np.array_equal(part[:, :1], members[:, :1])
    assert not part[:, 1:].any()


@searching
@given(instances, st.integers(2, 4), st.integers(1, 3), st.integers(0, 5))
def test_flips_serve_everybody_at_no_higher_cost(
    problem: InterestProblem, channels: int, limit: int, seed: int
) -> None:
    params = KmodesParams(channels, unicast_limit=0.0, max_channels_per_subscriber=limit)
    task = make_task(problem, params)
    demand = task.priced(task.rules.hard)
    nothing = empty_cover(demand.size, demand.users, channels)
    served = serve_by_clusters(demand, nothing, task.rules, np.arange(channels))
    assert served is not None
    cover = perturbed(served, task.rules, np.random.default_rng(seed))
    assume(is_served(demand, cover, task.rules.hard))
    after = flip_members(demand, cover, task.rules)
    assert is_served(demand, after, task.rules.hard)
    assert np.all(after.members.sum(axis=1) <= limit)
    assert cost_of(problem, task.map(after)) <= task.cost(cover) * (1 + 1e-9)


@settings(searching, max_examples=40)
@given(instances, weights, st.integers(1, 4), st.integers(0, 3), st.sampled_from([0.0, 0.2, 0.6]))
def test_never_worse_than_the_papers_methods_under_the_same_limit(
    problem: InterestProblem, w: Weights, channels: int, seed: int, most: Any
) -> None:
    """Multicast only: Tock. Else Tock and the better of greedy flow and greedy user."""
    channels = min(channels, problem.flow_count)
    params = HybridParams(channels, w, unicast_limit=most)
    first = tock(problem, params, seed, never)
    moved = [MOVES[f"greedy-{what}"](problem, first, params, never) for what in ("flow", "user")]
    theirs = [tidied(problem, map, kept_by(params)) for map in moved]
    ours = kmodes(problem, KmodesParams(channels, w, unicast_limit=most, **QUICK), seed, never)
    least = min(cost_of(problem, map, w) for map in theirs)
    assert cost_of(problem, ours, w) <= least * (1 + 1e-9)


def test_multicast_alone_is_no_worse_than_rows_moved_one_by_one() -> None:
    """Without structure, user clusters and modes lose to plain moves: these must be tried too."""
    problem = wanted_by(np.random.default_rng(8).random((100, 60)) < 0.1, np.ones(100))
    ours = kmodes(problem, KmodesParams(8, unicast_limit=0.0, **QUICK), 1, never)
    moved = tock(problem, FirstStepParams(8), 1, never)
    assert cost_of(problem, ours) <= cost_of(problem, moved)


def test_more_unicast_allows_a_lower_cost_also_between_the_ends() -> None:
    """Without structure, a price finds multicast alone or nearly all unicast, nothing between."""
    wanted = np.random.default_rng(8).random((150, 60)) < 0.06
    wanted[:, 0] = True
    problem = wanted_by(wanted, np.ones(150))
    costs = [
        cost_of(problem, kmodes(problem, KmodesParams(8, unicast_limit=f, **QUICK), 1, never))
        for f in (0.0, 0.2, 0.4, 0.6)
    ]
    assert all(after < 0.98 * before for before, after in pairwise(costs))


@searching
@given(instances, st.integers(2, 4), st.integers(0, 3), st.sampled_from([0.1, 0.4, 0.8]))
def test_filling_keeps_the_limit_and_the_pinned_rows_at_no_higher_cost(
    problem: InterestProblem, k: int, seed: int, most: Any
) -> None:
    task = make_task(problem, KmodesParams(k, unicast_limit=most, pinned=(0,)))
    first = from_map(
        tock(problem, FirstStepParams(min(k, problem.flow_count)), seed, never),
        problem.size,
        USERS,
        k,
    )
    after = fill_up(task.demand, first, task.rules, Allowed(most, task.beside), 4)
    assert task.unicast_fraction(after) <= most
    assert is_served(task.demand, after, task.rules.hard)
    assert cost_of(problem, task.map(after)) <= task.cost(first) * (1 + 1e-9)


def test_heavy_rows_lead_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = themed(1500, 60, 15, seed=4)
    whole = cost_of(problem, kmodes(problem, KmodesParams(15, swaps=64), 1, never))
    # By its path it would be looked up on the function kmodes of the parent package.
    search = import_module("fanplan.layers.channels.search.free.search")
    monkeypatch.setattr(search, "LEAST_HEAVY", 300)
    part = cost_of(problem, kmodes(problem, KmodesParams(15, swaps=64, heavy=0.2), 1, never))
    assert math.isclose(part, whole, rel_tol=0.05)


def test_many_users_do_not_overflow() -> None:
    users = np.arange(70_000)
    rows = np.concatenate((np.zeros(70_000, int), np.ones(69_999, int)))
    problem = from_pairs(rows, np.concatenate((users, users[1:])), [1.0, 1.0])
    map = kmodes(problem, KmodesParams(1), 1, never)
    assert cost_of(problem, map) == 2 * 70_001


def test_warm_start_from_the_own_result_changes_nothing() -> None:
    problem = themed(600, 50, 12, seed=6)
    first = kmodes(problem, KmodesParams(10, swaps=64), 1, never)
    price = 0.01 * cost_of(problem, first)
    for options in ({"change_price": price}, {"max_changes": 0}):
        params = KmodesParams(10, start=first, swaps=64, **options)
        assert kmodes(problem, params, 2, never) == first


def only_rows(assigned: MapPairs, size: int) -> MapPairs:
    keep = assigned.left < size
    return map_pairs(assigned.left[keep], assigned.right[keep])


@settings(searching, max_examples=40)
@given(instances, instances, st.integers(0, 6), st.integers(0, 3))
def test_changes_stay_within_their_maximum(old: Any, new: Any, most: int, seed: int) -> None:
    first = kmodes(old, KmodesParams(2, **QUICK), seed, never)
    start = ChannelMap(2, only_rows(first.assigned, new.size), first.members, NO_PAIRS)
    params = KmodesParams(2, start=start, max_changes=most, **QUICK)
    map = kmodes(new, params, seed, never)
    assert sum(map_changes(start, map)) <= most
    none = KmodesParams(2, start=start, max_changes=0, **QUICK)
    assert cost_of(new, map) <= cost_of(new, kmodes(new, none, seed, never)) * (1 + 1e-9)


def test_more_changes_allow_a_lower_cost() -> None:
    problem = themed(500, 40, 10, seed=7)
    start = ChannelMap(8, NO_PAIRS, NO_PAIRS, NO_PAIRS)
    costs = []
    for most in (0, 60, 400, 4000):
        params = KmodesParams(8, start=start, max_changes=most, swaps=32)
        map = kmodes(problem, params, 1, never)
        assert sum(map_changes(start, map)) <= most
        costs.append(cost_of(problem, map))
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < 0.95 * costs[0]


def test_a_new_channel_is_used_as_far_as_changes_go() -> None:
    """Three loud rows lack a channel; one for the loudest costs four changes and no more."""
    audiences = [{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {8}]
    problem = make_problem(audiences, [9.0, 30.0, 20.0, 1.0], 9)
    start = ChannelMap(1, map_pairs([0], [0]), map_pairs([0, 0, 0], [0, 1, 2]), NO_PAIRS)
    for most, gone in ((3, set()), (4, {1}), (7, {1}), (8, {1, 2})):
        map = kmodes(problem, KmodesParams(3, start=start, max_changes=most), 0, never)
        assert sum(map_changes(start, map)) <= most
        assert set(map.unicast.left.tolist()) == {1, 2, 3} - gone


def test_changes_are_counted_by_kind() -> None:
    old = ChannelMap(2, map_pairs([0, 1], [0, 1]), map_pairs([0, 1], [3, 4]), NO_PAIRS)
    new = ChannelMap(2, map_pairs([0, 1], [0, 0]), map_pairs([0, 0, 1], [3, 5, 4]), NO_PAIRS)
    counted = map_changes(old, new)
    assert (counted.joins, counted.leaves, counted.added, counted.removed) == (1, 0, 1, 1)
    assert sum(counted) == 3


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"channels": 0}, "channels"),
        ({"starts": 0}, "starts"),
        ({"unicast_limit": 1.5}, "unicast_limit"),
        ({"max_channel_rate": -1.0}, "max_channel_rate"),
        ({"max_channels_per_subscriber": -1}, "max_channels_per_subscriber"),
        ({"max_channels_per_subscriber": [1]}, "1 limits for 2 subscribers"),
        ({"pinned": (0,), "off_multicast": (0,)}, "row 0 must go by multicast and must not"),
        ({"unicast_limit": 0.0, "off_multicast": (0,)}, "off_multicast"),
        ({"pinned": (7,)}, "no row 7"),
        ({"max_changes": 3}, "start"),
    ],
)
def test_wrong_parameters_are_named(options: Any, match: str) -> None:
    problem = make_problem([{0, 1}, {1}], [1.0, 1.0], 2)
    with pytest.raises(InputError, match=match):
        kmodes(problem, KmodesParams(**{"channels": 1, **options}), 1, never)


def test_recorded_parameters_are_plain() -> None:
    problem = make_problem([{0, 1}, {1}], [1.0, 1.0], 2)
    start = kmodes(problem, KmodesParams(1), 1, never)
    numbers: dict[str, Any] = {"max_channels_per_subscriber": np.array([1, 1])}
    params = KmodesParams(1, start=start, pinned=tuple(np.zeros(1, int)), **numbers)
    recorded = json.loads(json.dumps(params.recorded()))
    assert recorded["start"] is True
    assert recorded["max_channels_per_subscriber"] == [1, 1]
    assert "weights" not in recorded
