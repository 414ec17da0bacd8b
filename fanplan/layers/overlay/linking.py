"""Linking brokers: the trees that are asked for, within limits, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from fanplan.core.arrays import Floats, values_at
from fanplan.core.errors import InputError, Problem
from fanplan.core.stop import Stop, never
from fanplan.core.version import __version__
from fanplan.data.dataset import Dataset, PathLike
from fanplan.layers.overlay.params import HOP_MS, OverlayParams
from fanplan.layers.overlay.published.similar import (
    SIMILAR,
    hybrid_similarity,
    hybrid_tree,
    random_tree,
    require_connected,
)
from fanplan.layers.overlay.record import (
    AllocationRecord,
    LimitsRecord,
    OverlayRecord,
    OverlaySection,
)
from fanplan.layers.overlay.search.improve import improved_tree, require_possible_tree
from fanplan.layers.overlay.search.judge import ImproveParams, TreeLimits
from fanplan.layers.overlay.search.several import general_overlay
from fanplan.layers.overlay.stages.make import make_stages
from fanplan.layers.registry import load_plan
from fanplan.network.brokers import OverlayProblem, Routes
from fanplan.network.carried import OverlayLedger, trees_ledger
from fanplan.network.dataset import given_clients, load_overlay, read_brokers, silent_overlay
from fanplan.network.trees import Tree, Trees, one_tree, tree_of
from fanplan.plan.axis import Axis
from fanplan.plan.made import Job, Planned

Places = Callable[[str], list[int]]


def plan_overlay(job: Job, params: OverlayParams) -> Planned:
    """Connect the brokers of a workload; clients stay where they are."""
    dataset, engine = job.dataset, job.engine
    clients = given_clients(dataset.path)
    limits = required_limits(dataset, params, clients)
    make_stages(dataset, params, engine)
    problem = load_overlay(dataset.path)
    with engine.progress.stage(f"tree {params.metric}") as stage:
        trees = make_trees(problem, params, limits, job.seed, job.watch.telling(stage))
    decided = ChosenTrees(params, similarity_of(problem, params), clients, limits)
    section = overlay_layer(problem, trees, decided, job.seed, __version__)
    changed = {"changed": links_changed(section, params.start)} if params.start else {}
    return Planned(
        (section,),
        overlay_figures(section, problem) | changed,
        problem,
        compared=lambda metrics: compare_trees(problem, metrics, job.seed),
        ended=job.watch.ended,
    )


def required_limits(dataset: Dataset, params: OverlayParams, clients: pa.Table) -> LimitsRecord:
    """The limits by names; an error if it can be seen before any work that no tree obeys them."""
    brokers = read_brokers(dataset.path).names
    limits = limits_of(params, places_in(brokers, clients), brokers)
    silent = silent_overlay(dataset.path, brokers)
    if params.start:
        start_of(silent, params.start)
    require_connected(silent)
    if params.metric == "improved":
        require_possible_tree(silent, improve_params(silent, params, limits).limits)
    return limits


def links_changed(layer: OverlaySection, start: PathLike) -> int:
    """Links that are not in the plan that was started from."""
    older = load_plan(Path(start)).read("links", ("a", "b"))
    before = set(zip(older["a"].to_pylist(), older["b"].to_pylist(), strict=True))
    links = layer.tables["links"]
    now = zip(links["a"].to_pylist(), links["b"].to_pylist(), strict=True)
    return sum(1 for pair in now if pair not in before)


def compare_trees(
    problem: OverlayProblem, metrics: Iterable[str], seed: int
) -> list[dict[str, Any]]:
    """What other trees of the same brokers would cost; limits do not apply to them."""
    rows = []
    for metric in metrics:
        params = OverlayParams.given({"metric": metric})
        trees = make_trees(problem, params, LimitsRecord(), seed, never)
        ledger = trees_ledger(problem, trees)
        rows.append({"method": metric} | ledger_figures(ledger, trees, problem))
    return rows


def make_trees(
    problem: OverlayProblem, params: OverlayParams, limits: LimitsRecord, seed: int, stop: Stop
) -> Trees:
    """The trees that the wishes name."""
    if params.metric != "improved":
        return one_tree(thesis_tree(problem, params, seed))
    told = improve_params(problem, params, limits)
    start = start_of(problem, params.start) if params.start else None
    if params.trees == 1:
        return one_tree(improved_tree(problem, told, seed, stop, start).tree)
    return general_overlay(problem, told, params.trees, seed, stop).shape


def thesis_tree(problem: OverlayProblem, params: OverlayParams, seed: int) -> Tree:
    """A tree by similarity, or the random baseline."""
    if params.metric == "random":
        return random_tree(problem, seed)
    if params.metric == "hybrid":
        return hybrid_tree(problem, params.mix, params.scale)
    return SIMILAR[params.metric](problem)


def improve_params(
    problem: OverlayProblem, params: OverlayParams, limits: LimitsRecord
) -> ImproveParams:
    delay = params.prices.delayed
    at = {name: position for position, name in enumerate(problem.brokers.to_pylist())}
    return ImproveParams(
        messages=params.prices.forwarded,
        delay=delay / HOP_MS if problem.timed else delay,
        cost=params.prices.linked,
        limits=TreeLimits(
            degree=limits.degree,
            degrees=tuple((at[name], most) for name, most in limits.degrees.items()),
            diameter=limits.diameter,
            hops=tuple((at[one], at[other], most) for one, other, most in limits.hops),
        ),
        most_changes=params.changes,
        change_price=params.change_price,
    )


def start_of(problem: OverlayProblem, folder: PathLike) -> Tree:
    """The links of an older plan between brokers that are still there."""
    plan = load_plan(Path(folder))
    if plan.section(OverlayRecord).trees > 1:
        what = f"has {plan.section(OverlayRecord).trees} trees"
        raise InputError(Problem(str(folder), what, "Start from a plan with one tree"))
    links = plan.read("links", ("a", "b"))
    ends = [Axis("broker", problem.brokers).positions(links[end]) for end in ("a", "b")]
    kept = (ends[0] >= 0) & (ends[1] >= 0)
    return tree_of(ends[0][kept], ends[1][kept])


def similarity_of(problem: OverlayProblem, params: OverlayParams) -> scipy.sparse.csr_array:
    """The matrix that links are weighed by."""
    if params.weighed_by == "hybrid":
        return hybrid_similarity(problem, params.mix, params.scale)
    matrix: scipy.sparse.csr_array = getattr(problem.similarity, params.weighed_by)
    return matrix


def overlay_figures(layer: OverlaySection, problem: OverlayProblem) -> dict[str, Any]:
    """What was decided and what it costs."""
    record = layer.record
    ledger = trees_ledger(problem, layer.trees)
    over = np.flatnonzero(layer.load > problem.capacity * (1 + 1e-9))
    return {
        "method": record.params.metric,
        "brokers": record.brokers,
        **allocation_figures(layer),
        "clients": len(layer.tables["clients"]),
        "links": record.links,
        "trees": record.trees,
        "weight": record.weight,
        **ledger_figures(ledger, layer.trees, problem),
        "latency": record.latency,
        "overloaded": [problem.brokers[int(broker)].as_py() for broker in over],
    }


def allocation_figures(layer: OverlaySection) -> dict[str, Any]:
    found = layer.record.allocation
    if found is None:
        return {}
    asked = layer.record.allocating
    return {
        "ranking": asked.ranking,
        "lcf": found.lcf,
        "load": asked.load,
        "brokers_bound": found.bound,
        "cost": found.cost,
        "lone": list(found.lone),
    }


def ledger_figures(ledger: OverlayLedger, trees: Trees, problem: OverlayProblem) -> dict[str, Any]:
    """Messages and delays beside their bounds, and the shape of the trees."""
    bound = fewest_messages(problem.routes)
    degree = np.bincount(trees.links.ravel(), minlength=problem.size)
    shapes = [tree_of(*trees.links[member].T) for member in trees.members]
    return {
        "link_messages": ledger.link_messages,
        "bound": bound,
        "over_bound_percent": 100.0 * (ledger.link_messages / bound - 1) if bound else 0.0,
        "messages_per_publication": ledger.messages_per_publication,
        "messages_per_arrival": ledger.messages_per_arrival,
        "delay_mean": ledger.delay_mean,
        "forwarded": float(ledger.forwarded.sum()),
        "degree_max": int(degree.max(initial=0)),
        "diameter": max((shape.diameter for shape in shapes), default=0),
    }


# ---- limits by names


def limits_of(params: OverlayParams, places: Places, brokers: pa.Array) -> LimitsRecord:
    """The limits by names of brokers: a client stands for every broker that it is at."""
    require_known_brokers(params.degrees, brokers)
    names = brokers.to_pylist()
    hops = [
        (names[one], names[other], most)
        for near, far, most in params.within
        for one in places(near)
        for name in far
        for other in places(name)
    ]
    return LimitsRecord(
        degree=params.degree,
        degrees=dict(params.degrees),
        diameter=params.diameter,
        hops=tuple(hops),
    )


def require_known_brokers(names: Iterable[str], brokers: pa.Array) -> None:
    unknown = sorted(set(names) - set(brokers.to_pylist()))
    if unknown:
        what = f"there is no broker {unknown[0]!r} here"
        raise InputError(Problem("degrees", what, "Name a broker of the workload"))


def unknown_place(name: str) -> Problem:
    what = f"there is no broker, publisher or subscriber {name!r}"
    return Problem("within", what, "Name one of the workload")


def places_in(brokers: pa.Array, clients: pa.Table) -> Places:
    """Where a name is: the broker of that name, else the brokers of that client."""

    def places(name: str) -> list[int]:
        at = pc.index(brokers, name).as_py()
        if at >= 0:
            return [at]
        rows = clients.filter(pc.equal(clients["client"], name))["broker"]
        if not len(rows):
            raise InputError(unknown_place(name))
        return sorted({pc.index(brokers, broker).as_py() for broker in rows})

    return places


# ---- the layer of a plan: its tables, its figures, its ledger


@dataclass(frozen=True, eq=False)
class ChosenTrees:
    """How trees and clients were decided, to be recorded.

    ``similarity`` holds the weights of links; of two directions the heavier counts.
    ``client_load`` is that of an allocation.
    """

    params: OverlayParams
    similarity: scipy.sparse.csr_array
    clients: pa.Table
    limits: LimitsRecord
    allocation: AllocationRecord | None = None
    client_load: Floats | None = None


def overlay_layer(
    problem: OverlayProblem, trees: Trees, decided: ChosenTrees, seed: int, version: str
) -> OverlaySection:
    """Count what the trees cost and put everything into tables, by names."""
    ledger = trees_ledger(problem, trees)
    load = ledger.processed / problem.seconds
    weight, rate = weights(decided.similarity, trees), ledger.link.sum(axis=1) / problem.seconds
    record = OverlayRecord(
        params=decided.params,
        clients="given" if decided.allocation is None else "allocated",
        limits=decided.limits,
        allocation=decided.allocation,
        brokers=problem.size,
        links=len(trees.links),
        trees=len(trees.members),
        weight=float(weight.sum()),
        latency="ms" if problem.timed else "hops",
        seconds=problem.seconds,
        bound=fewest_messages(problem.routes),
        ledger=totals(ledger),
    )
    tables = {
        "brokers": brokers_as_table(problem, load, decided.client_load),
        "clients": decided.clients,
        "links": pa.table(link_ends(problem, trees.links) | {"weight": weight, "rate": rate}),
        **(tree_tables(problem, trees) if len(trees.members) > 1 else {}),
    }
    return OverlaySection(record, tables, trees, load, problem.source, seed, version)


def totals(ledger: OverlayLedger) -> dict[str, float]:
    """The ledger as numbers in the plan."""
    return {
        "publications": ledger.publications,
        "deliveries": ledger.deliveries,
        "arrivals": ledger.arrivals,
        "link_messages": ledger.link_messages,
        "processed": float(ledger.processed.sum()),
        "forwarded": float(ledger.forwarded.sum()),
        "delay": ledger.delay,
    }


def fewest_messages(routes: Routes) -> float:
    """Messages on links that no overlay can undercut: one for each end of a route but the first."""
    row = np.repeat(np.arange(len(routes)), np.diff(routes.starts))
    local = np.bincount(row[routes.brokers == routes.source[row]], minlength=len(routes))
    return float((routes.messages * (np.diff(routes.starts) - local)).sum())


def weights(similarity: scipy.sparse.csr_array, trees: Trees) -> Floats:
    """The heavier of both directions."""
    a, b = trees.links[:, 0], trees.links[:, 1]
    return np.maximum(values_at(similarity, a, b), values_at(similarity, b, a))


def brokers_as_table(problem: OverlayProblem, load: Floats, client_load: Floats | None) -> pa.Table:
    limited = np.isfinite(problem.capacity)
    nothing = pa.nulls(problem.size, pa.float64())
    return pa.table(
        {
            "broker": problem.brokers,
            "capacity": pa.array(problem.capacity, mask=~limited),
            "load": load,
            "client_load": nothing if client_load is None else pa.array(client_load),
        }
    )


def link_ends(problem: OverlayProblem, links: np.ndarray) -> dict[str, pa.Array]:
    """Names of the ends of links; positions ascend by name."""
    return {end: problem.brokers.take(pa.array(links[:, i])) for i, end in enumerate("ab")}


def tree_tables(problem: OverlayProblem, trees: Trees) -> dict[str, pa.Table]:
    number = np.repeat(np.arange(len(trees.members)), [len(m) for m in trees.members])
    links = link_ends(problem, trees.links[np.concatenate(trees.members)])
    return {
        "tree_links": pa.table({"tree": number} | links),
        "tree_sources": pa.table({"broker": problem.brokers, "tree": trees.of}),
    }
