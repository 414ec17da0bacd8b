"""A stored plan as the map to start from, in the numbers of the dataset to plan for now."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Ints
from fanplan.data.reader import read_stage
from fanplan.layers.channels.map import NO_PAIRS, ChannelMap, Pairs, pairs
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.plan.stored import StoredPlan


@dataclass(frozen=True)
class Start:
    """The map of an older plan; ``gone`` counts its pairs whose flow or subscriber is no more."""

    map: ChannelMap
    gone: int


def start_of(plan: StoredPlan, dataset: Path) -> Start:
    """The channels of a stored plan over the dataset's wanted flows; rows are flows.

    The dataset may differ from the one the plan was made for: flows and subscribers are found by
    name. Unicast follows from the rest, so it is left out.
    """
    flows = read_stage(dataset, "flows", ("flow", "audience_class"))
    wanted = flows.filter(pc.greater_equal(flows["audience_class"], 0))["flow"].combine_chunks()
    names = read_stage(dataset, "subscribers", ("subscriber", "subscriber_id"))
    subscribers = names.sort_by("subscriber_id")["subscriber"].combine_chunks()
    carried, lost = translated(plan, "channel_flows", "flow", wanted)
    members, left = translated(plan, "channel_subscribers", "subscriber", subscribers)
    assigned = pairs(carried.right, carried.left)
    return Start(
        ChannelMap(plan.section(ChannelsRecord).channels, assigned, members, NO_PAIRS), lost + left
    )


def translated(plan: StoredPlan, table: str, column: str, values: pa.Array) -> tuple[Pairs, int]:
    """(channel, number) pairs of a table of a plan, and how many name nothing that is there."""
    content = plan.read(table, ("channel", column))
    found = pc.index_in(content[column], value_set=values.cast(pa.string())).fill_null(-1)
    numbers: Ints = found.to_numpy().astype(np.int32)
    known = numbers >= 0
    return pairs(content["channel"].to_numpy()[known], numbers[known]), int((~known).sum())
