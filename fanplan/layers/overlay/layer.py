"""The layer of overlays: which brokers there are, who is where, and which are linked."""

from __future__ import annotations

from operator import attrgetter

from fanplan.layers.layer import Layer
from fanplan.layers.overlay.changes.changes import stage_overlay
from fanplan.layers.overlay.check.check import check_overlay
from fanplan.layers.overlay.drift import overlay_now
from fanplan.layers.overlay.record import OverlayRecord, write_overlay
from fanplan.layers.overlay.report import tell_overlay
from fanplan.layers.overlay.simulated import simulate_overlay
from fanplan.layers.overlay.stages.make import make_overlay_stages
from fanplan.plan.figures import Figure, figures_of_ledger, recorded_figure
from fanplan.plan.findings import Missed
from fanplan.plan.stored import StoredPlan


def mean_delay(plan: StoredPlan) -> float | None:
    ledger = plan.section(OverlayRecord).ledger
    return ledger["delay"] / ledger["arrivals"] if ledger["arrivals"] else None


def greatest_load(plan: StoredPlan) -> float | None:
    loads = plan.read("brokers", ("load",))["load"].to_pylist()
    return max(loads, default=None)


def broker_cost(plan: StoredPlan) -> float | None:
    """Price of running the brokers of an allocation."""
    allocation = plan.section(OverlayRecord).allocation
    return None if allocation is None else allocation.cost


FIGURES = (
    Figure("brokers", recorded_figure(OverlayRecord, "brokers"), "less"),
    Figure("broker cost", broker_cost, "less"),
    Figure("links", recorded_figure(OverlayRecord, "links")),
    Figure("trees", recorded_figure(OverlayRecord, "trees")),
    *figures_of_ledger(OverlayRecord, {"link_messages": "less", "processed": "", "forwarded": ""}),
    Figure("bound", recorded_figure(OverlayRecord, "bound")),
    Figure("mean delay", mean_delay, "less"),
    Figure("greatest load", greatest_load, "less"),
)


ACTIONS = {
    "start": "a broker starts",
    "link": "two brokers are linked, in a tree",
    "unlink": "a link of a tree ends",
    "source": "what enters at a broker takes another tree",
    "attach": "a client comes to a broker",
    "move": "a client goes from a broker to another",
    "detach": "a client leaves a broker",
    "stop": "a broker stops",
}

LAYER = Layer(
    record=OverlayRecord,
    recorded=attrgetter("record"),
    write=lambda section, _, folder: write_overlay(section, folder),
    make_stages=lambda plan, dataset, engine, _: make_overlay_stages(plan, dataset, engine),
    check=lambda plan, data, findings, _: Missed(check_overlay(plan, data, findings)),
    changes=lambda old, new, dataset, limit, _: stage_overlay(old, new, dataset, limit),
    actions=ACTIONS,
    now=lambda plan, dataset, _: overlay_now(plan, dataset),
    unreached="clients without a broker that is linked",
    tell=tell_overlay,
    figures=FIGURES,
    simulate=simulate_overlay,
)
