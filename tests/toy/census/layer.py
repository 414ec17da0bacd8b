"""The layer of the census: how many want each topic."""

from __future__ import annotations

from operator import attrgetter

from fanplan.layers.census.changes import ACTIONS, stage_census
from fanplan.layers.census.check import check_census
from fanplan.layers.census.drift import census_now
from fanplan.layers.census.record import CensusRecord, write_census
from fanplan.layers.census.report import tell_census

from fanplan.layers.layer import Layer
from fanplan.plan.figures import Figure, recorded_figure

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
