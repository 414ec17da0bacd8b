"""Overlay plans: link brokers, or allocate clients to brokers and link those."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanplan.core.errors import InputError, Problem
from fanplan.data.engine import EMBEDDED, Engine
from fanplan.layers.channels.running import Watch
from fanplan.layers.overlay.params import (
    METRICS,
    TreeWishes,
    limits_of,
    make_trees,
    places_in,
    similarity_of,
    tree_wishes,
)
from fanplan.verbs.datasets import Dataset, PathLike
from fanplan.verbs.stages import make_broker_stages

if TYPE_CHECKING:
    from fanplan.core.stop import Stop
    from fanplan.layers.overlay.types import OverlayLayer
    from fanplan.network.brokers import OverlayProblem


@dataclass(frozen=True)
class OverlayPlan:
    """An overlay together with the dataset it is for, and the problem of its brokers.

    ``ended`` says what ended the search early; ``changed`` counts links that are not in the plan
    it started from, ``moved`` clients that are at another broker than there.
    """

    layer: OverlayLayer
    dataset: Dataset
    problem: OverlayProblem
    ended: str | None = None
    changed: int | None = None
    moved: int | None = None

    def summary(self) -> dict[str, Any]:
        """The figures of the plan, as JSON."""
        from fanplan.layers.overlay.overlay_figures import figures

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
    from fanplan import __version__
    from fanplan.layers.overlay.build import Decided, overlay_layer
    from fanplan.network.dataset import given_clients

    wishes, watch = tree_wishes(options), Watch(time, stop)
    problem = load_problem(dataset, wishes, engine)
    clients = given_clients(dataset.path)
    limits = limits_of(wishes, places_in(problem.brokers, clients), problem.brokers)
    with engine.progress.stage(f"tree {wishes.metric}") as stage:
        trees = make_trees(problem, wishes, limits, seed, watch.telling(stage))
    decided = Decided(
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


def links_changed(layer: OverlayLayer, start: PathLike) -> int:
    """Links that are not in the plan that was started from."""
    from fanplan.plan.stored import load_plan

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
    from fanplan.layers.overlay.overlay_figures import ledger_figures
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
