"""Channel plans: make one, explain it, compare methods."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanplan.core.errors import InputError, Problem
from fanplan.core.stop import Watch
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers.channels.limits import (
    load_start,
    recorded,
    require_options,
    rows_for,
    translate,
)
from fanplan.layers.channels.running import Run

if TYPE_CHECKING:
    from fanplan.core.prices import Weights
    from fanplan.core.stop import Stop
    from fanplan.layers.channels.map import ChannelsSection
    from fanplan.layers.channels.methods import Method


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
    fresh_cost: float | None
    """of a plan made afresh with the same parameters; None if its search did not come to its end"""
    given_up_percent: float | None
    """how much more this plan costs than that one"""


@dataclass(frozen=True)
class ChannelPlan:
    """A plan together with the dataset it is for.

    ``ended`` says what ended the search early; ``costs`` are those of all restarts, or of all
    islands in the measure of their search.
    """

    plan: ChannelsSection
    dataset: Dataset
    ended: str | None = None
    churn: Churn | None = None
    costs: tuple[float, ...] = ()

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
        restarts = {"restarts": list(self.costs)} if len(self.costs) > 1 else {}
        return figures | ended | restarts | (asdict(self.churn) if self.churn else {})

    def save(self, out: PathLike, replace: bool = False) -> Path:
        """Write the plan folder: checked, and whole or not at all."""
        from fanplan.verbs.save import save_plan

        return save_plan(self.plan, self.dataset.path, Path(out), replace).folder

    def explain(self, name: str) -> list[dict[str, Any]]:
        """Why the flow, the topic's flows or the subscriber of that name are where they are."""
        from fanplan.layers.channels.explain import explain_name

        return explain_name(self.plan, self.dataset, name)


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
    restarts: int = 1,
    on_spark: bool = False,
    engine: Engine = EMBEDDED,
    **options: Any,
) -> ChannelPlan:
    """Decide which flows share which of the channels and what goes by unicast.

    ``unicast`` names a second step for methods that leave everything on channels; ``time`` is a
    limit in seconds, after which the best plan so far is returned, as it is when ``stop`` says so.
    ``restarts`` searches run as Spark tasks and the best is kept (the time is then for each; the
    method genetic exchanges maps between them); ``on_spark`` runs kmodes with its rows on Spark.
    ``options`` are further fields of the method's parameters. Those that speak of flows and
    subscribers take names: ``pinned`` and ``off_multicast`` flows or topics,
    ``max_channels_per_subscriber`` a number, a mapping or a file with columns subscriber and
    channels, ``max_channel_rate`` messages per second, ``start`` the folder of an older plan.
    """
    from fanplan.core.prices import Weights
    from fanplan.layers.channels.methods import find_method

    require_whole_cover(dataset)
    chosen = find_method(method, unicast)
    given = {name: value for name, value in options.items() if value is not None}
    require_options(chosen, given)
    require_start(given)
    run = prepared(dataset, chosen, channels, Weights(w1, w2, w3), given, seed, engine)
    watch = Watch(time, stop)
    plan, costs = carry_out(run, watch, restarts, on_spark)
    plan = replace(plan, params=plan.params | recorded(given))
    churn = None
    if "start" in given:
        afresh = {name: value for name, value in given.items() if name not in CHANGES}
        fresh = prepared(dataset, chosen, channels, run.params.weights, afresh, seed, engine)
        cost = None if watch.ended or on_spark else whole_cost(fresh, Watch(time, stop))
        churn = churn_of(plan, cost, dataset, channels, given["start"])
    return ChannelPlan(plan, dataset, watch.ended, churn, costs)


CHANGES = ("start", "change_price", "max_changes")
"""Options that mean nothing to a plan made afresh."""


def whole_cost(run: Run, watch: Watch) -> float | None:
    """What the plan of a run costs, if nothing ended its search early."""
    cost = run.here(watch).cost
    return None if watch.ended else cost


