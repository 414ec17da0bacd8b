"""The policy: when a plan is changed, and when it is left as it is.

Each window shows what the plan costs and what a fresh one would. A plan is changed in steps of a
bounded size, from the window on in which several in a row have shown a gap, until the gap is nearly
closed: between the two thresholds nothing begins and nothing ends, so that a plan does not flap.
A step is taken only if what it saves pays for its changes: cost + price · changes goes down. The
planner minimises the same sum, so that it does not offer changes that cannot pay.

No price suits all systems, nor one system for long. So it adapts until the gap is on average what
is asked for: after a window with a smaller gap changes are a little dearer, else cheaper.

See "switching budgets" and "regularised online descent" in docs/watch.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp

from fanplan.watching.params import PolicyParams

BEGIN, SETTLED = 1 / 2, 1 / 4
"""Parts of the gap asked for, above which a change begins and below which it ends."""
FIRST = 0.25 / 0.045
"""The price to begin with, for 1 of the gap asked for: a quarter with the default gap."""
CHEAPEST, DEAREST = 1 / 16, 4.0
"""Its limits, in parts of the first one. It rises while nothing drifts, and what comes then must
not wait long until it has fallen."""
PACE, FAR = 0.03, 3.0
"""How much the price adapts in a window without any gap, and how many times as much at the most: so
that what passes within some twenty windows hardly moves it."""


@dataclass(frozen=True)
class InWindow:
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

    def price(self, share: float) -> float:
        """What a change must save in a window, from a share of what each member and flow costs.

        A share of the whole cost would be dearer the larger a system is: one member of ten thousand
        matters less than one of a hundred.
        """
        return share * self.fresh / max(1, self.places)


@dataclass(frozen=True)
class Stance:
    """What the policy remembers: windows in a row with a gap, whether a change is under way, and
    the price of a change, in parts of the one to begin with.
    """

    shown: int = 0
    moving: bool = False
    dear: float = 1.0

    def price(self, params: PolicyParams) -> float:
        """What a change must save in a window, as a share of what each member and flow costs."""
        given = params.change_price
        return self.dear * FIRST * params.gap if given is None else given


def seen(standing: Stance, evidence: InWindow, params: PolicyParams) -> Stance:
    """What it remembers after one more window."""
    shown = standing.shown + 1 if evidence.gap > BEGIN * params.gap else 0
    going_on = standing.moving and evidence.gap > SETTLED * params.gap
    dear = adapted(standing.dear, evidence.gap / params.gap)
    return Stance(shown, going_on or shown >= params.patience, dear)


def adapted(dear: float, gap: float) -> float:
    """The price after a window with such a gap, in parts of the one asked for."""
    return min(DEAREST, max(CHEAPEST, dear * exp(PACE * max(-FAR, 1 - gap))))


def pays(evidence: InWindow, then: float, changes: int, price: float) -> bool:
    """Whether what a step saves in a window pays for its changes."""
    return changes > 0 and evidence.now - then > price * changes


def after_step(standing: Stance, taken: bool) -> Stance:
    """A step that was offered and did not pay ends the change: new evidence is needed."""
    return standing if taken else replace(standing, shown=0, moving=False)
