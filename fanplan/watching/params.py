"""What can be asked of watch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fanplan.core.errors import Problem
from fanplan.core.options import Options, option

TENTH, LEAST = 10, 50
"""Part of the members and flows that a step may change if nothing is said, and how many it may
change anyway: in a small plan a tenth would be less than one channel, and no step would pay."""


@dataclass(frozen=True)
class PolicyParams(Options):
    """When a plan is changed, and how much at a time."""

    gap: float = option(
        0.045, "Share by which the plan may cost more than a fresh one on average.", above=0
    )
    patience: int = option(
        2, "Windows in a row that must show half the gap for a change to begin.", at_least=1
    )
    churn: int | None = option(
        None,
        "Limit on the changes of members and flows in a step.",
        at_least=1,
        shown="a tenth of those of a fresh plan, but at least 50",
    )
    change_price: float | None = option(
        None,
        "What each change must save in a window, as a share of what a member or flow of a fresh "
        "plan's channels costs on average.",
        at_least=0,
        shown="adapts to the gap",
    )

    def most(self, places: int) -> int:
        """Most changes of a step."""
        return max(LEAST, places // TENTH) if self.churn is None else self.churn


@dataclass(frozen=True)
class WatchParams(PolicyParams):
    """How a stream becomes windows, and when a plan follows them."""

    window: float = option(60.0, "Length of a window.", unit="s", above=0)
    half_life: float = option(10.0, "Windows after which traffic counts half.", above=0)
    lateness: float = option(0.0, "How late rows may come, in event time.", unit="s", at_least=0)
    ahead: float = option(
        3600.0, "Set rows apart that are ahead of the others by more than this.", unit="s", above=0
    )
    files: int = option(64, "Limit on the files in a batch.", at_least=1)
    once: bool = option(False, "Follow what is there already, then stop.")
    apply: str | None = option(
        None,
        "Switch running applications to each new plan; name the export that they run with.",
        metavar="EXPORT",
    )
    monitor: Sequence[str] = option(
        (),
        "Address of a NATS server's monitor, whose counters the page shows; repeatable.",
        metavar="URL",
        many=True,
        read=tuple,
        shown="those of --apply",
    )
    page: int | None = option(
        None,
        "Show a page on this port, to this machine only; 0: any free port.",
        at_least=0,
        at_most=65_535,
        metavar="PORT",
    )

    def relations(self) -> Iterator[Problem]:
        if self.ahead < self.window:
            what = f"{self.ahead:g} s is less than a window of {self.window:g} s"
            yield Problem("ahead", what, f"Use {self.window:g} or more")
        if self.monitor and self.page is None:
            yield Problem("monitor", "is shown on the page alone", "Add --page 0")
