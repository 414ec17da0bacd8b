"""The layer of groups: which messages are matched only once, where they enter."""

from __future__ import annotations

from operator import attrgetter

from fanplan.layers.groups.changes import stage_groups
from fanplan.layers.groups.check.check import check_groups
from fanplan.layers.groups.churn import churn_groups
from fanplan.layers.groups.drift import groups_now
from fanplan.layers.groups.record import GroupsRecord, write_groups
from fanplan.layers.groups.replayed import replay_groups
from fanplan.layers.groups.report import tell_groups
from fanplan.layers.groups.simulated import simulate_groups
from fanplan.layers.groups.stages.make import make_plan_stages
from fanplan.layers.layer import Layer
from fanplan.plan.figures import Figure, recorded_figure, table_rows

FIGURES = (
    Figure("selected", recorded_figure(GroupsRecord, "selected")),
    Figure("covered", recorded_figure(GroupsRecord, "covered"), "more"),
    Figure("value", recorded_figure(GroupsRecord, "value"), "more", weighed=True),
    Figure("links", table_rows("group_links")),
    Figure("shortcuts", table_rows("shortcuts")),
)

ACTIONS = {
    "entry": "a broker will forward the messages of a group",
    "use_group": "messages of a group are matched once, where they enter",
    "end_group": "they go by default routing again",
    "end_entry": "a broker forgets a group",
}

LAYER = Layer(
    record=GroupsRecord,
    recorded=attrgetter("record"),
    write=lambda section, _, folder: write_groups(section, folder),
    make_stages=make_plan_stages,
    check=check_groups,
    changes=lambda old, new, dataset, limit, _: stage_groups(old, new, dataset, limit),
    actions=ACTIONS,
    now=groups_now,
    unreached="pairs of a route and a broker that it must reach",
    tell=lambda planned, _: tell_groups(planned),
    figures=FIGURES,
    weights=("prices", "rank"),
    own_unit=True,
    replay=replay_groups,
    simulate=simulate_groups,
    churn=churn_groups,
)
