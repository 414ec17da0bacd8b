"""No channel has fewer than two members: in no method, under no limit, and in no stored plan."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from datasets import (
    BY_INTEREST,
    Flow,
    World,
    make_problem,
    plan_dataset,
    save_plan,
    write_dataset,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from fanplan.core.prices import Weights
from fanplan.core.stop import never
from fanplan.data.interest import InterestProblem, load_interest
from fanplan.layers.channels.ledger import analytic_ledger, completed, map_cost
from fanplan.layers.channels.lone import Kept, counted_fraction, kept_by, tidied
from fanplan.layers.channels.map import Bound, ChannelMap, map_pairs
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.methods import channels_by_method, find_method
from fanplan.layers.channels.published.params import HybridParams
from fanplan.layers.channels.published.second_step.two_step import SECOND_STEPS
from fanplan.layers.channels.search.kmodes import kmodes
from fanplan.verbs.check import check_plan

USERS = 6
QUICK: dict[str, Any] = {"swaps": 8, "passes": 3, "exact": False}
rows = st.lists(
    st.tuples(st.sets(st.integers(0, USERS - 1), min_size=1), st.integers(0, 20)),
    min_size=1,
    max_size=8,
).filter(lambda found: any(messages for _, messages in found))
problems = rows.map(
    lambda found: make_problem([a for a, _ in found], [float(m) for _, m in found], USERS)
)
HYBRIDS = [f"tock+{name}" for name in SECOND_STEPS if "iterative" not in name]


def members(map: ChannelMap) -> list[set[int]]:
    starts = map.members.starts(map.channels)
    return [set(map.members.right[first:end].tolist()) for first, end in pairwise(starts)]


def assert_shared(map: ChannelMap) -> None:
    """Every channel carries something to two or more, and no two are the same."""
    assert set(map.assigned.right.tolist()) == set(range(map.channels))
    assert all(len(who) > 1 for who in members(map))
    assert len({frozenset(who) for who in members(map)}) == map.channels


@settings(max_examples=300, deadline=None)
@given(problems, st.sampled_from([*BY_INTEREST, *HYBRIDS]), st.integers(1, 4), st.integers(0, 3))
def test_every_method_has_channels_that_several_share(
    problem: InterestProblem, name: str, channels: int, seed: int
) -> None:
    method = find_method(*name.split("+", 1))
    params = method.params(min(channels, problem.flow_count))
    made = channels_by_method(problem, method, params, seed)
    assert_shared(made.map)
    assert made.ledger.missed == 0
    raw = method.planner(problem, params, seed, never)
    assert made.cost <= map_cost(problem, raw, Weights()) * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(problems, st.sampled_from(HYBRIDS), st.sampled_from([0.0, 0.1, 0.4]), st.integers(0, 3))
def test_closing_keeps_a_limit_on_unicast(
    problem: InterestProblem, name: str, limit: float, seed: int
) -> None:
    method = find_method(*name.split("+", 1))
    params = HybridParams(min(3, problem.flow_count), unicast_limit=limit)
    made = channels_by_method(problem, method, params, seed)
    assert_shared(made.map)
    assert made.counted <= limit + 1e-12


@settings(max_examples=60, deadline=None)
@given(problems, st.floats(1.0, 4.0), st.sampled_from([None, 0.0, 0.3]), st.integers(1, 3))
def test_kmodes_opens_no_channel_for_one_where_unicast_is_dear(
    problem: InterestProblem, dear: float, limit: float | None, channels: int
) -> None:
    w = Weights(w3=dear)
    params = KmodesParams(channels, w, unicast_limit=limit, **QUICK)
    map = tidied(problem, kmodes(problem, params, 1, never), kept_by(params))
    assert_shared(map)
    assert limit is None or counted_fraction(problem, map) <= limit
    everywhere = w.unicast * float(problem.messages @ problem.audience_sizes)
    assert limit is not None or map_cost(problem, map, w) <= everywhere * (1 + 1e-9)


def test_what_one_wants_is_unicast_also_where_none_is_allowed() -> None:
    problem = make_problem([{0}, {0, 1}], [1.0, 0.0], 2)
    map = kmodes(problem, KmodesParams(1, unicast_limit=0.0), 0, never)
    assert 0 in map.unicast.left
    assert map_cost(problem, map, Weights()) == 2.0
    method = find_method("tock", "greedy-flow")
    tock = channels_by_method(problem, method, HybridParams(1, unicast_limit=0.0))
    assert tock.cost == 2.0


def test_a_silent_flow_makes_nobody_join_a_channel() -> None:
    problem = make_problem([{0, 2}, {0, 1}], [1.0, 0.0], 3)
    map = kmodes(problem, KmodesParams(1, unicast_limit=0.0), 0, never)
    assert map_cost(problem, map, Weights()) == 3.0
    assert members(map) == [{0, 2}]


def test_channels_with_the_same_members_become_one() -> None:
    problem = make_problem([{0, 1}, {0, 1}, {1, 2}], [1.0, 2.0, 3.0], 3)
    pairs = map_pairs([0, 1, 2], [0, 2, 1]), map_pairs([0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 0, 1])
    map = completed(problem, 4, *pairs)
    once = tidied(problem, map, Kept())
    assert once.channels == 2
    assert once.assigned.right.tolist() == [0, 0, 1]
    assert map_cost(problem, once, Weights()) == map_cost(problem, map, Weights())
    assert tidied(problem, map, Kept(numbers=True)) == map
    assert tidied(problem, map, Kept(apart=True)).channels == 3


def test_a_pinned_flow_may_have_a_channel_for_one() -> None:
    problem = make_problem([{0}, {0, 1}], [1.0, 5.0], 2)
    params = KmodesParams(2, pinned=(0,), **QUICK)
    map = tidied(problem, kmodes(problem, params, 1, never), kept_by(params))
    assert 0 not in map.unicast.left
    assert map_cost(problem, map, Weights()) == 2.0 + 5 * 3.0


# ---- the check


WORLD = World((Flow(frozenset({0, 1}), 4.0), Flow(frozenset({1}), 3.0)), subscribers=2)


def lone_plan(folder: Path, pinned: tuple[str, ...] = (), **options: Any) -> Any:
    """A plan in which subscriber 1 has a channel of its own."""
    dataset = write_dataset(folder / "dataset", WORLD)
    problem = load_interest(dataset)
    pairs = map_pairs([0, 1], [0, 1]), map_pairs([0, 0, 1], [0, 1, 1])
    map, none = completed(problem, 2, *pairs), Bound(0.0, "distinct audiences")
    base = plan_dataset(dataset, "broadcast")
    made = replace(
        base,
        map=map,
        ledger=analytic_ledger(problem, map),
        bound=none,
        single_bound=none,
        params=replace(base.params, method="kmodes", pinned=pinned, options=options),
    )
    return dataset, made


def broken_by(dataset: Path, made: Any, folder: Path) -> str:
    """What the check says of a plan, which is then not saved."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the words are what counts
        save_plan(made, dataset, folder)
    assert not folder.exists()
    return str(caught.value)


