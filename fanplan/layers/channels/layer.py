"""The layer of channels: which flows share which multicast groups, and what goes by unicast."""

from __future__ import annotations

from pathlib import Path

from fanplan.data.dataset import Dataset
from fanplan.data.engine import Engine
from fanplan.layers.channels.changes.changes import stage_channels
from fanplan.layers.channels.check.check import check_channels
from fanplan.layers.channels.check.evidence import read_channel_truth
from fanplan.layers.channels.drift import channels_now, moved_audiences
from fanplan.layers.channels.record import ChannelsRecord, channels_record, write_channels
from fanplan.layers.channels.report.curve import has_channels, planned_curve, stored_curve
from fanplan.layers.channels.report.section import tell_channels
from fanplan.layers.layer import Curves, Layer
from fanplan.plan.drift import Moved
from fanplan.plan.figures import Figure, figures_of_ledger, recorded_figure, table_rows
from fanplan.plan.replayed import Replayed

FIGURES = (
    Figure("cost", recorded_figure(ChannelsRecord, "cost"), "less", weighed=True),
    Figure("excess_percent", recorded_figure(ChannelsRecord, "excess_percent"), "less", True),
    Figure("bound_percent", recorded_figure(ChannelsRecord, "bound_percent"), "", True),
    *figures_of_ledger(
        ChannelsRecord,
        {
            "sent_multicast": "",
            "sent_unicast": "",
            "received_wanted": "",
            "received_unwanted": "less",
            "missed": "less",
            "sent_bytes": "",
            "received_bytes": "",
        },
    ),
    Figure("unicast_fraction", recorded_figure(ChannelsRecord, "unicast_fraction")),
    Figure("channels", recorded_figure(ChannelsRecord, "channels")),
    Figure("memberships", table_rows("channel_subscribers")),
    Figure("flows on channels", table_rows("channel_flows")),
    Figure("unicasts", table_rows("unicast")),
)


def moved_between(was: Path, now: Path) -> dict[str, Moved]:
    """Flows whose audiences are others."""
    return {"audiences of flows": moved_audiences(read_channel_truth(was), read_channel_truth(now))}


def replay_channels(plan: Path, dataset: Dataset, engine: Engine) -> Replayed:
    from fanplan.layers.channels.stages.replay import replay_plan

    return replay_plan(engine.session, plan, dataset.path, engine.progress)


ACTIONS = {
    "join": "a subscriber joins a channel",
    "carry": "a flow is also sent to a channel",
    "unicast": "a flow is sent to a subscriber by unicast",
    "end_unicast": "a unicast ends",
    "drop": "a flow is no longer sent to a channel",
    "leave": "a subscriber leaves a channel",
}

LAYER = Layer(
    record=ChannelsRecord,
    recorded=channels_record,
    write=write_channels,
    make_stages=lambda *_: None,
    check=check_channels,
    changes=stage_channels,
    actions=ACTIONS,
    now=lambda plan, dataset, _: channels_now(plan, dataset),
    unreached="pairs of a flow and a subscriber who wants it",
    tell=tell_channels,
    figures=FIGURES,
    weights=("prices",),
    own_unit=True,
    moved=moved_between,
    curves=Curves(stored_curve, has_channels, planned_curve),
    replay=replay_channels,
)
