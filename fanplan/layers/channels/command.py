"""Channel plans: make one, explain it, compare methods."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from fanplan.core.errors import InputError, Problem
from fanplan.core.ledger import cost, excess_percent, unicast_cost, unicast_fraction
from fanplan.core.stop import Watch
from fanplan.data.dataset import Dataset
from fanplan.data.interest import load_interest
from fanplan.layers.channels.explain import explain_name, find_named
from fanplan.layers.channels.ledger import analytic_ledger, perfect
from fanplan.layers.channels.lone import kept_by, tidied
from fanplan.layers.channels.map import ChannelsSection, SwitchTables, map_changes
from fanplan.layers.channels.method_params import (
    KmodesParams,
    require_enough_flows,
    require_traffic,
)
from fanplan.layers.channels.methods import (
    Method,
    Run,
    channels_by_method,
    find_method,
    interest_of,
    load_problem,
    told,
)
from fanplan.layers.channels.names import (
    as_recorded,
    load_start,
    require_options,
    rows_for,
    translate,
)
from fanplan.layers.channels.params import ChannelsParams
from fanplan.layers.channels.problem import load_switch_problem
from fanplan.layers.channels.published.genetic.problem import load_subscriptions
from fanplan.layers.channels.search.in_tables import channels_in_tables
from fanplan.plan.made import Job, Planned

CHANGES = ("start", "change_price", "max_changes")
"""Options that mean nothing to a plan made afresh."""


def plan_channels(job: Job, params: ChannelsParams) -> Planned:
    """Decide which flows share which of the channels and what goes by unicast.

    Restarts run as Spark tasks and the best is kept; the time is then for each. The method genetic
    exchanges maps between them.
    """
    require_whole_cover(job.dataset)
    method = find_method(params.method, params.unicast)
    given = params.limits
    require_options(method, given)
    require_names(job.dataset, job.explain)
    take_interrupts(job, params)
    run = prepared(job, method, params, given)
    made, costs = carry_out(job, run, params)
    asked = as_recorded(replace(params, options=made.params.options))
    section = replace(made, params=asked)
    churn = churned(job, run, section, params) if params.start else {}
    restarts = {"restarts": list(costs)} if len(costs) > 1 else {}
    return planned_channels(job, section, restarts | churn, job.watch.ended)


PLANS = {"channels": plan_channels}


def planned_channels(
    job: Job, section: ChannelsSection, further: Mapping[str, Any], ended: str | None
) -> Planned:
    """A section with its figures, and what can be asked about it."""
    return Planned(
        (section,),
        {**channel_figures(section), **further},
        compared=lambda names: compare_methods(job, section, names),
        explained=lambda name: explain_name(section, job.dataset, name),
        ended=ended,
        without=unicast_cost(section.ledger, section.weights),
        stretched=lambda smaller: stretched(job, smaller, section),
    )


def channel_figures(section: ChannelsSection) -> dict[str, Any]:
    return {
        "method": section.method,
        "cost": section.cost,
        "perfect": section.perfect,
        "excess_percent": section.excess_percent,
        "bound_percent": section.bound_percent,
        "single_bound_percent": section.single_bound_percent,
        "unicast_fraction": section.unicast_fraction,
        **limited(section),
        **({} if section.switches is None else switch_figures(section.switches)),
        "channels": section.params.channels,
        "channels_used": section.map.channels,
        "flows": section.flows,
        "audience_classes": section.audience_classes,
    }


def limited(section: ChannelsSection) -> dict[str, float]:
    """What a limit on unicast is on, if there is one."""
    return {} if section.params.unicast_limit is None else {"unicast_counted": section.counted}


def switch_figures(tables: SwitchTables) -> dict[str, float]:
    """Traffic on links, its excess over ideal multicast, and the fullest table."""
    traffic, entries = tables.traffic, tables.entries.group_by(["switch", "channel"]).aggregate([])
    fullest = entries.group_by("switch").aggregate([("channel", "count")])["channel_count"]
    return {
        "link_traffic": traffic["planned"],
        "link_excess_percent": excess_percent(traffic["planned"], traffic["ideal"]),
        "link_unicast_percent": excess_percent(traffic["unicast"], traffic["ideal"]),
        "link_bound_percent": excess_percent(traffic["bound"], traffic["ideal"]),
        "switch_entries": len(entries),
        "fullest_switch": max(fullest.to_pylist(), default=0),
    }


def stretched(job: Job, smaller: ChannelsSection, larger: ChannelsSection) -> Planned:
    """The map with fewer channels as a plan for more, which has no use for the rest.

    What the discarded plan changed in an older one says nothing about this one.
    """
    made = replace(larger, map=smaller.map, ledger=smaller.ledger, counted=smaller.counted)
    made = replace(made, switches=smaller.switches)
    return planned_channels(job, made, {}, None)


def take_interrupts(job: Job, params: ChannelsParams) -> None:
    """A session that starts sets what Ctrl-C does: the search must have the last word."""
    if params.restarts > 1 or params.on_spark:
        job.engine.session()
        job.watch.asked(math.inf)


def prepared(job: Job, method: Method, params: ChannelsParams, given: Mapping[str, Any]) -> Run:
    """A run of the method with the options in the numbers of the problem."""
    fields = translate(job.dataset, params.channels, given)
    params_of = method.params(channels=params.channels, weights=params.prices.weights, **fields)
    return Run(method, params_of, rows_for(method, given))


def carry_out(
    job: Job, run: Run, params: ChannelsParams
) -> tuple[ChannelsSection, tuple[float, ...]]:
    """Run here, as restarts or islands, or on Spark: the plan, and the costs of all searches."""
    if params.restarts > 1:
        # Stages import Spark, which takes its time: only who needs them waits.
        from fanplan.layers.channels.stages.restarts import best_of_restarts, evolve_islands

        if run.method.subscriptions:
            problem = load_subscriptions(job.dataset.path)
            return evolve_islands(job, run, problem, params.restarts)
        return best_of_restarts(job, run, params.restarts)
    if params.max_switch_entries is not None:
        made = planned_in_tables(job, run, as_recorded(params))
    else:
        made = planned_on_spark(job, run) if params.on_spark else planned_here(job, run)
    return made, (made.cost,)


def planned_here(job: Job, run: Run) -> ChannelsSection:
    """In this process, shown as a stage with its best cost."""
    method, watch = run.method, job.watch
    with job.engine.progress.stage(f"plan by {method.name}") as stage:
        problem = load_problem(job.dataset.path, method, run.rows)
        return channels_by_method(problem, method, run.params, job.seed, watch.telling(stage))


def planned_in_tables(job: Job, run: Run, params: ChannelsParams) -> ChannelsSection:
    """In this process, within the tables of switches; rows are flows, which enter somewhere."""
    path = job.dataset.path
    with job.engine.progress.stage("plan within tables of switches") as stage:
        interest = load_interest(path, "flow")
        require_traffic(interest)
        stop = job.watch.telling(stage)
        limit = cast("int | Mapping[str, int]", params.max_switch_entries)
        placed = load_switch_problem(path, interest, limit)
        map, tables = channels_in_tables(placed, interest, params.channels, job.seed, stop)
        section = told(interest, run.method, run.params, job.seed, map)
        return replace(section, switches=tables)


def planned_on_spark(job: Job, run: Run) -> ChannelsSection:
    """With Lloyd passes and the assignment as Spark jobs, for more rows than fit a search."""
    from fanplan.layers.channels.stages.decisions import as_plan
    from fanplan.layers.channels.stages.restarts import shared_folder
    from fanplan.layers.channels.stages.scale import plan_on_spark

    params, path = run.params, job.dataset.path
    if not isinstance(params, KmodesParams):
        what = f"the method {run.method.name} does not run that way"
        raise InputError(Problem("on_spark", what, "Use the method kmodes, or leave it out"))
    spark, progress = job.engine.session(), job.engine.progress
    with shared_folder(path.absolute(), "planning") as folder:
        work = folder / "work"
        decided = plan_on_spark(spark, path, params, job.seed, work, job.watch, progress)
        return as_plan(decided, path, params, job.seed)


# ---- changes of an older plan


def churned(job: Job, run: Run, section: ChannelsSection, params: ChannelsParams) -> dict[str, Any]:
    """What a plan changes in the one it started from, and what keeping so much of it costs.

    ``gone`` counts pairs of the older plan whose flow or subscriber is no more. The cost of a plan
    made afresh is None if its search did not come to its end.
    """
    assert params.start
    older = load_start(job.dataset, params.channels, params.start)
    changed = map_changes(older.map, section.map)
    fresh = None if job.watch.ended or params.on_spark else fresh_cost(job, run, params)
    given_up = None if not fresh else round(100 * (section.cost / fresh - 1), 9)
    further = {"gone": older.gone, "fresh_cost": fresh, "given_up_percent": given_up}
    return changed._asdict() | further


def fresh_cost(job: Job, run: Run, params: ChannelsParams) -> float | None:
    """What the same limits allow without an older plan, if nothing ends that search early."""
    afresh = {name: value for name, value in params.limits.items() if name not in CHANGES}
    watch = Watch(job.watch.time, job.watch.asked)
    found = planned_here(replace(job, watch=watch), prepared(job, run.method, params, afresh))
    return None if watch.ended else found.cost


# ---- other methods


def compare_methods(
    job: Job, section: ChannelsSection, methods: Iterable[str]
) -> list[dict[str, Any]]:
    """What other methods would cost; a second step is named as in ``tock+greedy-flow``.

    Limits do not apply to them. A method that cannot do it has a row that says why. When the job is
    stopped, those that are left are left out.
    """
    found = [find_method(*name.split("+", 1)) for name in methods]
    results: list[dict[str, Any]] = []
    for method in found:
        if job.watch.asked(math.inf):
            break
        with job.engine.progress.stage(f"compare {method.name}"):
            try:
                results.append(compared_method(job, section, method))
            except InputError as error:
                results.append({"method": method.name, "refused": str(error)})
    return results


def compared_method(job: Job, section: ChannelsSection, method: Method) -> dict[str, Any]:
    """What another method costs, and how long it takes."""
    weights, channels = section.weights, section.params.channels
    given = load_problem(job.dataset.path, method)
    problem = interest_of(given)
    require_traffic(problem)
    require_enough_flows(problem, channels)
    began = clock.perf_counter()
    params = method.params(channels=channels, weights=weights)
    made = method.planner(given, params, job.seed, job.watch.asked)
    ledger = analytic_ledger(problem, tidied(problem, made, kept_by(params)))
    total = cost(ledger, weights)
    return {
        "method": method.name,
        "cost": total,
        "excess_percent": excess_percent(total, perfect(problem, weights)),
        "unicast_fraction": unicast_fraction(ledger),
        "seconds": clock.perf_counter() - began,
    }


# ---- what must hold before the work begins


def require_names(dataset: Dataset, names: Iterable[str]) -> None:
    """Every name must be that of a flow, a topic or a subscriber that can be explained."""
    for name in names:
        find_named(dataset, name)


def require_whole_cover(dataset: Dataset) -> None:
    """Channels must miss nobody; full cover leaves partly covered cells to default routing."""
    if dataset.manifest.cover == "full" and not dataset.manifest.exact:
        what = "has full cover, which leaves out whoever wants only a part of a cell"
        remedy = "Ingest with --cover overlap, or with --grid atomic"
        raise InputError(Problem(str(dataset.path), what, remedy))
