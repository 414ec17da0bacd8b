"""Overlay plans: brokers as they are, linked; or those that clients need, and who goes where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Ints
from fanplan.core.errors import InfeasibleError, InputError
from fanplan.core.version import __version__
from fanplan.data.dataset import PathLike
from fanplan.layers.overlay.allocation.allocation import (
    Allocation,
    AllocationParams,
    Ranking,
    ranked_allocation,
)
from fanplan.layers.overlay.allocation.best import best_allocation
from fanplan.layers.overlay.allocation.bound import (
    fewest_brokers,
    require_enough,
    require_fitting,
)
from fanplan.layers.overlay.allocation.cram import cram_allocation
from fanplan.layers.overlay.allocation.crossing import fewer_messages, spread
from fanplan.layers.overlay.allocation.phases import Deployed, deployed, deployed_overlay, stable
from fanplan.layers.overlay.allocation.publishers import cut_messages
from fanplan.layers.overlay.linking import (
    ChosenTrees,
    limits_of,
    links_changed,
    make_trees,
    overlay_figures,
    overlay_layer,
    places_in,
    plan_overlay,
    require_known_brokers,
    similarity_of,
    unknown_place,
)
from fanplan.layers.overlay.params import AllocateParams
from fanplan.layers.overlay.published.similar import overlap_tree, random_tree
from fanplan.layers.overlay.record import AllocationRecord, LimitsRecord, OverlayRecord
from fanplan.layers.overlay.stages.make import make_stages
from fanplan.layers.registry import load_plan
from fanplan.network.brokers import ClientProblem
from fanplan.network.dataset import (
    load_clients,
    publisher_names,
    read_brokers,
    read_links,
    subscriber_names,
)
from fanplan.plan.axis import Axis
from fanplan.plan.made import Job, Planned


def plan_allocation(job: Job, params: AllocateParams) -> Planned:
    """Decide how many brokers are needed and which client goes where, and connect them."""
    told = AllocationParams(lcf=params.share, load=params.load)
    require_named(job.dataset.path, params)
    make_stages(job.dataset, params, job.engine, allocated=True)
    problem = load_clients(job.dataset.path)
    run = Allocating(job, problem, told, params)
    bound = fewest_brokers(problem, told)
    if params.brokers is not None:
        require_fitting(problem, told, params.brokers, bound)
    with job.engine.progress.stage(f"allocation {params.ranking}") as stage:
        job.watch.telling(stage)
        done = stable(problem, run.once, told) if params.stable else run.once(told)
    if params.brokers is not None:
        require_enough(done.allocation, params.brokers, bound)
    return run.plan(done, bound)


def require_named(dataset: Path, params: AllocateParams) -> None:
    """What options name is there: brokers, clients, and an older plan with an overlay."""
    brokers = read_brokers(dataset).names
    require_known_brokers(params.degrees, brokers)
    clients = {*publisher_names(dataset).to_pylist(), *subscriber_names(dataset).to_pylist()}
    known = clients | set(brokers.to_pylist())
    for name in (name for near, far, _ in params.within for name in (near, *far)):
        if name not in known:
            raise InputError(unknown_place(name))
    if params.start:
        _ = load_plan(Path(params.start)).section(OverlayRecord)


@dataclass(frozen=True, eq=False)
class Allocated(Deployed):
    """An allocation by some parameters, with its clients by name and the limits of its trees."""

    params: AllocationParams
    clients: pa.Table
    limits: LimitsRecord


@dataclass(frozen=True, eq=False)
class Allocating:
    """One request to allocate and link."""

    job: Job
    problem: ClientProblem
    params: AllocationParams
    asked: AllocateParams

    def once(self, params: AllocationParams) -> Allocated:
        """Allocate, then link; and move clients or publishers if that was asked for."""
        found = self.allocated(params)
        if self.asked.fewest == "messages":
            return self.with_fewest_messages(params, found)
        made = self.linked(params, found)
        if self.asked.publishers == "ranked":
            return made
        return cut_messages(self.problem, made, self.linked, params)

    def with_fewest_messages(self, params: AllocationParams, found: Allocation) -> Allocated:
        """From the best of what fewest brokers have, of least load there, and with all allowed."""
        search = (self.job.seed, self.job.watch)
        counts = sorted({found.brokers, max(self.asked.brokers or 0, found.brokers)})
        others = (spread(self.problem, params, found, count, *search) for count in counts)
        made = (self.linked(params, each) for each in (found, *others))
        start = min(made, key=lambda each: each.ledger.link_messages)
        return fewer_messages(self.problem, start, self.linked, params, *search)

    def linked(self, params: AllocationParams, allocation: Allocation) -> Allocated:
        """Link the brokers of an allocation."""
        overlay = deployed_overlay(self.problem, allocation)
        overlay = replace(overlay, links=read_links(self.job.dataset.path, overlay.brokers))
        clients = client_table(self.problem, allocation)
        limits = limits_of(self.asked, places_in(overlay.brokers, clients), overlay.brokers)
        trees = make_trees(overlay, self.asked, limits, self.job.seed, self.job.watch)
        return Allocated(allocation, overlay, trees, params, clients, limits)

    def allocated(self, params: AllocationParams) -> Allocation:
        seed, start = self.job.seed, self.asked.start
        if self.asked.ranking == "cram":
            return cram_allocation(self.problem, self.asked.closeness or "ios", params)
        if self.asked.ranking != "best":
            return ranked_allocation(self.problem, self.asked.ranking, params, seed)
        before = homes_before(self.problem, start) if start else None
        search = (self.problem, params, seed, self.job.watch)
        return best_allocation(*search, start=before, most_moves=self.asked.moves)

    def plan(self, done: Allocated, bound: int) -> Planned:
        used = np.sort(done.allocation.used)
        loads = done.allocation.exact if self.params.load == "exact" else done.allocation.estimate
        decided = ChosenTrees(
            self.asked,
            similarity_of(done.overlay, self.asked),
            done.clients,
            done.limits,
            allocation=self.record(done, bound),
            client_load=loads[used],
        )
        seed, start = self.job.seed, self.asked.start
        section = overlay_layer(done.overlay, done.trees, decided, seed, __version__)
        figures = overlay_figures(section, done.overlay)
        if start:
            moved = done.allocation.moved_from(homes_before(self.problem, start))
            figures |= {"changed": links_changed(section, start), "moved": moved}
        return Planned(
            (section,),
            figures,
            done.overlay,
            compared=lambda names: compare_rankings(self.problem, self.params, names, seed),
            ended=self.job.watch.ended,
        )

    def record(self, done: Allocated, bound: int) -> AllocationRecord:
        people = self.problem.publishers.to_pylist() + self.problem.subscribers.to_pylist()
        names, reserved = self.problem.brokers.to_pylist(), done.params.reserved
        used = done.allocation.used
        kept = [] if reserved is None else [b for b in used.tolist() if reserved[b] > 0]
        return AllocationRecord(
            lcf=done.params.lcf,
            reserved={} if reserved is None else {names[b]: float(reserved[b]) for b in kept},
            lone=tuple(sorted(people[client] for client in done.allocation.lone.tolist())),
            bound=bound,
            cost=float(self.problem.cost[used].sum()),
        )


def client_table(problem: ClientProblem, allocation: Allocation) -> pa.Table:
    """Columns client, role and broker."""
    sizes = len(problem.publishers), len(problem.subscribers)
    roles = ["publisher"] * sizes[0] + ["subscriber"] * sizes[1]
    return pa.table(
        {
            "client": pa.concat_arrays([problem.publishers, problem.subscribers]),
            "role": roles,
            "broker": problem.brokers.take(pa.array(allocation.broker)),
        }
    )


def homes_before(problem: ClientProblem, start: PathLike) -> Ints:
    """The broker of each client in an older plan, as positions; -1 where it had none."""
    plan = load_plan(Path(start))
    _ = plan.section(OverlayRecord)
    clients = plan.read("clients", ("client", "role", "broker"))
    homes = []
    for role, names in (("publisher", problem.publishers), ("subscriber", problem.subscribers)):
        rows = clients.filter(pc.equal(clients["role"], role))
        at = Axis("client", names).number(rows)
        broker = Axis("broker", problem.brokers).number(rows)
        home = np.full(len(names), -1, np.int32)
        home[at[at >= 0]] = broker[at >= 0]
        homes.append(home)
    return np.concatenate(homes)


def compare_rankings(
    problem: ClientProblem, params: AllocationParams, rankings: Iterable[str], seed: int
) -> list[dict[str, Any]]:
    """What other allocations by the same rule need, each with the tree that the thesis gives it.

    That is the overlap tree, and for the baseline, which ignores similarity, a random one.
    """
    rows = []
    for ranking in rankings:
        try:
            found = (
                cram_allocation(problem, "ios", params)
                if ranking == "cram"
                else ranked_allocation(problem, cast("Ranking", ranking), params, seed)
            )
        except InfeasibleError:
            continue
        tree = (lambda o: random_tree(o, seed)) if ranking == "baseline" else overlap_tree
        made = deployed(problem, found, tree)
        rows.append(
            {
                "ranking": ranking,
                "brokers": found.brokers,
                "cost": float(problem.cost[found.used].sum()),
                "link_messages": made.ledger.link_messages,
                "messages_per_publication": made.ledger.messages_per_publication,
                "delay_mean": made.ledger.delay_mean,
                "overloaded": len(made.overloaded),
            }
        )
    return rows


PLANS = {"overlay": plan_overlay, "allocate": plan_allocation}
