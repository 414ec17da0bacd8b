"""The layer of delivery: it binds channels, overlay and groups together, at one cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path

from fanplan.data.dataset import Dataset, PathLike
from fanplan.data.engine import Engine
from fanplan.data.ingest.derived import derived
from fanplan.layers.delivery.bound import BINDS, bind
from fanplan.layers.delivery.changes.changes import stage_delivery
from fanplan.layers.delivery.check.check import check_delivery
from fanplan.layers.delivery.drift import delivery_now
from fanplan.layers.delivery.record import DeliveryRecord, write_delivery
from fanplan.layers.delivery.replayed import ReplayedDelivery
from fanplan.layers.delivery.report.curve import designed_curve, wants_curve
from fanplan.layers.delivery.report.section import tell_delivery
from fanplan.layers.delivery.simulated import require_brokers, simulate_delivery
from fanplan.layers.delivery.steps import SUBSCRIPTIONS
from fanplan.layers.layer import Bound, Curves, Layer
from fanplan.layers.overlay.record import OverlayRecord
from fanplan.plan.figures import Figure, recorded_figure
from fanplan.plan.findings import Findings, Missed
from fanplan.plan.stored import StoredPlan

PARTS = ("multicast", "last hop", "direct unicast", "forwarding", "matching", "state", "control")
"""What the cost of a delivery is made of."""


def naive(plan: StoredPlan) -> float | None:
    """What the naive system costs: the first step on the way to the plan."""
    steps = plan.section(DeliveryRecord).steps
    return steps[0].cost if steps else None


def saved_percent(plan: StoredPlan) -> float | None:
    """What the plan saves of the naive system."""
    first = naive(plan)
    return 100.0 * (1.0 - plan.section(DeliveryRecord).total / first) if first else None


def counted(plan: StoredPlan) -> str:
    """What the total counts: subscriptions that travel are in it only if links are marked."""
    marked = SUBSCRIPTIONS in plan.section(DeliveryRecord).total_parts
    return "with the subscriptions that travel" if marked else "delivery alone"


def stated_cost(part: str, plan: StoredPlan) -> float | None:
    return plan.section(DeliveryRecord).total_parts.get(part)


def delivery_figures() -> Iterator[Figure]:
    """The cost of all layers together first, then what it is made of."""
    total = recorded_figure(DeliveryRecord, "total")
    yield Figure("total cost", total, "less", weighed=True, scope=counted)
    yield Figure("saved percent", saved_percent, "more", weighed=True, scope=counted)
    yield Figure("cost of delivery", recorded_figure(DeliveryRecord, "cost"), "less", weighed=True)
    yield Figure("naive system", naive, "", weighed=True)
    layered = recorded_figure(DeliveryRecord, "layered")
    yield Figure("delivery, layer by layer", layered, "", weighed=True)
    yield Figure("bound", recorded_figure(DeliveryRecord, "bound"), "", weighed=True)
    for part in (*PARTS, SUBSCRIPTIONS):
        yield Figure(f"cost of {part}", partial(stated_cost, part), "", weighed=True)
    yield Figure("unicast_fraction", recorded_figure(DeliveryRecord, "unicast_fraction"))
    yield Figure("classes", recorded_figure(DeliveryRecord, "classes"))
    yield Figure("classes sent directly", recorded_figure(DeliveryRecord, "direct"))


def check_bond(plan: StoredPlan, dataset: Path, findings: Findings, _: Bound) -> Missed:
    """Add what is wrong; whom the bound layers miss, their own checks count."""
    check_delivery(plan, dataset, findings)
    return Missed()


def stated(plan: StoredPlan) -> tuple[str, ...]:
    """Random trees, and layers planned one after the other, are not stored, nor so their costs."""
    return ("params", "layered", *(("steps on a random tree",) if plan.has(OverlayRecord) else ()))


ACTIONS = {
    "direct": "a flow goes to its unicasts past the brokers",
    "end_direct": "a flow goes through brokers again",
}


def replay_design(plan: PathLike, dataset: Dataset, engine: Engine) -> ReplayedDelivery:
    """What all layers of a plan do together with the publications of a dataset, and its marks."""
    from fanplan.layers.delivery.stages.replay import replay_delivery
    from fanplan.layers.marking.record import MarkingRecord
    from fanplan.layers.marking.replayed import replay_marks
    from fanplan.layers.registry import load_plan

    # Spark's own processes may have another working directory than this one.
    stored = load_plan(Path(plan).absolute())
    found = replay_delivery(derived(dataset, engine), stored)
    if not stored.has(MarkingRecord):
        return found
    return replace(found, marks=replay_marks(plan, dataset, engine=engine))


LAYER = Layer(
    record=DeliveryRecord,
    recorded=attrgetter("record"),
    write=lambda section, _, folder: write_delivery(section, folder),
    make_stages=lambda *_: None,
    check=check_bond,
    changes=lambda old, new, dataset, limit, _: stage_delivery(old, new, dataset, limit),
    actions=ACTIONS,
    now=lambda plan, dataset, _: delivery_now(plan, dataset),
    unreached="pairs of a flow and a subscriber who is at another site now",
    tell=lambda planned, _: tell_delivery(planned),
    figures=tuple(delivery_figures()),
    weights=("prices",),
    curves=Curves(lambda _: [], wants_curve, designed_curve),
    replay=replay_design,
    simulate=simulate_delivery,
    require_simulated=require_brokers,
    bind=bind,
    binds=BINDS,
    stated=stated,
)
