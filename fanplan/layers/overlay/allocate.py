"""Allocation: how many brokers are needed, which client goes where, and how they are linked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np

from fanplan.core.errors import InputError, Problem
from fanplan.core.stop import Watch
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers.overlay.command import OverlayPlan, links_changed, make_trees, similarity_of
from fanplan.layers.overlay.params import TreeWishes, limits_of, places_in, tree_wishes
from fanplan.layers.overlay.stages.make import make_client_stages

if TYPE_CHECKING:
    import pyarrow as pa

    from fanplan.core.arrays import Ints
    from fanplan.core.stop import Stop
    from fanplan.layers.overlay.allocation.allocation import Allocation, AllocationParams, Load
    from fanplan.layers.overlay.record import AllocationRecord, LimitsRecord
    from fanplan.network.brokers import ClientProblem, OverlayProblem
    from fanplan.network.trees import Tree, Trees

Method = Literal["best", "gli", "gi", "gig", "baseline"]
METHODS = get_args(Method)


def allocate(
    dataset: Dataset,
    *,
    ranking: str = "best",
    lcf: float | None = None,
    load: str = "exact",
    brokers: int | None = None,
    stable: bool = False,
    moves: int | None = None,
    seed: int = 0,
    time: float | None = None,
    stop: Stop | None = None,
    engine: Engine = EMBEDDED,
    **options: Any,
) -> OverlayPlan:
    """Decide how many brokers are needed, which client goes where, and link those brokers.

    ``ranking`` is best, or one of gli, gi, gig and baseline of Tajuddin (2011). Clients may fill a
    broker up to ``lcf`` × capacity (0.75, or 1 with ``stable``); ``load`` says how that is
    measured: exact, or by the thesis' estimate. ``brokers`` asks whether so many are enough; if
    not, an `InfeasibleError` says how many are. ``stable`` repeats allocation and linking until
    what is forwarded fits too, instead of leaving a fixed share for it. With ``start``, at most
    ``moves`` clients that were placed before change their broker. Further ``options`` are those of
    `overlay`.
    """
    from fanplan.layers.overlay.allocation.allocation import AllocationParams
    from fanplan.layers.overlay.allocation.bound import (
        fewest_brokers,
        require_enough,
        require_fitting,
    )
    from fanplan.network.dataset import load_clients

    wishes, watch = tree_wishes(options), Watch(time, stop)
    require_sense(ranking, load, wishes, moves, stable)
    share = lcf if lcf is not None else (1.0 if stable else 0.75)
    params = AllocationParams(lcf=share, load=cast("Load", load))
    make_client_stages(dataset, wishes.recorded(), engine)
    problem = load_clients(dataset.path)
    run = Allocating(dataset, problem, cast("Method", ranking), params, wishes, seed, watch, moves)
    bound = fewest_brokers(problem, params)
    if brokers is not None:
        require_fitting(problem, params, brokers, bound)
    with engine.progress.stage(f"allocation {ranking}") as stage:
        watch.telling(stage)
        done = run.stable() if stable else run.once(params)
    if brokers is not None:
        require_enough(done.allocation, brokers, bound)
    return run.plan(done, bound)


def require_sense(
    ranking: str, load: str, wishes: TreeWishes, moves: int | None, stable: bool
) -> None:
    """Options that are known, and that go together."""
    if ranking not in METHODS:
        remedy = f"Use one of: {', '.join(METHODS)}"
        raise InputError(Problem("ranking", f"{ranking!r} is unknown", remedy))
    if load not in ("exact", "estimate"):
        raise InputError(Problem("load", f"{load!r} is unknown", "Use exact or estimate"))
    if wishes.metric == "cover":
        what = "covering is not known of clients that may go anywhere"
        raise InputError(Problem("metric", what, "Use another metric"))
    if wishes.rates:
        what = "the load of clients counts rates already"
        raise InputError(Problem("rates", what, "Leave it out"))
    if moves is not None and wishes.start is None:
        what = "there is no older plan to move clients of"
        raise InputError(Problem("moves", what, "Give the plan to start from, or leave it out"))
    if wishes.start is not None and ranking != "best":
        what = f"the ranking {ranking} always allocates afresh"
        raise InputError(Problem("start", what, "Use the ranking best"))
    if stable and wishes.trees > 1:
        what = "phases are repeated with one tree"
        raise InputError(Problem("trees", what, "Leave out one of stable and trees"))


@dataclass(frozen=True, eq=False)
class Allocated:
    """An allocation, the overlay problem of its brokers, its clients by name, and its trees."""

    allocation: Allocation
    params: AllocationParams
    overlay: OverlayProblem
    clients: pa.Table
    limits: LimitsRecord
    trees: Trees


@dataclass(frozen=True, eq=False)
class Allocating:
    """One request to allocate and link."""

    dataset: Dataset
    problem: ClientProblem
    ranking: Method
    params: AllocationParams
    wishes: TreeWishes
    seed: int
    watch: Watch
    moves: int | None

    def once(self, params: AllocationParams) -> Allocated:
        """Allocate, then link."""
        return self.linked(self.allocated(params), params)

    def allocated(self, params: AllocationParams) -> Allocation:
        from fanplan.layers.overlay.allocation.allocation import ranked_allocation
        from fanplan.layers.overlay.allocation.best import best_allocation

        if self.ranking != "best":
            return ranked_allocation(self.problem, self.ranking, params, self.seed)
        if self.wishes.start is None:
            return best_allocation(self.problem, params, self.seed, self.watch)
        before = homes_before(self.problem, self.wishes.start)
        return best_allocation(
            self.problem, params, self.seed, self.watch, start=before, most_moves=self.moves
        )

    def linked(self, allocation: Allocation, params: AllocationParams) -> Allocated:
        from fanplan.layers.overlay.allocation.phases import deployed_overlay
        from fanplan.network.dataset import read_links

        overlay = deployed_overlay(self.problem, allocation)
        overlay = replace(overlay, links=read_links(self.dataset.path, overlay.brokers))
        clients = client_table(self.problem, allocation)
        limits = limits_of(self.wishes, places_in(overlay.brokers, clients), overlay.brokers)
        trees = make_trees(overlay, self.wishes, limits, self.seed, self.watch)
        return Allocated(allocation, params, overlay, clients, limits, trees)

    def stable(self) -> Allocated:
        """Allocate and link in turn until what is forwarded fits too (thesis, section 6.3)."""
        from fanplan.layers.overlay.allocation.phases import stable

        rounds: list[Allocated] = []

        def allocate_again(params: AllocationParams) -> Allocation:
            rounds.append(self.once(params))
            return rounds[-1].allocation

        def link(overlay: OverlayProblem) -> Tree:
            from fanplan.network.trees import tree_of

            return tree_of(*rounds[-1].trees.links.T)

        done = stable(self.problem, allocate_again, self.params, link)
        return rounds[done.rounds - 1]

    def plan(self, done: Allocated, bound: int) -> OverlayPlan:
        from fanplan.core.version import __version__
        from fanplan.layers.overlay.build import ChosenTrees, overlay_layer

        used = np.sort(done.allocation.used)
        loads = done.allocation.exact if self.params.load == "exact" else done.allocation.estimate
        decided = ChosenTrees(
            method=self.wishes.metric,
            params=self.wishes.recorded(),
            metric=self.wishes.weighed_by,
            similarity=similarity_of(done.overlay, self.wishes),
            clients=done.clients,
            limits=done.limits,
            allocation=self.record(done, bound),
            client_load=loads[used],
        )
        layer = overlay_layer(done.overlay, done.trees, decided, self.seed, __version__)
        start, ended = self.wishes.start, self.watch.ended
        changed = None if start is None else links_changed(layer, start)
        moved = None if start is None else self.moved(done, start)
        return OverlayPlan(layer, self.dataset, done.overlay, ended, changed, moved)

    def record(self, done: Allocated, bound: int) -> AllocationRecord:
        from fanplan.layers.overlay.record import AllocationRecord

        people = self.problem.publishers.to_pylist() + self.problem.subscribers.to_pylist()
        names, reserved = self.problem.brokers.to_pylist(), done.params.reserved
        used = done.allocation.used
        kept = [] if reserved is None else [b for b in used.tolist() if reserved[b] > 0]
        return AllocationRecord(
            method=self.ranking,
            lcf=done.params.lcf,
            load=done.params.load,
            reserved={} if reserved is None else {names[b]: float(reserved[b]) for b in kept},
            lone=tuple(sorted(people[client] for client in done.allocation.lone.tolist())),
            bound=bound,
            cost=float(self.problem.cost[used].sum()),
        )

    def moved(self, done: Allocated, start: PathLike) -> int:
        before = homes_before(self.problem, start)
        return int(((before >= 0) & (before != done.allocation.broker)).sum())


def client_table(problem: ClientProblem, allocation: Allocation) -> pa.Table:
    """Columns client, role and broker."""
    import pyarrow as pa

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
    import pyarrow.compute as pc

    from fanplan.layers.overlay.record import OverlayRecord
    from fanplan.layers.registry import load_plan
    from fanplan.plan.axis import Axis

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
