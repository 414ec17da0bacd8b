"""One plan for all layers beside every paper's system alone, and beside the naive system.

    python benchmarks/design.py [--quick] [--only NAME …] [--seed N] [--data DIR] [--json FILE]

Every workload is generated and ingested on Spark. All systems get the same clients, prices and
limits, and all costs are the ledger's: messages sent, received, forwarded and matched, state and
control messages, and descriptors. What a system lacks is done the naive way:

- naive: every message visits and is matched at every broker of a random tree, subscriptions go
  everywhere. Without brokers everybody receives everything.
- routing: only where it is wanted, matched at every hop of the random tree.
- channels: Bickson et al. (2010), K-means and greedy unicast, in each domain; else as routing.
- genetic: Guimarães and Rodrigues (2003), subscriptions mapped in each domain; else as routing.
- overlay: Tajuddin (2011), a tree of overlaps, and allocation by GIG; else as routing.
- groups: Zhang and Hu (2005), groups by members × messages on the random tree.
- marking: Ge et al. (2002), links of the random tree are marked; else as routing.
- sequential: all of Fanplan's layers one after the other. joint: `fanplan.design`.

Flows are exact: a topic and an audience. The genetic method alone needs cells, and gets an atomic
grid. Where topics have attributes, the joint design is also made for every kind of grid, and shown
with the share of received messages that nobody asked for.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import fanplan
from fanplan.core.arrays import Bools
from fanplan.core.prices import Weights
from fanplan.core.stop import never
from fanplan.data.engine import EMBEDDED
from fanplan.layers.channels.ledger import analytic_ledger, completed
from fanplan.layers.channels.map import ChannelMap, map_pairs
from fanplan.layers.channels.methods import find_method
from fanplan.layers.channels.published.genetic.params import GeneticParams
from fanplan.layers.channels.published.genetic.plan import genetic
from fanplan.layers.channels.published.genetic.problem import (
    SubscriptionProblem,
    lists,
    load_subscriptions,
)
from fanplan.layers.channels.published.params import HybridParams
from fanplan.layers.delivery.build import marked_overlay, planned_trees
from fanplan.layers.delivery.command import has_brokers
from fanplan.layers.delivery.ledger import groups_left
from fanplan.layers.delivery.problem import (
    EVERYWHERE,
    DeliveryProblem,
    DomainInterest,
    load_delivery,
    load_flat,
    local_interest,
)
from fanplan.layers.delivery.record import Delivery
from fanplan.layers.delivery.search.in_turn import joined_maps, with_groups
from fanplan.layers.delivery.search.joint import JudgedDelivery, judge_delivery, without_channels
from fanplan.layers.delivery.search.params import DeliveryParams
from fanplan.layers.delivery.stages.make import make_senders
from fanplan.layers.delivery.steps import flat_steps, flooding
from fanplan.layers.groups.search.choose import choose_groups
from fanplan.layers.marking.command import mark_tree
from fanplan.layers.overlay.params import Ranking, Tree
from fanplan.layers.overlay.record import OverlaySection
from fanplan.network.dataset import distinct, multicast_domains, read_brokers


@dataclass(frozen=True)
class Case:
    """A workload: its generator, sizes and publications, and what a design of it is limited to."""

    name: str
    kind: str
    sizes: dict[str, Any]
    publications: int
    limits: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """Cases that differ in limits alone share a dataset."""
        sizes = "".join(f"-{name}{value}" for name, value in self.sizes.items())
        return f"{self.kind}-{self.publications}{sizes}"


LARGER = {"flows": 1_000, "users": 600, "sites": 8, "brokers_per_site": 4, "filtered": 0.8}
BROKERS = {"brokers": 100, "subscriptions": 1_000, "advertisements": 330}

ANYWHERE = {"multicast": "everywhere"}
"""For brokers that have no sites."""

CASES = (
    Case("enterprise", "enterprise", {}, 50_000, {"channels": 20}),
    Case("enterprise, few channels", "enterprise", {}, 50_000, {"channels": 6}),
    Case(
        "larger enterprise, all limited",
        "enterprise",
        LARGER,
        200_000,
        {"channels": 20, "entries": 2_000, "unicast_limit": 0.2},
    ),
    Case("market, no brokers", "market", {"flows": 4_000, "rate": 50.0}, 0, {"channels": 50}),
    Case("brokers, multicast everywhere", "brokers", BROKERS, 10_000, ANYWHERE | {"channels": 20}),
    Case("brokers, no multicast", "brokers", BROKERS, 10_000, {"entries": 2_000}),
    Case("tree-grid", "tree-grid", {}, 20_000, {"entries": 500}),
    Case(
        "clients to allocate",
        "clients",
        {"advertisements": 200, "brokers": 400, "capacity": 100.0},
        20_000,
        ANYWHERE | {"channels": 10, "entries": 200},
    ),
)

QUICK = (
    Case("enterprise", "enterprise", {"flows": 60, "users": 40}, 2_000, {"channels": 4}),
    Case("market, no brokers", "market", {"flows": 300, "users": 40}, 0, {"channels": 5}),
    Case(
        "brokers, multicast everywhere",
        "brokers",
        {"brokers": 15, "subscriptions": 90, "advertisements": 30},
        500,
        ANYWHERE | {"channels": 3},
    ),
)

TIMES = (3.0, 10.0, 30.0)
"""Seconds that a search is given, to see how far it goes beyond."""


# ---- what systems have in common


@dataclass(frozen=True, eq=False)
class World:
    """A dataset, the same in atomic cells, and what delivery in it is limited to."""

    dataset: fanplan.Dataset
    cells: fanplan.Dataset
    params: DeliveryParams
    seed: int

    @cached_property
    def brokers(self) -> bool:
        return has_brokers(self.dataset)

    def linked(self, metric: Tree, ranking: Ranking) -> OverlaySection:
        """Brokers linked by a metric; clients without brokers are allocated by a ranking."""
        if distinct(self.dataset.path, "subscriptions", "broker") != {None}:
            made = fanplan.overlay(self.dataset, metric=metric, seed=self.seed)
        else:
            made = fanplan.allocate(self.dataset, ranking=ranking, metric=metric, seed=self.seed)
        section: OverlaySection = made.section
        return section

    @cached_property
    def random_layer(self) -> OverlaySection:
        return self.linked("random", "baseline")

    @cached_property
    def random(self) -> DeliveryProblem:
        """The problem on the naive tree, or without brokers."""
        return self.on(self.random_layer) if self.brokers else load_flat(self.dataset.path)

    def on(self, layer: OverlaySection) -> DeliveryProblem:
        """The problem on the trees of an overlay."""
        make_senders(self.dataset, EMBEDDED)
        names = read_brokers(self.dataset.path).names
        site, sites = multicast_domains(self.dataset.path, names)
        domain = site if len(sites) else np.repeat(EVERYWHERE, len(names))
        clients, trees = layer.tables["clients"], planned_trees(layer, names)
        return load_delivery(self.dataset.path, names, clients, trees, domain, homes=True)

    @cached_property
    def descriptors(self) -> tuple[float, float] | None:
        """What descriptors cost if subscriptions go everywhere, and with marks, on the naive tree.

        None without brokers.
        """
        if not self.brokers:
            return None
        record = mark_tree(self.dataset, marked_overlay(self.random_layer), EMBEDDED).record
        return record.sub_everywhere, record.cost

    @property
    def everywhere(self) -> float:
        """The price of subscriptions that go everywhere."""
        return self.params.prices.control * (self.descriptors or (0.0, 0.0))[0]


@dataclass(frozen=True)
class Row:
    """What a system costs, and the share of messages to subscribers that go to one alone."""

    system: str
    cost: float
    unicast: float
    entries: int = 0


# ---- the systems


def systems(world: World) -> Iterator[Row]:
    """All that the workload allows, the naive one first and the joint design last."""
    yield naive(world)
    plain = routed(world.random, world.params)
    yield told("routing", plain, world.everywhere)
    if world.params.channels:
        yield told("channels", paper_channels(world), world.everywhere)
        yield paper_genetic(world)
    if world.brokers:
        thesis = routed(world.on(world.linked("overlap", "gig")), world.params)
        yield told("overlay", thesis, world.everywhere)
        yield told("groups", paper_groups(world), world.everywhere)
    if world.descriptors:
        yield told("marking", plain, world.params.prices.control * world.descriptors[1])


def told(system: str, judged: JudgedDelivery, descriptors: float) -> Row:
    ledger = judged.ledger
    return Row(system, judged.cost + descriptors, ledger.unicast_fraction, ledger.entries)


def naive(world: World) -> Row:
    if not world.brokers:
        return Row("naive", sum(flat_steps(world.random, world.params)[0][1].values()), 0.0)
    parts = flooding(world.random, world.params)
    return Row("naive", sum(parts.values()) + world.everywhere, 1.0)


def routed(problem: DeliveryProblem, params: DeliveryParams) -> JudgedDelivery:
    """Content-based routing, matched at every hop, and the last hop one by one."""
    plain = replace(params, entries=0, channels=0)
    return judge_delivery(problem, plain, without_channels(problem, plain))


def paper_channels(world: World) -> JudgedDelivery:
    """Channels of every domain by K-means, then a part of them to unicast, greedily by flow."""
    problem, plain = world.random, replace(world.params, entries=0)
    messages = problem.interest.messages[problem.segments.row]
    locals_ = [local_interest(problem, z, messages) for z in range(problem.domains)]
    map, domain = joined_maps(problem, [(own, hybrid_map(own, world)) for own in locals_])
    nobody = np.zeros(problem.interest.size, bool)
    return judge_delivery(problem, plain, with_groups(problem, plain, map, domain, nobody))


def hybrid_map(own: DomainInterest, world: World) -> ChannelMap:
    prices, limit = world.params.prices, world.params.unicast_limit
    wishes = HybridParams(
        channels=min(world.params.channels, own.problem.size),
        weights=Weights(prices.received, prices.sent, 1.0),
        unicast_limit=1.0 if limit is None else limit,
    )
    return find_method("tock", "greedy-flow").planner(own.problem, wishes, world.seed, never)


def paper_groups(world: World) -> JudgedDelivery:
    """The groups that the paper's benefit ranks first, with as many entries as there are."""
    problem = world.random
    plain = without_channels(problem, world.params)
    wishes = replace(world.params.groups, rank="nc")
    chosen = choose_groups(plain.groups, wishes.choice).selected
    return judge_delivery(problem, world.params, replace(plain, selected=chosen))


