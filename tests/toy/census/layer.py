"""The layer of the census: how many want each topic."""

from __future__ import annotations

from operator import attrgetter

from fanplan.layers.layer import Layer
from fanplan.plan.figures import Figure, recorded_figure

from .changes import ACTIONS, stage_census
from .check import check_census
from .drift import census_now
from .record import CensusRecord, write_census
from .report import tell_census

LAYER = Layer(
    record=CensusRecord,
    recorded=attrgetter("record"),
    write=lambda section, _, folder: write_census(section, folder),
    make_stages=lambda *_: None,  # Every dataset has its subscriptions.
    check=lambda plan, dataset, findings, _: check_census(plan, dataset, findings),
    changes=lambda old, new, _, limit, bounds: stage_census(old, new, limit),
    actions=ACTIONS,
    now=lambda plan, dataset, _: census_now(plan, dataset),
    unreached="topics that are not listed",
    tell=lambda planned, _: tell_census(planned),
    figures=(Figure("topics", recorded_figure(CensusRecord, "topics")),),
)
