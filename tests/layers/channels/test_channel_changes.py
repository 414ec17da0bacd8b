"""From one channel plan to another: nobody misses anything on the way, and no change is wasted."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from datasets import Flow, World, plan_dataset, save_plan, write_dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from fanplan.core.errors import InputError
from fanplan.core.prices import Weights
from fanplan.data.reader import Manifest
from fanplan.layers.channels.changes import changes as staging
from fanplan.layers.channels.changes.changes import stage_channels
from fanplan.layers.channels.changes.order import ordered_changes
from fanplan.layers.channels.changes.world import ChannelWorld, SentByPlan, world_between
from fanplan.layers.channels.check.evidence import ChannelTruth, Decisions, PlanRelation
from fanplan.layers.channels.record import ChannelsRecord

WORLD = World(
    (
        Flow(frozenset({0, 1}), 4.0),
        Flow(frozenset({1, 2}), 3.0),
        Flow(frozenset({0, 2}), 2.0),
        Flow(frozenset({2}), 1.0),
    ),
    subscribers=3,
)


NAMES = {"carried": ("channel", "flow"), "members": ("channel", "subscriber")}
NAMES |= {"unicast": ("flow", "subscriber")}
ACTIONS = {"join": ("members", True), "leave": ("members", False), "carry": ("carried", True)}
ACTIONS |= {"drop": ("carried", False), "unicast": ("unicast", True)}
ACTIONS |= {"end_unicast": ("unicast", False)}

Sets = dict[str, set[tuple[Any, ...]]]


@dataclass(frozen=True)
class Two:
    """Any two plans for the same interest: matrices of what is carried, joined and unicast."""

    wants: np.ndarray
    messages: np.ndarray
    plans: tuple[tuple[np.ndarray, ...], ...]

    @property
    def sizes(self) -> tuple[int, int]:
        (_, before, _), (_, after, _) = self.plans
        return len(before), len(after)

    def sets(self, number: int) -> Sets:
        carried, members, unicast = (np.argwhere(m).tolist() for m in self.plans[number])
        return {
            "carried": {(c, f"t{f}") for f, c in carried},
            "members": {(c, f"s{s}") for c, s in members},
            "unicast": {(f"t{f}", f"s{s}") for f, s in unicast},
        }

    def world(self, known: bool) -> ChannelWorld:
        flows, users = self.wants.shape
        audience = relation(self.wants)
        truth = ChannelTruth(
            Manifest("", 1.0, "overlap", "atomic", True, {}),
            pa.table({}),
            pa.array([f"t{i}" for i in range(flows)], pa.large_string()),
            self.messages,
            self.messages,
            np.arange(flows, dtype=np.int32),
            audience.starts,
            audience.right,
            pa.array([f"s{i}" for i in range(users)]),
            self.messages * self.wants.sum(axis=1),
        )
        before, after = (
            SentByPlan(Decisions(*map(relation, plan)), ("",) * size, np.zeros(0, np.int64))
            for plan, size in zip(self.plans, self.sizes, strict=True)
        )
        return world_between(truth, before, after, known)


def relation(matrix: np.ndarray) -> PlanRelation:
    left, right = np.nonzero(matrix)
    starts = np.searchsorted(left, np.arange(len(matrix) + 1))
    return PlanRelation(starts, right.astype(np.int32))


def two_plans(seed: int, flows: int, users: int, sizes: tuple[int, int]) -> Two:
    """Any flows on any channels with any members, and unicast for all that this leaves out."""
    draw = np.random.default_rng(seed)
    wants = draw.random((flows, users)) < 0.5
    plans = []
    for channels in sizes:
        carried = draw.random((flows, channels)) < 0.4
        members = draw.random((channels, users)) < 0.5
        plans.append((carried, members, wants & ~(carried @ members)))
    return Two(wants, draw.integers(1, 50, flows).astype(float), tuple(plans))


def delivered(state: dict[str, set[tuple[Any, ...]]]) -> set[tuple[str, str]]:
    """Who gets which flow, counted with sets."""
    members: dict[int, set[str]] = {}
    for channel, subscriber in state["members"]:
        members.setdefault(channel, set()).add(subscriber)
    found = {(flow, s) for c, flow in state["carried"] for s in members.get(c, ())}
    return found | state["unicast"]


def fewest(old: Sets, new: Sets, sizes: tuple[int, int]) -> int:
    """The fewest changes over all ways to number the new channels anew, tried one by one."""
    numberings = itertools.permutations(range(max(sizes)), sizes[1])
    counts = [
        sum(len(old[name] ^ again(new, numbers)[name]) for name in NAMES) for numbers in numberings
    ]
    return min(counts)


def again(plan: Sets, numbers: Mapping[int, int] | Sequence[int]) -> Sets:
    """A plan with other numbers for its channels."""
    moved = {n: {(numbers[c], item) for c, item in plan[n]} for n in ("carried", "members")}
    return plan | moved


sizes = st.integers(1, 6)


@settings(max_examples=40)
@given(
    st.builds(two_plans, st.integers(0, 10**6), sizes, sizes, st.tuples(*[st.integers(1, 3)] * 2)),
    st.integers(1, 9),
    st.booleans(),
)
def test_any_plan_becomes_any_other(plans: Any, two: Any, limit: int, known: bool) -> None:
    record = plans[1].section(ChannelsRecord)
    world = two.world(known)
    changes = ordered_changes(world, Weights(1.0, 1.0, 1.0))
    made = staging.stage_changes(world, changes, record, limit)
    numbers = dict(enumerate(world.running.tolist()))
    assert max(numbers.values()) < max(two.sizes), "no more channels than either plan has"
    state, target = two.sets(0), again(two.sets(1), numbers)
    assert len(made.changes) == fewest(state, two.sets(1), two.sizes)
    kept = delivered(state) & delivered(target)
    for row in made.changes.to_pylist():
        name, added = ACTIONS[row["action"]]
        item = tuple(row[column] for column in NAMES[name])
        assert (item in state[name]) != added
        (state[name].add if added else state[name].remove)(item)
        assert kept <= delivered(state), "at every change, not only at every step"
    assert state == target
    assert np.bincount(made.step, minlength=1).max(initial=0) <= limit
    assert set(made.step.tolist()) == set(range(made.steps)), "no step is empty"
    assert not any(found.broken for found in made.states)
    ends = np.flatnonzero(np.diff(made.step, append=-1))
    stepwise = [found.figures["cost"] for found in made.states[1:]]
    assert stepwise == pytest.approx(changes.cost[ends]), "both counts of the cost agree"


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("plans")
    dataset = write_dataset(folder / "dataset", WORLD)
    made = [plan_dataset(dataset, method, 2) for method in ("round-robin", "kmodes")]
    found = [save_plan(plan, dataset, folder / str(i)) for i, plan in enumerate(made)]
    return dataset, *found


def test_a_wrong_order_is_found_by_the_check_of_states(
    plans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, old, new = plans
    right = ordered_changes

    def backwards(world: Any, weights: Weights) -> Any:
        found = right(world, weights)
        return replace(found, phase=found.phase[::-1], key=found.key[::-1])

    monkeypatch.setattr(staging, "ordered_changes", backwards)
    for known in (dataset, None):
        broken = [state.broken for state in stage_channels(old, new, known, 1).states]
        assert any("not served any more" in text for found in broken for text in found)


def test_stored_plans_cost_what_they_say_at_both_ends(plans: Any) -> None:
    dataset, old, new = plans
    for known in (dataset, None):
        made = stage_channels(old, new, known, 2)
        costs = [made.states[0].figures["cost"], made.states[-1].figures["cost"]]
        assert costs == pytest.approx(
            [old.section(ChannelsRecord).cost, new.section(ChannelsRecord).cost]
        )
        assert not any(state.broken for state in made.states)


def test_nothing_to_do_is_no_step(plans: Any) -> None:
    dataset, old, _ = plans
    made = stage_channels(old, old, dataset, 5)
    assert (len(made.changes), made.steps, len(made.states)) == (0, 0, 1)


def test_who_is_new_is_not_missed_on_the_way(tmp_path: Path) -> None:
    """The new plan serves a subscriber and a flow more: only what both bring must stay."""
    first = write_dataset(tmp_path / "first", WORLD)
    more = World((*WORLD.flows[:3], Flow(frozenset({0, 3}), 5.0)), 4, key="key-2")
    second = write_dataset(tmp_path / "second", more)
    old = save_plan(plan_dataset(first, "kmodes", 2), first, tmp_path / "old")
    new = save_plan(plan_dataset(second, "kmodes", 2), second, tmp_path / "new")
    for known in (second, None):
        made = stage_channels(old, new, known, 2)
        assert not any(state.broken for state in made.states)
    made = stage_channels(old, new, second, 2)
    missed = [state.figures["missed"] for state in made.states]
    assert missed[0] > 0 == missed[-1]
    first = made.changes.to_pylist()[0]
    assert first["action"] == "unicast", "what somebody is missing comes first"


def test_a_step_of_nothing_is_refused(plans: Any) -> None:
    dataset, old, new = plans
    with pytest.raises(InputError, match=r"steps_of: 0 is too few\. Use 1 or more"):
        stage_channels(old, new, dataset, 0)
