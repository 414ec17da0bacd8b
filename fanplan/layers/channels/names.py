"""From the names that users and stored plans have to the numbers of a dataset; rows are flows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Ints, Longs
from fanplan.core.errors import InputError, Problem, similar
from fanplan.data.reader import read_stage
from fanplan.layers.channels.map import NO_PAIRS, ChannelMap, MapPairs, map_pairs
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.plan.stored import StoredPlan

SIMILAR_AMONG = 100_000
"""Names that are searched for one like a misspelt one."""


class FlowNames:
    """The flows of a dataset that somebody wants, by name; a topic's name means all its flows."""

    def __init__(self, dataset: Path) -> None:
        flows = read_stage(dataset, "flows", ("flow", "topic", "messages", "audience_class"))
        self.all = flows
        self.wanted = flows.filter(pc.greater_equal(flows["audience_class"], 0)).combine_chunks()

    @property
    def classes(self) -> Longs:
        """The audience class of each wanted flow."""
        result: Longs = self.wanted["audience_class"].to_numpy().astype(np.int64)
        return result

    def rows(self, name: str) -> Longs:
        """Positions among the wanted flows: the flow of that name, or all flows of that topic."""
        return rows_named(self.wanted, name)

    def require_rows(self, names: Iterable[str], option: str) -> list[int]:
        """The rows of all names, ascending, each once; an error that tells every unknown name."""
        found = [(name, self.rows(name)) for name in names]
        problems = [self.unknown(name, option) for name, rows in found if not len(rows)]
        if problems:
            raise InputError(problems)
        return sorted({int(row) for _, rows in found for row in rows})

    def unknown(self, name: str, option: str) -> Problem:
        if len(rows_named(self.all, name)):
            what = f"nobody wants {name!r}, so it is not sent"
            return Problem(option, what, "Leave it out")
        return Problem(option, f"there is no flow or topic {name!r}", self.remedy(name))

    def remedy(self, name: str) -> str:
        topics = self.all["topic"].slice(0, SIMILAR_AMONG).unique().to_pylist()
        flows = self.all["flow"].slice(0, SIMILAR_AMONG).to_pylist()
        return similar(name, [*topics, *flows]) or "Use a flow of the plan's table flows"


def rows_named(flows: pa.Table, name: str) -> Longs:
    """Where a table of flows has that flow, or else that topic."""
    for column in ("flow", "topic"):
        found = np.flatnonzero(pc.equal(flows[column], name).to_numpy())
        if len(found):
            return found
    return found


@dataclass(frozen=True)
class StartMap:
    """The map of an older plan; ``gone`` counts its pairs whose flow or subscriber is no more."""

    map: ChannelMap
    gone: int


def start_from(plan: StoredPlan, dataset: Path) -> StartMap:
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
    assigned = map_pairs(carried.right, carried.left)
    return StartMap(
        ChannelMap(plan.section(ChannelsRecord).channels, assigned, members, NO_PAIRS), lost + left
    )


def translated(plan: StoredPlan, table: str, column: str, values: pa.Array) -> tuple[MapPairs, int]:
    """(channel, number) pairs of a table of a plan, and how many name nothing that is there."""
    content = plan.read(table, ("channel", column))
    found = pc.index_in(content[column], value_set=values.cast(pa.string())).fill_null(-1)
    numbers: Ints = found.to_numpy().astype(np.int32)
    known = numbers >= 0
    return map_pairs(content["channel"].to_numpy()[known], numbers[known]), int((~known).sum())
