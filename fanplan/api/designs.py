"""Design: every layer that a workload allows, planned together, in one plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fanplan.api.allocations import allocate
from fanplan.api.datasets import Dataset, PathLike
from fanplan.api.design_layers import (
    channels_layer,
    groups_of,
    planned_trees,
    random_trees,
    stored_overlay_layer,
    tree_table,
)
from fanplan.api.design_steps import Steps, broker_steps, flat_steps, savings, with_descriptors
from fanplan.api.engine import EMBEDDED, Engine
from fanplan.api.marking_plans import mark_tree
from fanplan.api.overlay_plans import overlay
from fanplan.api.overlay_stages import make_senders
from fanplan.api.running import Watch
from fanplan.errors import InputError, Problem

if TYPE_CHECKING:
    import pyarrow as pa

    from fanplan.plan.delivery.types import DeliveryLayer
    from fanplan.plan.marking.types import MarkingLayer
    from fanplan.plan.overlay.types import OverlayLayer
    from fanplan.plan.store import Layer
    from fanplan.planners.delivery.params import DeliveryParams
    from fanplan.planners.stop import Stop
    from fanplan.problem.delivery import DeliveryProblem
    from fanplan.problem.group_trees_dataset import TreeSource
    from fanplan.problem.interest import Ints

OPTIONAL = ("groups", "direct", "marking")
"""What can be left out; channels are left out by giving none."""


@dataclass(frozen=True)
class Design:
    """All layers of a plan together with the dataset they are for."""

    layers: tuple[Layer, ...]
    delivery: DeliveryLayer
    dataset: Dataset
    ended: str | None = None

    def summary(self) -> dict[str, Any]:
        """The figures of the plan, as JSON."""
        record = self.delivery.record
        told = record.model_dump() | {"layers": [layer.layer for layer in self.layers]}
        steps = [(step.name, step.cost) for step in record.steps]
        early = {"ended_early_by": self.ended} if self.ended else {}
        return told | {"steps": savings(steps), **early}

    def save(self, out: PathLike, replace: bool = False) -> Path:
        """Write the plan folder: checked, and whole or not at all."""
        from fanplan.plan.store import save_layers

        return save_layers(self.layers, self.dataset.path, Path(out), replace).folder


def design(
    dataset: Dataset,
    *,
    channels: int = 0,
    entries: int | None = None,
    unicast_limit: float | None = None,
    multicast: str | None = None,
    without: Iterable[str] = (),
    overlay_plan: PathLike | None = None,
    prices: Mapping[str, float] | None = None,
    seed: int = 0,
    time: float | None = None,
    stop: Stop | None = None,
    engine: Engine = EMBEDDED,
) -> Design:
    """Plan every layer that the workload allows, each knowing what the others cost.

    ``channels`` is how many multicast groups there are: on each site if brokers have sites and
    ``multicast`` is not ``everywhere``. ``entries`` limits forwarding entries of groups,
    ``unicast_limit`` the share of messages that are sent to one subscriber alone. ``without`` names
    layers to leave out: groups, direct, marking. ``overlay_plan`` fixes brokers and trees to those
    of a plan. ``prices`` are those of `LedgerPrices`.
    """
    params = params_of(channels, entries, unicast_limit, tuple(without), prices or {})
    run = Designing(dataset, params, multicast, tuple(without), seed, Watch(time, stop), engine)
    return run.with_brokers(overlay_plan) if has_brokers(dataset) else run.flat(overlay_plan)


def params_of(
    channels: int,
    entries: int | None,
    unicast_limit: float | None,
    without: tuple[str, ...],
    prices: Mapping[str, float],
) -> DeliveryParams:
    """Limits and prices, or what is wrong with them."""
    from fanplan.evaluation.prices import LedgerPrices
    from fanplan.planners.delivery.params import DeliveryParams

    for name in without:
        if name not in OPTIONAL:
            remedy = f"Use some of: {', '.join(OPTIONAL)}"
            raise InputError(Problem("without", f"{name!r} cannot be left out", remedy))
    known = [field.name for field in fields(LedgerPrices)]
    for name in prices:
        if name not in known:
            remedy = f"Use some of: {', '.join(known)}"
            raise InputError(Problem("prices", f"{name!r} has none", remedy))
    return DeliveryParams(
        channels=channels,
        entries=0 if "groups" in without else entries,
        unicast_limit=unicast_limit,
        direct="direct" not in without,
        prices=LedgerPrices(**prices),
    )


def has_brokers(dataset: Dataset) -> bool:
    """Whether the workload has a table of brokers, or clients at some."""
    from fanplan.problem.overlay_dataset import distinct

    if "brokers" in dataset.manifest.stages:
        return True
    return bool(distinct(dataset.path, "subscriptions", "broker") - {None})


@dataclass(frozen=True)
class Designing:
    """One request to design."""

    dataset: Dataset
    params: DeliveryParams
    multicast: str | None
    without: tuple[str, ...]
    seed: int
    watch: Watch
    engine: Engine

    def flat(self, overlay_plan: PathLike | None) -> Design:
        """Channels and unicast alone."""
        from fanplan.problem.delivery_dataset import load_flat

        if overlay_plan is not None:
            what = "the workload has no brokers"
            raise InputError(Problem("overlay_plan", what, "Leave it out"))
        if not self.params.channels:
            what = "there are no brokers, and no multicast is allowed"
            remedy = "Say how many channels there are, or give brokers"
            raise InputError(Problem("channels", what, remedy))
        problem = load_flat(self.dataset.path)
        steps = flat_steps(problem, self.params)
        return self.delivered(problem, ("",), steps, None)

    def with_brokers(self, overlay_plan: PathLike | None) -> Design:
        """The overlay first, as all else depends on it; then delivery on it, then marking."""
        from fanplan.problem.delivery_dataset import load_delivery
        from fanplan.problem.overlay_dataset import read_brokers

        tree = self.overlay_layer(overlay_plan)
        make_senders(self.dataset, self.engine)
        brokers = read_brokers(self.dataset.path).names
        domain, names = self.domains(brokers)

        def on(trees: TreeSource) -> DeliveryProblem:
            clients = tree.tables["clients"]
            return load_delivery(self.dataset.path, brokers, clients, trees, domain)

        problem = on(planned_trees(tree, brokers))
        naive = on(random_trees(tree, brokers, self.dataset.path, self.seed))
        steps = broker_steps(naive, problem, self.params, self.seed, self.watch)
        return self.delivered(problem, names, steps, tree)

    def overlay_layer(self, plan: PathLike | None) -> OverlayLayer:
        """The brokers and trees of a plan; or planned ones, with clients allocated if need be."""
        from fanplan.problem.overlay_dataset import distinct

        if plan is not None:
            return stored_overlay_layer(self.dataset, plan)
        homes = distinct(self.dataset.path, "subscriptions", "broker")
        make = allocate if homes == {None} else overlay
        return make(self.dataset, seed=self.seed, engine=self.engine).layer

    def domains(self, brokers: pa.Array) -> tuple[Ints, tuple[str, ...]]:
        """Sites are multicast domains where they are known, else there is one for all."""
        from fanplan.problem.delivery_dataset import EVERYWHERE, sites_of

        if self.multicast not in (None, "site", "everywhere"):
            what = f"{self.multicast!r} is unknown"
            raise InputError(Problem("multicast", what, "Use site or everywhere"))
        site, names = sites_of(self.dataset.path, brokers)
        if self.multicast == "site" and not len(names):
            what = "no broker has a site"
            raise InputError(Problem("multicast", what, "Give sites, or use everywhere"))
        if self.multicast == "everywhere" or not len(names):
            return np.repeat(EVERYWHERE, len(brokers)), ("",)
        return site, tuple(names.to_pylist())

    def delivered(
        self,
        problem: DeliveryProblem,
        domains: tuple[str, ...],
        steps: Steps,
        tree: OverlayLayer | None,
    ) -> Design:
        """Delivery on the trees, and all sections of the plan."""
        from fanplan import __version__
        from fanplan.plan.delivery.build import Settled, delivery_layer
        from fanplan.plan.delivery.ledger import lowest_cost
        from fanplan.planners.delivery.joint import joint_delivery

        with self.engine.progress.stage("delivery") as stage:
            best, first = joint_delivery(problem, self.params, self.seed, self.watch.telling(stage))
            stage.rows(problem.interest.size)
        marks, notes = self.marking(tree)
        steps = [*steps, ("layer by layer", first.cost), ("all together", best.cost)]
        settled = Settled(
            limits=self.params,
            prices=self.params.prices,
            domains=domains,
            layered=first.cost,
            bound=lowest_cost(problem, self.params.prices),
            steps=tuple(self.with_marks(steps, marks)),
            warnings=notes,
        )
        key, version = self.dataset.manifest.key, __version__
        section = delivery_layer(best.delivery, best.ledger, settled, key, self.seed, version)
        layers: list[Layer | None] = [
            tree,
            channels_layer(problem, best, self.params, self.seed),
            groups_of(best, self.params, self.dataset.path, key) if tree else None,
            marks,
            section,
        ]
        present = tuple(layer for layer in layers if layer is not None)
        return Design(present, section, self.dataset, self.watch.ended)

    def marking(self, tree: OverlayLayer | None) -> tuple[MarkingLayer | None, tuple[str, ...]]:
        """Marks on the overlay, unless they are not wished for or cannot be; and why."""
        if tree is None or "marking" in self.without:
            return None, ()
        if tree.record.clients == "allocated":
            return None, ("no marking: descriptors are counted where the workload has clients",)
        if tree.record.trees > 1:
            return None, ("no marking: the overlay has several trees",)
        if "advertisements" not in self.dataset.manifest.stages:
            return None, ("no marking: nobody advertises",)
        return mark_tree(self.dataset, tree_table(tree), self.engine), ()

    def with_marks(self, steps: Steps, marks: MarkingLayer | None) -> Steps:
        """Subscriptions are sent everywhere until links are marked."""
        if marks is None:
            return steps
        price, record = self.params.prices.control, marks.record
        before = with_descriptors(steps, price * record.sub_everywhere)
        return [*before, ("marking", steps[-1][1] + price * record.cost)]
