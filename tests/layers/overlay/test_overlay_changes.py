"""From one overlay to another: trees stay trees, limits hold where they can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overlay_worlds import random_world, write_overlay_dataset
from ready import stages_are_there

import fanplan
from fanplan.core.errors import InputError
from fanplan.layers.overlay.changes.changes import looser, ordered_overlay, stage_overlay
from fanplan.layers.overlay.changes.shape import Evidence, Shape, by_name, judge_overlay
from fanplan.layers.overlay.record import LimitsRecord, OverlayRecord
from fanplan.layers.registry import load_plan
from fanplan.network.brokers import Routes


@pytest.fixture(autouse=True)
def _stages_are_there() -> Iterator[None]:
    """The datasets here come with the stages that Spark would make."""
    with stages_are_there():
        yield


def random_shape(seed: int, names: list[str], trees: int, clients: int) -> Shape:
    draw = np.random.default_rng(seed)

    def tree() -> set[tuple[str, str]]:
        order = draw.permutation(names).tolist()
        return {by_name(order[i], order[int(draw.integers(i))]) for i in range(1, len(order))}

    homes = {
        (f"c{i}", role): set(draw.choice(names, size=draw.integers(1, 3)).tolist())
        for i in range(clients)
        for role in ("publisher", "subscriber")
        if draw.random() < 0.8
    }
    of = {name: int(draw.integers(trees)) for name in names}
    return Shape(set(names), {n: tree() for n in range(trees)}, of, homes)


def connected(links: set[tuple[str, str]], brokers: set[str]) -> bool:
    """Whether links reach every broker, by merging parts."""
    part = {broker: broker for broker in brokers}

    def top(broker: str) -> str:
        while part[broker] != broker:
            broker = part[broker]
        return broker

    for a, b in links:
        part[top(a)] = top(b)
    return len({top(broker) for broker in brokers}) == 1


NOTHING = Evidence(lambda shape, names: Routes.none(), {}, None, 1.0)
NAMES = [f"b{i}" for i in range(8)]


@settings(max_examples=40)
@given(
    st.integers(0, 10**6),
    st.sets(st.sampled_from(NAMES), min_size=1),
    st.sets(st.sampled_from(NAMES), min_size=1),
    st.integers(1, 3),
    st.integers(1, 3),
)
def test_any_overlay_becomes_any_other(
    seed: int, before: Any, after: Any, trees: int, others: int
) -> None:
    if trees > 1 or others > 1:
        after = before
    old = random_shape(seed, sorted(before), trees, 5)
    new = random_shape(seed + 1, sorted(after), others, 5)
    if not before & after:
        with pytest.raises(InputError, match="no broker in common"):
            ordered_overlay(old, new, {})
        return
    now, changes = old.copy(), Counter[str]()
    for unit in ordered_overlay(old, new, {}):
        for row in unit:
            now.apply(row)
            changes[row["action"]] += 1
        for tree in now.used():
            assert len(now.trees[tree]) == len(now.brokers) - 1
            assert connected(now.trees[tree], now.brokers)
        assert judge_overlay(now, LimitsRecord(), NOTHING).broken == ()
        assert {home for homes in now.clients.values() for home in homes} <= now.brokers
    assert now.same(new)
    numbers = old.trees.keys() | new.trees.keys()
    apart = [(old.trees.get(n, set()), new.trees.get(n, set())) for n in numbers]
    assert changes["link"] == sum(len(b - a) for a, b in apart)
    assert changes["unlink"] == sum(len(a - b) for a, b in apart)
    assert (changes["start"], changes["stop"]) == (len(after - before), len(before - after))


def test_degrees_hold_where_they_can() -> None:
    """Hub b0 of the old star hands over to b4: b1 must not get a third link on the way."""
    names = ["b0", "b1", "b2", "b3", "b4"]
    path = [("b0", "b1"), ("b1", "b2"), ("b2", "b3"), ("b3", "b4")]
    other = [("b1", "b3"), ("b3", "b0"), ("b0", "b4"), ("b2", "b4")]
    old, new = (
        Shape(set(names), {0: {by_name(*x) for x in tree}}, dict.fromkeys(names, 0), {})
        for tree in (path, other)
    )
    limits = LimitsRecord(degree=2)
    now = old.copy()
    for unit in ordered_overlay(old, new, dict.fromkeys(names, 2)):
        for row in unit:
            now.apply(row)
        assert judge_overlay(now, limits, NOTHING).exceeded == ()
    assert now.same(new)


def test_states_that_are_no_trees_are_named() -> None:
    names = ["b0", "b1", "b2"]
    apart = Shape(set(names), {0: {("b0", "b1")}}, dict.fromkeys(names, 0), {})
    assert judge_overlay(apart, LimitsRecord(), NOTHING).broken == ("tree 0: cut off (1): 'b2'",)
    ring = {("b0", "b1"), ("b1", "b2"), ("b0", "b2")}
    cycle = Shape(set(names), {0: ring}, dict.fromkeys(names, 0), {})
    assert judge_overlay(cycle, LimitsRecord(), NOTHING).broken == (
        "tree 0: has a cycle (1): 3 links",
    )
    path = Shape(set(names), {0: {("b0", "b1"), ("b1", "b2")}}, dict.fromkeys(names, 0), {})
    limits = LimitsRecord(degree=1, diameter=1)
    assert [text.partition(" (")[0] for text in judge_overlay(path, limits, NOTHING).exceeded] == [
        "limit: degree",
        "limit: diameter",
    ]


def test_limits_of_two_plans_are_the_looser_ones() -> None:
    one = LimitsRecord(degree=3, degrees={"b0": 2, "b1": 5}, diameter=4, hops=(("b0", "b1", 2),))
    other = LimitsRecord(degree=4, hops=(("b0", "b1", 3), ("b1", "b2", 1)))
    found = looser(one, other)
    assert (found.degree, found.diameter, found.hops) == (4, None, (("b0", "b1", 3),))
    assert found.degrees == {"b0": 4, "b1": 5}


@pytest.mark.parametrize("seed", range(4))
def test_stored_overlays_with_their_ledger(tmp_path: Path, seed: int) -> None:
    dataset = fanplan.Dataset(write_overlay_dataset(tmp_path / "d", random_world(seed, brokers=9)))
    old, new = (
        load_plan(fanplan.overlay(dataset, metric=metric, seed=seed).save(tmp_path / metric))
        for metric in ("random", "improved")
    )
    made = stage_overlay(old, new, dataset.path, 4)
    assert np.bincount(made.step).max() <= 4
    assert not any(state.broken for state in made.states)
    ends = [made.states[0].figures, made.states[-1].figures]
    for figures, plan in zip(ends, (old, new), strict=True):
        ledger = plan.section(OverlayRecord).ledger
        stated = {name: ledger[name] for name in ("link_messages", "processed", "delay")}
        assert {name: figures[name] for name in stated} == pytest.approx(stated)
    with pytest.raises(InputError, match=r"steps_of: 1 is too few: links are exchanged in pairs"):
        stage_overlay(old, new, None, 1)


def test_stored_allocations_move_clients(tmp_path: Path) -> None:
    world = random_world(2, brokers=16, capacity=40.0)
    dataset = fanplan.Dataset(write_overlay_dataset(tmp_path / "d", world))
    old, new = (
        load_plan(fanplan.allocate(dataset, ranking=ranking, load="exact").save(tmp_path / ranking))
        for ranking in ("baseline", "best")
    )
    made = stage_overlay(old, new, dataset.path, 3)
    assert not any(state.broken for state in made.states)
    assert made.counts()["move"] > 0
    ends = [made.states[0].figures, made.states[-1].figures]
    for figures, plan in zip(ends, (old, new), strict=True):
        assert figures["link_messages"] == pytest.approx(
            plan.section(OverlayRecord).ledger["link_messages"]
        )
        assert figures["brokers"] == plan.section(OverlayRecord).brokers
