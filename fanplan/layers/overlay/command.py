"""Overlay plans: link brokers, or allocate clients to brokers and link those."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fanplan.core.errors import InputError, Problem
from fanplan.core.stop import Watch
from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers.overlay.build import fewest_messages, trees_ledger
from fanplan.layers.overlay.params import (
    HOP_MS,
    METRICS,
    TreeWishes,
    limits_of,
    places_in,
    tree_wishes,
)
from fanplan.layers.overlay.record import OverlaySection
from fanplan.layers.overlay.stages.make import make_broker_stages
from fanplan.network.brokers import OverlayProblem
from fanplan.network.carried import OverlayLedger
from fanplan.network.trees import Trees, tree_of

if TYPE_CHECKING:
    import scipy.sparse

    from fanplan.core.stop import Stop
    from fanplan.layers.overlay.record import LimitsRecord, OverlaySection
    from fanplan.layers.overlay.search.judge import ImproveParams
    from fanplan.network.brokers import OverlayProblem
    from fanplan.network.trees import Tree, Trees


@dataclass(frozen=True)
class OverlayPlan:
    """An overlay together with the dataset it is for, and the problem of its brokers.

    ``ended`` says what ended the search early; ``changed`` counts links that are not in the plan
    it started from, ``moved`` clients that are at another broker than there.
    """

    layer: OverlaySection
    dataset: Dataset
    problem: OverlayProblem
    ended: str | None = None
    changed: int | None = None
    moved: int | None = None

    def summary(self) -> dict[str, Any]:
        """The figures of the plan, as JSON."""

        told = {"ended_early_by": self.ended, "changed": self.changed, "moved": self.moved}
        given = {name: value for name, value in told.items() if value is not None}
        return figures(self.layer, self.problem) | given

    def save(self, out: PathLike, replace: bool = False) -> Path:
        """Write the plan folder: checked, and whole or not at all."""
        from fanplan.verbs.save import save_plan

        return save_plan(self.layer, self.dataset.path, Path(out), replace).folder


def overlay(
    dataset: Dataset,
    *,
    seed: int = 0,
    time: float | None = None,
    stop: Stop | None = None,
    engine: Engine = EMBEDDED,
    **options: Any,
) -> OverlayPlan:
    """Link the brokers of a workload; its clients stay where they are.

    ``options`` are the fields of `TreeWishes`: ``metric``, ``alpha``, ``degree``, ``diameter``,
    ``within``, ``trees``, ``start`` and more. ``time`` is a limit in seconds, after which the best
    tree so far is returned, as it is when ``stop`` says so.
    """
    from fanplan.core.version import __version__
    from fanplan.layers.overlay.build import ChosenTrees, overlay_layer
    from fanplan.network.dataset import given_clients

    wishes, watch = tree_wishes(options), Watch(time, stop)
    problem = load_problem(dataset, wishes, engine)
    clients = given_clients(dataset.path)
    limits = limits_of(wishes, places_in(problem.brokers, clients), problem.brokers)
    with engine.progress.stage(f"tree {wishes.metric}") as stage:
        trees = make_trees(problem, wishes, limits, seed, watch.telling(stage))
    decided = ChosenTrees(
        method=wishes.metric,
        params=wishes.recorded(),
        metric=wishes.weighed_by,
        similarity=similarity_of(problem, wishes),
        clients=clients,
        limits=limits,
    )
    layer = overlay_layer(problem, trees, decided, seed, __version__)
    changed = None if wishes.start is None else links_changed(layer, wishes.start)
    return OverlayPlan(layer, dataset, problem, watch.ended, changed)


def load_problem(dataset: Dataset, wishes: TreeWishes, engine: Engine) -> OverlayProblem:
    """The overlay problem, after Spark has made the stages that it needs."""
    from fanplan.network.dataset import load_overlay

    make_broker_stages(dataset, wishes.recorded(), wishes.metric == "cover", engine)
    return load_overlay(dataset.path)


def links_changed(layer: OverlaySection, start: PathLike) -> int:
    """Links that are not in the plan that was started from."""
    from fanplan.layers.registry import load_plan

    older = load_plan(Path(start)).read("links", ("a", "b"))
    before = set(zip(older["a"].to_pylist(), older["b"].to_pylist(), strict=True))
    links = layer.tables["links"]
    now = zip(links["a"].to_pylist(), links["b"].to_pylist(), strict=True)
    return sum(1 for pair in now if pair not in before)


def compare_trees(
    plan: OverlayPlan, metrics: Iterable[str], *, seed: int = 0
) -> list[dict[str, Any]]:
    """What other trees of the same brokers would cost; limits do not apply to them."""
    from fanplan.core.stop import never
    from fanplan.layers.overlay.build import trees_ledger
    from fanplan.layers.overlay.record import LimitsRecord

    rows = []
    for metric in metrics:
        trees = make_trees(plan.problem, TreeWishes(metric), LimitsRecord(), seed, never)
        ledger = trees_ledger(plan.problem, trees)
        rows.append({"method": metric} | ledger_figures(ledger, trees, plan.problem))
    return rows


def require_metrics(names: Iterable[str]) -> None:
    """Every name must be that of a tree."""
    for name in names:
        if name not in METRICS:
            remedy = f"Use some of: {', '.join(METRICS)}"
            raise InputError(Problem("compare", f"{name!r} is unknown", remedy))


def make_trees(
    problem: OverlayProblem, wishes: TreeWishes, limits: LimitsRecord, seed: int, stop: Stop
) -> Trees:
    """The trees that the wishes name."""
    from fanplan.layers.overlay.search.improve import improved_tree
    from fanplan.network.trees import trees_of

    if wishes.metric != "improved":
        return one_tree(thesis_tree(problem, wishes, seed))
    params = improve_params(problem, wishes, limits)
    start = None if wishes.start is None else start_of(problem, wishes.start)
    if wishes.trees == 1:
        return one_tree(improved_tree(problem, params, seed, stop, start).tree)
    if start is not None:
        what = "several trees are always planned afresh"
        raise InputError(Problem("start", what, "Leave out one of start and trees"))
    from fanplan.layers.overlay.search.several import general_overlay

    found = general_overlay(problem, params, wishes.trees, seed, stop)
    return trees_of(tuple(tree.edges for tree in found.trees), found.tree_of)


def one_tree(tree: Tree) -> Trees:
    from fanplan.network.trees import trees_of

    return trees_of((tree.edges,), np.zeros(tree.size, np.int32))


def thesis_tree(problem: OverlayProblem, wishes: TreeWishes, seed: int) -> Tree:
    """A tree by similarity, or the random baseline."""
    from fanplan.layers.overlay.published.similar import SIMILAR, hybrid_tree, random_tree

    if wishes.metric == "random":
        return random_tree(problem, seed)
    if wishes.metric == "hybrid":
        return hybrid_tree(problem, wishes.mix)
    return SIMILAR[wishes.metric](problem)


def improve_params(
    problem: OverlayProblem, wishes: TreeWishes, limits: LimitsRecord
) -> ImproveParams:
    from fanplan.layers.overlay.search.judge import ImproveParams, TreeLimits

    at = {name: position for position, name in enumerate(problem.brokers.to_pylist())}
    return ImproveParams(
        messages=wishes.messages,
        delay=wishes.delay if problem.links is None else wishes.delay / HOP_MS,
        cost=wishes.cost,
        limits=TreeLimits(
            degree=limits.degree,
            degrees=tuple((at[name], most) for name, most in limits.degrees.items()),
            diameter=limits.diameter,
            hops=tuple((at[one], at[other], most) for one, other, most in limits.hops),
        ),
        most_changes=wishes.changes,
        change_price=wishes.change_price,
    )


def start_of(problem: OverlayProblem, folder: PathLike) -> Tree:
    """The links of an older plan between brokers that are still there."""
    from fanplan.layers.overlay.record import OverlayRecord
    from fanplan.layers.registry import load_plan
    from fanplan.network.trees import tree_of
    from fanplan.plan.axis import Axis

    plan = load_plan(Path(folder))
    if plan.section(OverlayRecord).trees > 1:
        what = f"has {plan.section(OverlayRecord).trees} trees"
        raise InputError(Problem(str(folder), what, "Start from a plan with one tree"))
    links = plan.read("links", ("a", "b"))
    ends = [Axis("broker", problem.brokers).positions(links[end]) for end in ("a", "b")]
    kept = (ends[0] >= 0) & (ends[1] >= 0)
    return tree_of(ends[0][kept], ends[1][kept])


def similarity_of(problem: OverlayProblem, wishes: TreeWishes) -> scipy.sparse.csr_array:
    """The matrix that links are weighed by."""
    from fanplan.layers.overlay.published.similar import hybrid_similarity

    similarity = problem.similarity
    if wishes.weighed_by == "hybrid":
        return hybrid_similarity(problem, wishes.mix)
    matrix: scipy.sparse.csr_array = getattr(similarity, wishes.weighed_by)
    return matrix


def figures(layer: OverlaySection, problem: OverlayProblem) -> dict[str, Any]:
    """What was decided and what it costs."""
    record = layer.record
    ledger = trees_ledger(problem, layer.trees)
    over = np.flatnonzero(layer.load > problem.capacity * (1 + 1e-9))
    return {
        "method": record.method,
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
    return {
        "ranking": found.method,
        "lcf": found.lcf,
        "load": found.load,
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