def paper_genetic(world: World) -> Row:
    """Subscriptions mapped in every domain: all is multicast, some of it more than once.

    Flows of one class may take different channels, so what channels cost is counted by flow. What
    brokers cost is that of one channel for all in each domain, as nobody is left to the last hop.
    """
    prices, problem = world.params.prices, world.random
    cheap = replace(world.params, entries=0)
    total = judge_delivery(problem, cheap, one_channel(problem, cheap))
    parts, near = total.ledger.parts(prices), 0.0
    subscriptions = load_subscriptions(world.cells.path)
    for z in range(problem.domains):
        here = within(subscriptions, problem.domain[problem.home] == z)
        wishes = GeneticParams(channels=min(world.params.channels, here.interest.flow_count))
        ledger = analytic_ledger(here.interest, genetic(here, wishes, world.seed, never))
        near += prices.sent * ledger.sent_multicast + prices.received * ledger.received_multicast
    cost = total.cost - parts["multicast"] + near + world.everywhere
    return Row("genetic", cost, total.ledger.unicast_fraction)


def one_channel(problem: DeliveryProblem, _params: DeliveryParams) -> Delivery:
    """One channel in each domain that has all subscribers there and carries all they want."""
    segments, where = problem.segments, problem.domain[problem.home]
    inside, who = np.flatnonzero(segments.domain >= 0), np.flatnonzero(where >= 0)
    assigned = map_pairs(segments.row[inside], segments.domain[inside])
    map = completed(problem.interest, problem.domains, assigned, map_pairs(where[who], who))
    nobody = np.zeros(problem.interest.size, bool)
    groups = groups_left(problem, map, nobody)
    none = np.zeros(groups.size, bool)
    return Delivery(map, np.arange(problem.domains, dtype=np.int32), nobody, groups, none)