def prepared(
    dataset: Dataset,
    method: Method,
    channels: int,
    weights: Weights,
    options: Mapping[str, Any],
    seed: int,
    engine: Engine,
) -> Run:
    """A run of the method with the options in the numbers of the problem."""
    fields = translate(dataset, channels, options)
    params = method.params(channels=channels, weights=weights, **fields)
    return Run(dataset, method, params, rows_for(method, options), seed, engine)


def carry_out(
    run: Run, watch: Watch, restarts: int, on_spark: bool
) -> tuple[ChannelsSection, tuple[float, ...]]:
    """Run here, as restarts or islands, or on Spark: the plan, and the costs of all searches."""
    if restarts < 1:
        raise InputError(Problem("restarts", f"{restarts} is too few", "Use 1 or more"))
    if on_spark and restarts > 1:
        what = "restarts hold the whole problem in each task"
        raise InputError(Problem("restarts", what, "Leave out one of restarts and on_spark"))
    if on_spark:
        plan = run.on_spark(watch)
    elif restarts == 1:
        plan = run.here(watch)
    elif run.method.subscriptions:
        return run.islands(restarts, watch)
    else:
        return run.restarted(restarts, watch)
    return plan, (plan.cost,)


def require_methods(names: Iterable[str]) -> None:
    """Every name must be that of a method, or of one with a second step."""
    from fanplan.layers.channels.methods import find_method

    for name in names:
        find_method(*name.split("+", 1))


def require_names(dataset: Dataset, names: Iterable[str]) -> None:
    """Every name must be that of a flow, a topic or a subscriber that can be explained."""
    from fanplan.layers.channels.explain import find_named

    for name in names:
        find_named(dataset, name)


def require_start(options: Mapping[str, Any]) -> None:
    """A limit on changes needs a plan that is changed."""
    for name in ("change_price", "max_changes"):
        if name in options and "start" not in options:
            what = "there is no older plan to change"
            raise InputError(Problem(name, what, "Give the plan to start from, or leave it out"))


def churn_of(
    made: ChannelsSection,
    fresh_cost: float | None,
    dataset: Dataset,
    channels: int,
    start: PathLike,
) -> Churn:
    from fanplan.layers.channels.map import map_changes

    older = load_start(dataset, channels, start)
    changed = map_changes(older.map, made.map)
    given_up = None if not fresh_cost else round(100 * (made.cost / fresh_cost - 1), 9)
    return Churn(
        **asdict(changed), gone=older.gone, fresh_cost=fresh_cost, given_up_percent=given_up
    )


def compare_methods(
    dataset: Dataset,
    channels: int,
    methods: Iterable[str],
    *,
    w1: float = 1.0,
    w2: float = 1.0,
    w3: float = 1.0,
    seed: int = 0,
    stop: Stop | None = None,
    engine: Engine = EMBEDDED,
) -> list[dict[str, Any]]:
    """What other methods would cost; a second step is named as in ``tock+greedy-flow``.

    Limits do not apply to them. When ``stop`` says so, those that are left are left out.
    """
    from fanplan.core.ledger import cost, excess_percent, unicast_fraction
    from fanplan.core.prices import Weights
    from fanplan.core.stop import never
    from fanplan.layers.channels.ledger import analytic_ledger, perfect
    from fanplan.layers.channels.methods import find_method, interest_of, load_problem
    from fanplan.layers.channels.params import require_enough_flows, require_traffic

    weights, ended = Weights(w1, w2, w3), stop or never
    found = [find_method(*name.split("+", 1)) for name in methods]
    results: list[dict[str, Any]] = []
    for method in found:
        if ended(math.inf):
            break
        with engine.progress.stage(f"compare {method.name}"):
            given = load_problem(dataset.path, method)
            problem = interest_of(given)
            require_traffic(problem)
            require_enough_flows(problem, channels)
            began = clock.perf_counter()
            params = method.params(channels=channels, weights=weights)
            ledger = analytic_ledger(problem, method.planner(given, params, seed, ended))
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
