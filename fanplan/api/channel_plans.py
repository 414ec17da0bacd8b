"""Channel plans: make one, explain it, compare methods."""

from __future__ import annotations

import time as clock
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanplan.api.datasets import Dataset, PathLike
from fanplan.api.engine import EMBEDDED, Engine
from fanplan.api.limits import load_start, require_options, rows_for, translate
from fanplan.errors import InputError, Problem

if TYPE_CHECKING:
    from fanplan.evaluation.weights import Weights
    from fanplan.plan.types import Plan
    from fanplan.planners.channels import Method
    from fanplan.planners.channels.params import ChannelParams
    from fanplan.planners.stop import Stop
    from fanplan.progress import Stage


@dataclass(frozen=True)
class Churn:
    """What a plan changes in the one it started from, and what keeping so much of it costs."""

    joins: int
    leaves: int
    added: int
    """(flow, channel) pairs that are new"""
    removed: int
    """(flow, channel) pairs that are gone"""
    gone: int
    """pairs of the older plan whose flow or subscriber is no more; not counted as changes"""
    fresh_cost: float
    """of a plan made afresh with the same parameters"""
    given_up_percent: float
    """how much more this plan costs than that one"""


@dataclass(frozen=True)
class ChannelPlan:
    """A plan together with the dataset it is for. ``ended`` says what ended the search early."""

    plan: Plan
    dataset: Dataset
    ended: str | None = None
    churn: Churn | None = None

    def summary(self) -> dict[str, Any]:
        """The figures of the plan, as JSON."""
        plan = self.plan
        figures = {
            "method": plan.method,
            "cost": plan.cost,
            "perfect": plan.perfect,
            "excess_percent": plan.excess_percent,
            "bound_percent": plan.bound_percent,
            "single_bound_percent": plan.single_bound_percent,
            "unicast_fraction": plan.unicast_fraction,
            "channels": plan.map.channels,
            "flows": plan.flows,
            "audience_classes": plan.audience_classes,
        }
        ended = {"ended_early_by": self.ended} if self.ended else {}
        return figures | ended | (asdict(self.churn) if self.churn else {})

    def save(self, out: PathLike, replace: bool = False) -> Path:
        """Write the plan folder: checked, and whole or not at all."""
        from fanplan.plan.store import save_plan

        return save_plan(self.plan, self.dataset.path, Path(out), replace).folder

    def explain(self, name: str) -> list[dict[str, Any]]:
        """Why the flow, the topic's flows or the subscriber of that name are where they are."""
        from fanplan.api.explaining import explain

        return explain(self.plan, self.dataset, name)


def channels(
    dataset: Dataset,
    channels: int,
    *,
    method: str = "kmodes",
    unicast: str | None = None,
    w1: float = 1.0,
    w2: float = 1.0,
    w3: float = 1.0,
    seed: int = 0,
    time: float | None = None,
    stop: Stop | None = None,
    engine: Engine = EMBEDDED,
    **options: Any,
) -> ChannelPlan:
    """Decide which flows share which of the channels and what goes by unicast.

    ``unicast`` names a second step for methods that leave everything on channels; ``time`` is a
    limit in seconds, after which the best plan so far is returned, as it is when ``stop`` says so.
    ``options`` are further fields of the method's parameters. Those that speak of flows and
    subscribers take names: ``pinned`` and ``off_multicast`` flows or topics,
    ``max_channels_per_subscriber`` a number, a mapping or a file with columns subscriber and
    channels, ``max_channel_rate`` messages per second, ``start`` the folder of an older plan.
    """
    from fanplan.evaluation.weights import Weights
    from fanplan.planners.channels import find_method

    require_whole_cover(dataset)
    chosen = find_method(method, unicast)
    options = {name: value for name, value in options.items() if value is not None}
    require_options(chosen, options)
    require_start(options)
    weights = Weights(w1, w2, w3)
    watch = Watch(time, stop)
    made = run(dataset, chosen, channels, weights, options, seed, watch, engine)
    churn = None
    if "start" in options:
        fresh = {k: v for k, v in options.items() if k not in CHANGES}
        anew = run(dataset, chosen, channels, weights, fresh, seed, Watch(time, stop), engine)
        churn = churn_of(made, anew, dataset, channels, options["start"])
    return ChannelPlan(made, dataset, watch.ended, churn)


CHANGES = ("start", "change_price", "max_changes")