def within(problem: SubscriptionProblem, here: Bools) -> SubscriptionProblem:
    """The subscriptions of some subscribers, and the flows that they cover."""
    interest = problem.interest
    left = np.repeat(np.arange(problem.size), np.diff(problem.subscribers.starts))
    mine = here[problem.subscribers.values]
    kept = np.unique(left[mine])
    row = np.repeat(np.arange(interest.size), interest.audience_sizes)
    wanted = here[interest.audience]
    sizes = np.bincount(row[wanted], minlength=interest.size)
    flows = np.flatnonzero(sizes)
    number = np.zeros(interest.size, np.int32)
    number[flows] = np.arange(len(flows), dtype=np.int32)
    covered = problem.rows.take(kept)
    own = lists(left[mine], problem.subscribers.values[mine], problem.size).take(kept)
    return replace(
        problem,
        topic=problem.topic[kept],
        boxes=problem.boxes.take(kept),
        subscribers=own,
        rows=replace(covered, values=number[covered.values]),
        hits=problem.hits[kept],
        interest=replace(
            interest,
            indptr=np.concatenate(([0], np.cumsum(sizes[flows]))).astype(np.int64),
            audience=interest.audience[wanted],
            messages=interest.messages[flows],
            bytes=interest.bytes[flows],
            flows=interest.flows[flows],
            classes=np.arange(len(flows), dtype=np.int32),
        ),
        row_topic=problem.row_topic[flows],
        row_volume=problem.row_volume[flows],
    )


