"""The policy: evidence before a change, steps that pay, no flapping."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from fanplan.core.arrays import Bools, Floats
from fanplan.core.errors import InputError
from fanplan.core.stop import never
from fanplan.data.build import from_pairs
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import ChannelMap, map_changes
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.search.kmodes import kmodes
from fanplan.layers.channels.search.model.cover import from_map
from fanplan.layers.channels.search.task import make_task
from fanplan.watching.params import PolicyParams, WatchParams
from fanplan.watching.policy import (
    CHEAPEST,
    DEAREST,
    FIRST,
    InWindow,
    Stance,
    after_step,
    pays,
    seen,
)
from fanplan.watching.simulate import courses, follow_window

P = PolicyParams(gap=0.22, patience=3, churn=5, change_price=0.005)


def moving(gaps: list[float]) -> list[bool]:
    """Whether a change is under way after each window with such a gap."""
    standing, found = Stance(), []
    for window, gap in enumerate(gaps):
        standing = seen(standing, InWindow(window, 100 * (1 + gap), 100.0, 1), P)
        found.append(standing.moving)
    return found


def test_several_windows_in_a_row_must_show_a_gap() -> None:
    assert moving([0.2, 0.2, 0.0, 0.2, 0.2, 0.2]) == [False] * 5 + [True]


def test_a_change_goes_on_between_the_thresholds_and_ends_below_both() -> None:
    gaps = [0.2, 0.2, 0.2, 0.07, 0.07, 0.04, 0.07]
    assert moving(gaps) == [False, False, True, True, True, False, False]


def test_a_step_must_pay_for_its_changes() -> None:
    shown = InWindow(0, 120, 100, 1)
    assert pays(shown, 115, 9, 0.5)
    assert not pays(shown, 115, 10, 0.5)
    assert not pays(shown, 120, 0, 0.5)


def test_a_change_is_priced_by_what_a_member_or_flow_costs_not_by_the_size_of_the_system() -> None:
    small, large = InWindow(0, 120, 100, 50), InWindow(0, 120_000, 100_000, 50_000)
    assert small.price(0.25) == large.price(0.25) == 0.5
    assert PolicyParams().most(50_000) == 5_000
    assert PolicyParams().most(100) == 50, "less would not do for a channel"
    assert PolicyParams(churn=7).most(50_000) == 7


def test_after_a_step_that_does_not_pay_evidence_is_asked_for_anew() -> None:
    standing = Stance(7, True, 0.4)
    assert after_step(standing, True) == standing
    assert after_step(standing, False) == Stance(0, False, 0.4)


def prices(gaps: list[float], params: PolicyParams) -> list[float]:
    """The price of a change after each window with such a gap."""
    standing, found = Stance(), []
    for window, gap in enumerate(gaps):
        standing = seen(standing, InWindow(window, 100 * (1 + gap), 100.0, 1), params)
        found.append(standing.price(params))
    return found


def test_the_price_adapts_to_the_gap_that_is_asked_for() -> None:
    params = PolicyParams(gap=0.1)
    first = 0.1 * FIRST
    assert prices([0.1] * 5, params) == pytest.approx([first] * 5)
    rising, falling = prices([0.02] * 500, params), prices([0.3] * 500, params)
    assert first < rising[0] < rising[1] < rising[-1] == DEAREST * first
    assert first > falling[0] > falling[1] > falling[-1] == CHEAPEST * first
    # A gap of any size is at most as urgent as one that is four times as large as asked for.
    assert prices([5.0], params) == prices([0.4], params)
    assert prices([0.02, 0.3, 5.0], PolicyParams(change_price=0.7)) == [0.7] * 3


@dataclass(frozen=True)
class Line:
    """A plan is a number, costs are the distance to where traffic is, a change moves it by one."""

    place: int

    def believed(self, plan: int) -> float:
        return 100.0 + abs(plan - self.place)

    true = believed

    def fresh(self) -> int:
        return self.place

    def step(self, plan: int, churn: int, price: float) -> int:
        far = self.place - plan
        return plan + max(-churn, min(churn, far if price < 1 else 0))

    def changes(self, old: int, new: int) -> int:
        return abs(new - old)

    def places(self, _plan: int) -> int:
        return 1


def test_a_lasting_move_is_followed_in_capped_steps_and_a_flicker_is_not() -> None:
    flicker = [Line(30 * (window % 2)) for window in range(40)]
    lasting = [Line(30)] * 20
    found = courses([*flicker, *lasting], 0, 15, P)
    policy, every = found["policy"], found["every window"]
    assert sum(policy.changes[:40]) == 0
    assert policy.changes[41:47] == [5] * 5 + [0]
    assert sum(every.changes) > 10 * sum(policy.changes)
    assert sum(found["never"].changes) == sum(found["hindsight"].changes) == 0
    assert sum(every.costs) <= sum(policy.costs) <= sum(found["never"].costs)


CHANNELS = 4


@dataclass(frozen=True)
class Desk:
    """A few flows and users, with plans by the planner of channels."""

    problem: InterestProblem

    def believed(self, plan: ChannelMap) -> float:
        task = make_task(self.problem, KmodesParams(CHANNELS))
        return task.cost(from_map(plan, self.problem.size, task.demand.users, CHANNELS))

    true = believed

    def fresh(self) -> ChannelMap:
        return kmodes(self.problem, KmodesParams(CHANNELS), 0, never)

    def step(self, plan: ChannelMap, churn: int, price: float) -> ChannelMap:
        params = KmodesParams(CHANNELS, start=plan, max_changes=churn, change_price=price)
        return kmodes(self.problem, params, 0, never)

    def changes(self, old: ChannelMap, new: ChannelMap) -> int:
        return sum(map_changes(old, new))

    def places(self, plan: ChannelMap) -> int:
        return plan.places


def desks(windows: int, moves: int) -> Iterator[Desk]:
    """Rates are counted anew in each window, and so many pairs of interest move."""
    random = np.random.default_rng(5)
    rates: Floats = 400.0 / np.arange(1, 25)
    wanted: Bools = random.random((24, 14)) < 0.5
    for _ in range(windows):
        for _ in range(moves):
            wanted[random.integers(6), random.integers(14)] ^= True
        flow, user = np.nonzero(wanted)
        names = [f"u{number}" for number in range(14)]
        sent = 1.0 + random.poisson(20 * rates) / 20
        yield Desk(from_pairs(flow, user, sent, names=names, kind="flow"))


def test_no_step_breaks_the_cap_or_raises_cost_and_price_together() -> None:
    params, standing, steps = PolicyParams(gap=0.02, churn=4), Stance(), []
    worlds = list(desks(60, 2))
    plan = worlds[0].fresh()
    for window, world in enumerate(worlds):
        standing, after = follow_window(world, plan, world.fresh(), standing, window, params)
        steps.append(world.changes(plan, after))
        now, fresh = world.believed(plan), world.fresh()
        price = standing.price(params) * world.believed(fresh) / fresh.places
        spent = price * steps[-1]
        assert after is plan or world.believed(after) + spent < now
        plan = after
    assert max(steps) <= 4
    assert sum(steps) > 10


def test_rates_that_only_flicker_change_no_plan() -> None:
    worlds = list(desks(40, 0))
    first = worlds[0].fresh()
    found = courses(worlds, first, first, PolicyParams())
    assert sum(found["policy"].changes) == 0
    assert sum(found["every window"].changes) > 0


def test_the_gap_is_on_average_what_is_asked_for_and_a_wider_one_needs_fewer_changes() -> None:
    worlds, changes = list(desks(400, 1)), [10_000]
    first = worlds[0].fresh()
    for gap in (0.04, 0.08, 0.12):
        found = courses(worlds, first, first, PolicyParams(gap=gap))
        policy, every = (sum(found[way].costs[100:]) for way in ("policy", "every window"))
        assert policy / every - 1 == pytest.approx(gap, abs=0.012)
        changes.append(sum(found["policy"].changes))
        assert changes[-1] < 0.75 * changes[-2]


def test_a_gap_of_nothing_and_what_is_ahead_within_a_window_are_refused() -> None:
    with pytest.raises(InputError, match="gap"):
        PolicyParams(gap=0)
    with pytest.raises(InputError, match="ahead"):
        WatchParams(window=60.0, ahead=10.0)