def run(
    dataset: Dataset,
    method: Method,
    channels: int,
    weights: Weights,
    options: Mapping[str, Any],
    seed: int,
    watch: Watch,
    engine: Engine,
) -> Plan:
    """One run of a method, shown as a stage with its best cost."""
    from fanplan.planners.channels import plan_channels

    params = method.params(
        channels=channels, weights=weights, **translate(dataset, channels, options)
    )
    afresh = "" if "start" not in options else " from the older plan"
    with engine.progress.stage(f"plan by {method.name}{afresh}") as stage:
        problem = dataset.interest(rows_for(method, options))
        return plan_channels(problem, method, params, seed, watch.telling(stage))


def require_names(dataset: Dataset, names: Iterable[str]) -> None:
    """Every name must be that of a flow, a topic or a subscriber that can be explained."""
    from fanplan.api.explaining import find

    for name in names:
        find(dataset, name)


class Watch:
    """Ends a search by time or when asked; remembers which, and tells the best cost."""

    def __init__(self, time: float | None, stop: Stop | None) -> None:
        from fanplan.planners.stop import TimeLimit, never

        require_time(time)
        self.limit = never if time is None else TimeLimit(time)
        self.asked = stop or never
        self.ended: str | None = None
        self.stage: Stage | None = None

    def telling(self, stage: Stage) -> Watch:
        self.stage = stage
        return self

    def __call__(self, best_cost: float) -> bool:
        if self.stage is not None and best_cost < float("inf"):
            self.stage.update(best=best_cost)
        if self.asked(best_cost):
            self.ended = "interrupt"
        elif self.limit(best_cost):
            self.ended = "time limit"
        return self.ended is not None


def require_time(time: float | None) -> None:
    if time is not None and not time > 0:
        raise InputError(Problem("time", f"{time} seconds is no time", "Use a positive number"))


def require_start(options: Mapping[str, Any]) -> None:
    """A limit on changes needs a plan that is changed."""
    for name in ("change_price", "max_changes"):
        if name in options and "start" not in options:
            what = "there is no older plan to change"
            raise InputError(Problem(name, what, "Give the plan to start from, or leave it out"))


def churn_of(made: Plan, fresh: Plan, dataset: Dataset, channels: int, start: PathLike) -> Churn:
    from fanplan.planners.channels.kmodes import changes

    older = load_start(dataset, channels, start)
    changed = changes(older.map, made.map)
    given_up = 100 * (made.cost - fresh.cost) / fresh.cost if fresh.cost else 0.0
    return Churn(
        **asdict(changed), gone=older.gone, fresh_cost=fresh.cost, given_up_percent=given_up
    )


def compare(
    dataset: Dataset,
    channels: int,
    methods: Iterable[str],
    *,
    w1: float = 1.0,
    w2: float = 1.0,
    w3: float = 1.0,
    seed: int = 0,
    engine: Engine = EMBEDDED,
) -> list[dict[str, Any]]:
    """What other methods would cost; a second step is named as in ``tock+greedy-flow``."""
    from fanplan.evaluation.ledger import cost, excess_percent, unicast_fraction
    from fanplan.evaluation.weights import Weights
    from fanplan.plan.analytic import analytic_ledger, perfect
    from fanplan.planners.channels import find_method
    from fanplan.planners.stop import never

    weights = Weights(w1, w2, w3)
    found = [find_method(*name.split("+", 1)) for name in methods]
    results = []
    for method in found:
        with engine.progress.stage(f"compare {method.name}"):
            problem = dataset.interest(method.rows)
            began = clock.perf_counter()
            params: ChannelParams = method.params(channels=channels, weights=weights)
            ledger = analytic_ledger(problem, method.planner(problem, params, seed, never))
            total = cost(ledger, weights)
            results.append(
                {
                    "method": method.name,
                    "cost": total,
                    "excess_percent": excess_percent(total, perfect(problem, weights)),
                    "unicast_fraction": unicast_fraction(ledger),
                    "seconds": clock.perf_counter() - began,
                }
            )
    return results


def require_whole_cover(dataset: Dataset) -> None:
    """Channels must miss nobody; full cover leaves partly covered cells to default routing."""
    if dataset.manifest.cover == "full" and not dataset.manifest.exact:
        what = "has full cover, which leaves out whoever wants only a part of a cell"
        remedy = "Ingest with --cover overlap, or with --grid atomic"
        raise InputError(Problem(str(dataset.path), what, remedy))