def designed(world: World, limits: dict[str, Any]) -> tuple[list[Row], float]:
    """Fanplan's layers one after the other and together, and processor seconds of both."""
    began = time.process_time()
    found = fanplan.design(world.dataset, seed=world.seed, **limits)
    seconds = time.process_time() - began
    sections = {
        section.layer: section.record for section in found.sections if hasattr(section, "record")
    }
    record, price = sections["delivery"], world.params.prices.control
    marked = price * sections["marking"].cost if "marking" in sections else 0.0
    entries = sections["groups"].ledger["entries"] if "groups" in sections else 0
    last = Row("joint", record.cost + marked, record.unicast_fraction, int(entries))
    return [Row("sequential", record.layered + marked, np.nan, 0), last], seconds


# ---- measuring


@dataclass(frozen=True)
class Measured:
    """All systems on one workload."""

    case: Case
    classes: int
    subscribers: int
    rows: tuple[Row, ...]
    seconds: float
    grids: tuple[GridRow, ...] = ()


@dataclass(frozen=True)
class GridRow:
    """The joint design with one kind of flows: what it costs, and what is received in vain."""

    grid: str
    flows: int
    cost: float
    unwanted: float


def measure(case: Case, data: Path, seed: int) -> Measured:
    dataset = made(case, data, seed)
    limits = case.limits
    params = DeliveryParams(**{k: v for k, v in limits.items() if k not in ANYWHERE})
    world = World(dataset, made(case, data, seed, "atomic"), params, seed)
    rows = list(systems(world))
    ours, seconds = designed(world, limits)
    interest = world.random.interest
    size = interest.size, len(interest.subscribers)
    grids = tuple(on_grids(case, data, seed)) if dataset.manifest.dimensions else ()
    return Measured(case, *size, (*rows, *ours), seconds, grids)


def on_grids(case: Case, data: Path, seed: int) -> Iterator[GridRow]:
    for grid in ("exact", "atomic", "quantile", "uniform"):
        dataset = made(case, data, seed, grid)
        plan = fanplan.design(dataset, seed=seed, **case.limits)
        ledgers = [s.ledger for s in plan.sections if s.layer == "channels"]
        unwanted = ledgers[0].received_unwanted / max(ledgers[0].received, 1.0)
        cost = plan.summary()["steps"][-1]["cost"]
        yield GridRow(grid, dataset.manifest.stages["flows"], cost, unwanted)


