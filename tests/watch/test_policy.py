"""The policy: evidence before a change, steps that pay, no flapping."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fanplan.core.errors import InputError
from fanplan.watching.params import PolicyParams, WatchParams
from fanplan.watching.policy import Evidence, Standing, after_step, pays, seen
from fanplan.watching.simulate import courses

P = PolicyParams(gap=0.1, settled=0.06, patience=3, churn=5, change_price=0.05, horizon=10)


def moving(gaps: list[float]) -> list[bool]:
    """Whether a change is under way after each window with such a gap."""
    standing, found = Standing(), []
    for window, gap in enumerate(gaps):
        standing = seen(standing, Evidence(window, 100 * (1 + gap), 100.0), P)
        found.append(standing.moving)
    return found


def test_several_windows_in_a_row_must_show_a_gap() -> None:
    assert moving([0.2, 0.2, 0.0, 0.2, 0.2, 0.2]) == [False] * 5 + [True]


def test_a_change_goes_on_between_the_thresholds_and_ends_below_both() -> None:
    gaps = [0.2, 0.2, 0.2, 0.07, 0.07, 0.04, 0.07]
    assert moving(gaps) == [False, False, True, True, True, False, False]


def test_a_step_must_pay_for_its_changes_within_the_horizon() -> None:
    assert pays(100, 95, 9, P)
    assert not pays(100, 95, 10, P)
    assert not pays(100, 100, 0, P)


def test_after_a_step_that_does_not_pay_evidence_is_asked_for_anew() -> None:
    standing = Standing(7, True)
    assert after_step(standing, True) == standing
    assert after_step(standing, False) == Standing()


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


def test_thresholds_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(InputError, match="settled"):
        PolicyParams(gap=0.01, settled=0.02)
    with pytest.raises(InputError, match="ahead"):
        WatchParams(window=60.0, ahead=10.0)
