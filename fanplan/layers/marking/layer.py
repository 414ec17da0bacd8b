"""The layer of markings: which links pass advertisements on, and which subscriptions."""

from __future__ import annotations

from operator import attrgetter

from fanplan.layers.layer import Layer
from fanplan.layers.marking.changes import stage_marking
from fanplan.layers.marking.check import check_marking
from fanplan.layers.marking.churn import churn_marking
from fanplan.layers.marking.drift import marking_now
from fanplan.layers.marking.record import MarkingRecord, write_marking
from fanplan.layers.marking.replayed import replay_marks
from fanplan.layers.marking.report import tell_marking
from fanplan.layers.marking.stages.make import make_marking_stages
from fanplan.plan.figures import Figure, recorded_figure
from fanplan.plan.findings import Missed
from fanplan.plan.stored import StoredPlan

FIGURES = (
    Figure("cost", recorded_figure(MarkingRecord, "cost"), "less", weighed=True),
    *(
        Figure(name, recorded_figure(MarkingRecord, name), "", weighed=True)
        for name in ("pub_everywhere", "sub_everywhere")
    ),
    *(
        Figure(name, recorded_figure(MarkingRecord, name))
        for name in ("published", "subscribed", "p_links", "s_links")
    ),
)


def stated(plan: StoredPlan) -> tuple[str, ...]:
    """The marks that are best without merging are not stored, nor so what they cost."""
    merged = plan.section(MarkingRecord).merged is not None
    return ("params", "merged.plain", "merged.plain_merged") if merged else ("params",)


ACTIONS = {
    "mark": "a directed link gets a mark",
    "unmark": "a directed link is in no tree any more",
}

LAYER = Layer(
    record=MarkingRecord,
    recorded=attrgetter("record"),
    write=lambda section, _, folder: write_marking(section, folder),
    make_stages=lambda plan, dataset, engine, _: make_marking_stages(plan, dataset, engine),
    check=lambda plan, data, findings, _: Missed(check_marking(plan, data, findings)),
    changes=lambda old, new, dataset, limit, _: stage_marking(old, new, dataset, limit),
    actions=ACTIONS,
    now=lambda plan, dataset, _: marking_now(plan, dataset),
    unreached="links where both sides do not meet",
    tell=lambda planned, _: tell_marking(planned),
    figures=FIGURES,
    weights=("raw", "control_by", "prices"),
    replay=lambda plan, dataset, engine: replay_marks(plan, dataset, engine=engine),
    churn=lambda plan, dataset, options, engine, _: churn_marking(plan, dataset, options, engine),
    stated=stated,
)