def test_a_plan_with_a_channel_for_one_is_refused(tmp_path: Path) -> None:
    dataset, made = lone_plan(tmp_path)
    said = broken_by(dataset, made, tmp_path / "plan")
    assert "channels: fewer than 2 members (1): channel 1 has 1" in said


@pytest.mark.parametrize("wish", [{"pinned": ("t1",)}, {"lone": True}])
def test_unless_somebody_asked_for_it(tmp_path: Path, wish: Any) -> None:
    dataset, made = lone_plan(tmp_path, **wish)
    assert check_plan(save_plan(made, dataset, tmp_path / "plan").folder, dataset).ok


def test_a_channel_without_members_is_refused(tmp_path: Path) -> None:
    dataset, made = lone_plan(tmp_path)
    map = replace(made.map, members=map_pairs([0, 0], [0, 1]), unicast=map_pairs([1], [1]))
    ledger = analytic_ledger(load_interest(dataset), map)
    said = broken_by(dataset, replace(made, map=map, ledger=ledger), tmp_path / "plan")
    assert "channel 1 has 0" in said


@pytest.mark.parametrize(("limit", "ok"), [(0.5, True), (0.2, False)])
def test_the_check_counts_unicast_that_several_want(tmp_path: Path, limit: float, ok: bool) -> None:
    """All is sent by unicast: 8 messages that two want, and 3 that only one does."""
    dataset = write_dataset(tmp_path / "dataset", WORLD)
    plan = plan_dataset(dataset, "unicast", 0)
    wider = World((*WORLD.flows, Flow(frozenset({0}), 9.0)), 2)
    assert counted_fraction(load_interest(dataset), plan.map) == 8 / 11
    dataset = write_dataset(tmp_path / "wider", wider)
    plan = plan_dataset(dataset, "unicast", 0)
    limited = replace(plan, params=replace(plan.params, unicast_limit=limit))
    if ok:
        assert check_plan(save_plan(limited, dataset, tmp_path / "plan").folder, dataset).ok
    else:
        said = broken_by(dataset, limited, tmp_path / "plan")
        assert "unicast: too much that several want" in said
