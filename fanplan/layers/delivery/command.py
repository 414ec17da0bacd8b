"""Design: every layer that a workload allows, in the order that pays, each on those before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fanplan.core.errors import InfeasibleError, InputError, Problem
from fanplan.core.result import snake
from fanplan.data.dataset import Dataset
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.delivery.build import (
    channels_layer,
    domain_records,
    groups_section,
    marked_overlay,
    planned_trees,
    random_trees,
)
from fanplan.layers.delivery.fixed import (
    fixed_channels,
    fixed_groups,
    fixed_marking,
    fixed_overlay,
    fixed_plans,
)
from fanplan.layers.delivery.needs import DesignNeeds
from fanplan.layers.delivery.params import CHANNELS, GROUPS, MARKING, OVERLAY, DesignParams
from fanplan.layers.delivery.record import (
    ALLOCATED_CELLS,
    ANY,
    ASKED,
    NO_BROKERS,
    OF_CELLS,
    ONE_BROKER,
    SEVERAL_TREES,
    SILENT,
    assumed,
)
from fanplan.layers.delivery.search.params import DeliveryParams
from fanplan.layers.delivery.steps import (
    Steps,
    broker_steps,
    delivery_steps,
    flat_steps,
    marked_steps,
    step_savings,
)
from fanplan.layers.marking.command import mark_tree
from fanplan.layers.overlay.command import plan_allocation
from fanplan.layers.overlay.linking import plan_overlay
from fanplan.layers.overlay.params import OverlayParams
from fanplan.plan.made import Job, Planned

if TYPE_CHECKING:
    import pyarrow as pa

    from fanplan.core.arrays import Ints
    from fanplan.core.stop import Stop
    from fanplan.layers.delivery.problem import DeliveryProblem
    from fanplan.layers.delivery.record import DeliverySection
    from fanplan.layers.delivery.search.joint import JudgedDelivery
    from fanplan.layers.groups.problem.trees import TreeSource
    from fanplan.layers.marking.record import MarkingSection
    from fanplan.layers.overlay.record import OverlaySection
    from fanplan.network.brokers import Routes

    Designed = tuple[tuple[Any, ...], DeliverySection]


def plan_design(job: Job, params: DesignParams) -> Planned:
    """Plan every layer the workload allows, each aware of what the others cost."""
    plans = fixed_plans(job.dataset, dict(params.fixed))
    sections, delivery = Designing(job, params, plans).design()
    record = delivery.record
    figures = record.model_dump() | {
        "layers": [section.layer for section in sections],
        "steps": step_savings(record.steps),
        "total": record.total,
        "parts": {snake(part): cost for part, cost in record.parts.items()},
        "total_parts": {snake(part): cost for part, cost in record.total_parts.items()},
    }
    return Planned(sections, figures, ended=job.watch.early)


TREES = 1 / 3
"""Share of the time that trees of brokers may take, if time is limited."""


def unicast_above(params: DeliveryParams, least: float) -> InfeasibleError:
    """No delivery was found that keeps the limit on unicast."""
    what = (
        f"at most {params.unicast_limit:g} of what is sent may go by unicast though several want "
        f"it, but with {params.channels} channels no delivery was found with less than {least:g}"
    )
    remedy = f"Allow {least:g}, or more channels"
    return InfeasibleError("unicast_limit", least, Problem("unicast_limit", what, remedy))


def has_brokers(dataset: Dataset) -> bool:
    """Whether the workload has a table of brokers, or clients at some."""
    from fanplan.network.dataset import distinct

    if "brokers" in dataset.manifest.stages:
        return True
    return bool(distinct(dataset.path, "subscriptions", "broker") - {None})


@dataclass(frozen=True)
class Designing(DesignNeeds):
    """One request to design, and what it needs."""

    @property
    def params(self) -> DeliveryParams:
        """What the search is told."""
        asked = self.asked
        return DeliveryParams(
            channels=asked.channels,
            entries=asked.most_entries,
            unicast_limit=asked.unicast_limit,
            direct=asked.direct,
            prices=asked.prices,
        )

    @property
    def homes(self) -> bool:
        """Whether only its home broker sends to one subscriber alone: without multicast, or if
        nothing may go past brokers."""
        fixed = self.fixed.get(CHANNELS)
        channels = fixed.section(ChannelsRecord).channels if fixed else self.asked.channels
        return not (channels and self.asked.direct)

    def design(self) -> Designed:
        """All layers, delivery by itself too; without brokers if they are none or left out."""
        if has_brokers(self.dataset) and OVERLAY not in self.asked.without:
            return self.with_brokers()
        return self.flat()

    def flat(self) -> Designed:
        """Channels and unicast alone."""
        from fanplan.layers.delivery.problem import load_flat

        for name in (OVERLAY, GROUPS, MARKING):
            if name in self.fixed:
                what = f"{name} cannot be fixed: the workload has no brokers"
                raise InputError(Problem("fixed", what, "Leave it out"))
        if self.asked.multicast == "site":
            what = "without brokers there are no sites"
            raise InputError(Problem("multicast", what, "Use everywhere"))
        if not self.params.channels and CHANNELS not in self.fixed:
            what = "there are no brokers, and no multicast is allowed"
            remedy = "Give a number of channels, or brokers"
            raise InputError(Problem("channels", what, remedy))
        self.require_channels()
        problem = load_flat(self.dataset.path)
        heard = self.dataset.manifest.traffic.heard or None
        return self.delivered(
            problem, self.params, ("",), lambda: flat_steps(problem, self.params, heard), None
        )

    def with_brokers(self) -> Designed:
        """The overlay first, as all else depends on it; then delivery on it, then marking.

        Before that all that can be checked, and all that Spark makes: no search is for nothing.
        """
        from fanplan.layers.delivery.problem import load_delivery
        from fanplan.network.dataset import read_brokers

        brokers = read_brokers(self.dataset.path).names
        domain, names = self.domains(brokers)
        self.require_network(brokers)
        self.require_channels(domain, brokers)
        self.make_stages()
        tree = self.overlay_layer()

        def on(trees: TreeSource) -> DeliveryProblem:
            clients = tree.tables["clients"]
            return load_delivery(self.dataset.path, brokers, clients, trees, domain, self.homes)

        problem = on(planned_trees(tree, brokers))
        params = self.params
        if GROUPS in self.fixed:
            params = replace(params, fixed_groups=fixed_groups(self.fixed[GROUPS], problem))
        if MARKING in self.fixed:
            fixed_marking(self.fixed[MARKING], tree)

        def steps() -> Steps:
            naive = on(random_trees(tree, brokers, self.dataset.path, self.job.seed))
            return broker_steps(naive, problem, params, self.asked_routes(tree))

        return self.delivered(problem, params, names, steps, tree)

    def asked_routes(self, tree: OverlaySection) -> Routes | None:
        """Where selectors lead messages, if cells are coarser than they and clients have homes."""
        from fanplan.network.dataset import read_routes

        if self.dataset.manifest.exact or tree.record.clients == "allocated":
            return None
        return read_routes(self.dataset.path, "routes").somewhere()

    def overlay_layer(self) -> OverlaySection:
        """The brokers and trees of a plan; or planned ones, with clients allocated if need be."""
        if OVERLAY in self.fixed:
            return fixed_overlay(self.fixed[OVERLAY])
        with self.job.watch.part(TREES) as watch:
            job = replace(self.job, watch=watch)
            if self.allocates:
                made = plan_allocation(job, self.allocating)
            else:
                made = plan_overlay(job, OverlayParams())
        section: OverlaySection = made.section
        return section

    def domains(self, brokers: pa.Array) -> tuple[Ints, tuple[str, ...]]:
        """Those that brokers have, unless there is one for all; a broker may have none."""
        from fanplan.layers.delivery.problem import EVERYWHERE
        from fanplan.network.dataset import multicast_domains

        if self.asked.multicast == "everywhere":
            return np.repeat(EVERYWHERE, len(brokers)), ("",)
        domain, names = multicast_domains(self.dataset.path, brokers)
        if not len(names) and (self.asked.multicast == "site" or self.params.channels):
            what = "no broker has a site or a multicast_domain, so that no channel reaches anybody"
            remedy = "Give sites in the table brokers, or use everywhere"
            raise InputError(Problem("multicast", what, remedy))
        return domain, tuple(names.to_pylist())

    def assumed(self, tree: OverlaySection | None) -> str:
        """What the reach of multicast is taken from."""
        from fanplan.network.dataset import domain_columns, read_brokers

        if tree is None:
            return NO_BROKERS
        if self.asked.multicast == "everywhere":
            return ASKED
        columns = domain_columns(self.dataset.path)
        return assumed(columns, len(read_brokers(self.dataset.path).names))

    def delivered(
        self,
        problem: DeliveryProblem,
        params: DeliveryParams,
        domains: tuple[str, ...],
        before: Callable[[], Steps],
        tree: OverlaySection | None,
    ) -> Designed:
        """Delivery on the trees, and all sections of the plan; ``before`` has the steps to it."""
        from fanplan.core.version import __version__
        from fanplan.layers.delivery.build import Settled, delivery_layer
        from fanplan.layers.delivery.ledger import lowest_cost

        with self.job.engine.progress.stage("delivery") as stage:
            best, first, params = self.delivery(problem, params, self.job.watch.telling(stage))
            stage.rows(problem.interest.size)
        marks, notes = self.marking(tree)
        if not self.dataset.manifest.exact and tree and tree.record.clients == "allocated":
            notes = (*notes, ALLOCATED_CELLS)
        steps = [*before(), *delivery_steps(problem, params, first, best)]
        settled = Settled(
            params=self.asked,
            channels=params.channels,
            domains=domains,
            multicast=domain_records(problem, domains),
            assumed=self.assumed(tree),
            layered=first.cost,
            bound=lowest_cost(problem, params.prices),
            bound_name=ANY if self.dataset.manifest.exact else OF_CELLS,
            steps=tuple(self.with_marks(steps, marks)),
            warnings=notes,
        )
        key, version = self.dataset.manifest.key, __version__
        section = delivery_layer(best.delivery, best.ledger, settled, key, self.job.seed, version)
        layers: list[Any] = [
            tree,
            channels_layer(problem, best, params, self.job.seed),
            groups_section(best, params, self.dataset.path, key) if tree else None,
            marks,
            section,
        ]
        return tuple(layer for layer in layers if layer is not None), section

    def delivery(
        self, problem: DeliveryProblem, params: DeliveryParams, stop: Stop
    ) -> tuple[JudgedDelivery, JudgedDelivery, DeliveryParams]:
        """The best delivery, that of the layers one after the other, and what they were limited to.

        Fixed channels are as many as there may be.
        """
        from fanplan.layers.delivery.search.joint import delivery_on_channels, joint_delivery, keeps

        if CHANNELS not in self.fixed:
            best, first = joint_delivery(problem, params, self.job.seed, stop)
            if not keeps(best, params):
                raise unicast_above(params, best.ledger.counted_fraction)
            return best, first, params
        plan = self.fixed[CHANNELS]
        map, domain = fixed_channels(plan, self.dataset.path, problem)
        params = replace(params, channels=int(np.bincount(domain, minlength=1).max()))
        best, first = delivery_on_channels(problem, params, map, domain, stop)
        if not keeps(best, params):
            what = f"the channels of {plan.folder} leave {best.ledger.counted_fraction:.3g} of it"
            raise InputError(Problem("unicast_limit", what, "Raise it, or plan channels again"))
        return best, first, params

    def marking(self, tree: OverlaySection | None) -> tuple[MarkingSection | None, tuple[str, ...]]:
        """Marks on the overlay, unless they are not wished for or cannot be; and why."""
        if tree is None or MARKING in self.asked.without:
            return None, ()
        if MARKING in self.fixed:
            return fixed_marking(self.fixed[MARKING], tree), ()
        if tree.record.trees > 1:
            return None, (SEVERAL_TREES,)
        if not len(tree.trees.links):
            return None, (ONE_BROKER,)
        if "advertisements" not in self.dataset.manifest.stages:
            return None, (SILENT,)
        return mark_tree(self.dataset, marked_overlay(tree), self.job.engine), ()

    def with_marks(self, steps: Steps, marks: MarkingSection | None) -> Steps:
        """Subscriptions are sent everywhere until links are marked."""
        if marks is None:
            return steps
        price, record = self.params.prices.control, marks.record
        return marked_steps(steps, price * record.sub_everywhere, price * record.cost)


PLANS = {"design": plan_design}