def made(case: Case, data: Path, seed: int, grid: str = "exact") -> fanplan.Dataset:
    """The dataset of a case, generated and ingested unless it is there."""
    workload, out = data / case.folder, data / f"{case.folder}.{grid}"
    if not out.exists():
        if not workload.exists():
            fanplan.generate(
                case.kind, workload, publications=case.publications, seed=seed, **case.sizes
            )
        fanplan.ingest(workload, out, grid=grid)
    return fanplan.open_dataset(out)


def show(found: Measured) -> None:
    limits = ", ".join(f"{name} {value}" for name, value in found.case.limits.items())
    print(f"\n{found.case.name}: {found.classes:,} classes, {found.subscribers:,} subscribers; "
          f"{limits}; design {found.seconds:.1f} s of processor time")  # fmt: skip
    print(f"{'system':<12} {'cost':>14} {'/ naive':>8} {'/ joint':>8} unicast  entries")
    first, last = found.rows[0].cost, found.rows[-1].cost
    for row in found.rows:
        share = "" if np.isnan(row.unicast) else f"{row.unicast:.2f}"
        print(f"{row.system:<12} {row.cost:>14,.0f} {row.cost / first:>8.3f} "
              f"{row.cost / last:>8.3f} {share:>8} {row.entries:>8,}", flush=True)  # fmt: skip


def show_grids(found: Measured) -> None:
    """Exact flows beside grids, which cost what nobody asked for."""
    if found.grids:
        print(f"{'flows':<12} {'number':>14} {'joint cost':>14} {'/ exact':>8} unwanted")
    for row in found.grids:
        ratio = row.cost / found.grids[0].cost
        print(f"{row.grid:<12} {row.flows:>14,} {row.cost:>14,.0f} {ratio:>8.3f} "
              f"{row.unwanted:>8.1%}", flush=True)  # fmt: skip


def show_overshoot(dataset: fanplan.Dataset, limits: dict[str, Any], seed: int) -> None:
    """How far a limited search goes beyond its time: what reading and proving take is taken off."""
    print(f"\n{'seconds given':<14} {'taken':>8} {'beyond':>8}")
    spent = {}
    for limit in (0.01, *TIMES):
        began = time.perf_counter()
        fanplan.design(dataset, seed=seed, time=limit, **limits)
        spent[limit] = time.perf_counter() - began
    for limit in TIMES:
        taken = spent[limit] - spent[0.01]
        print(f"{limit:<14g} {taken:>8.2f} {taken - limit:>8.2f}", flush=True)


def conclude(results: list[Measured]) -> None:
    """Joint beside sequential and beside the best system of a paper, on every workload."""
    print(f"\n{'workload':<32} {'joint below sequential':>22} {'below the best paper':>22}")
    for found in results:
        costs = {row.system: row.cost for row in found.rows}
        papers = [costs[name] for name in costs if name not in ("joint", "sequential")]
        below = [1 - costs["joint"] / other for other in (costs["sequential"], min(papers))]
        print(f"{found.case.name:<32} {below[0]:>21.2%}  {below[1]:>21.1%}")


def as_json(found: Measured) -> dict[str, Any]:
    rows = [vars(row) | {"unicast": None if np.isnan(row.unicast) else row.unicast}
            for row in found.rows]  # fmt: skip
    grids = [vars(row) for row in found.grids]
    return vars(found) | {"case": vars(found.case), "rows": rows, "grids": grids}


def main() -> None:
    every = [case.name for case in CASES]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--only", nargs="+", choices=every, metavar="NAME", default=every)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, help="keep the datasets here and use them again")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="fanplan-design-") as folder:
        data = options.data or Path(folder)
        for case in QUICK if options.quick else CASES:
            if case.name in options.only:
                results.append(measure(case, data, options.seed))
                show(results[-1])
                show_grids(results[-1])
            if case.name in options.only and case.name == "larger enterprise, all limited":
                show_overshoot(made(case, data, options.seed), case.limits, options.seed)
    conclude(results)
    if options.json:
        options.json.write_text(json.dumps([as_json(found) for found in results], indent=2))


if __name__ == "__main__":
    main()
