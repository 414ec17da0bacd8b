"""The policy: when a plan is changed, and when it is left as it is.

Each window shows what the plan costs and what a fresh one would. A plan is changed in steps of a
bounded size, from the window on in which several in a row have shown a gap, until the gap is nearly
closed: between the two thresholds nothing begins and nothing ends, so that a plan does not flap.
A step is taken only if what it saves pays for its changes: cost + price · changes goes down. The
planner minimises the same sum, so that it does not offer changes that cannot pay.

See "switching budgets" and "regularised online descent" in docs/watch.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from fanplan.watching.params import PolicyParams


@dataclass(frozen=True)
class Evidence:
    """What a window shows: costs per window of the plan in force and of a fresh one.

    ``places`` are the members and flows of the fresh plan's channels. ``unreached``: who wants what
    has changed since the plan was made, and it misses somebody.
    """

    window: int
    now: float
    fresh: float
    places: int
    unreached: bool = False

    @property
    def gap(self) -> float:
        """Share by which the plan costs more than a fresh one."""
        return self.now / self.fresh - 1 if self.fresh else float(self.now > 0)

    def price(self, params: PolicyParams) -> float:
        """What a change costs in each of the windows in which it must pay."""
        return params.price(self.fresh, self.places)


@dataclass(frozen=True)
class Standing:
    """What the policy remembers: windows in a row with a gap, and whether a change is under way."""

    shown: int = 0
    moving: bool = False


def seen(standing: Standing, evidence: Evidence, params: PolicyParams) -> Standing:
    """What it remembers after one more window."""
    shown = standing.shown + 1 if evidence.gap > params.gap else 0
    going_on = standing.moving and evidence.gap > params.settled
    return Standing(shown, going_on or shown >= params.patience)


def pays(evidence: Evidence, then: float, changes: int, params: PolicyParams) -> bool:
    """Whether what a step saves in each window pays for its changes."""
    return changes > 0 and evidence.now - then > evidence.price(params) * changes


def after_step(standing: Standing, taken: bool) -> Standing:
    """A step that was offered and did not pay ends the change: new evidence is needed."""
    return standing if taken else Standing()
