"""From the names that users give to the rows of a problem with a row per flow."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Longs
from fanplan.core.errors import InputError, Problem, similar
from fanplan.data.reader import read_stage

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
        return self.wanted["audience_class"].to_numpy().astype(np.int64)

    def rows(self, name: str) -> Longs:
        """Positions among the wanted flows: the flow of that name, or all flows of that topic."""
        return matches(self.wanted, name)

    def require_rows(self, names: Iterable[str], option: str) -> list[int]:
        """The rows of all names, ascending, each once; an error that tells every unknown name."""
        found = [(name, self.rows(name)) for name in names]
        problems = [self.unknown(name, option) for name, rows in found if not len(rows)]
        if problems:
            raise InputError(problems)
        return sorted({int(row) for _, rows in found for row in rows})

    def unknown(self, name: str, option: str) -> Problem:
        if len(matches(self.all, name)):
            what = f"nobody wants {name!r}, so it is not sent"
            return Problem(option, what, "Leave it out")
        return Problem(option, f"there is no flow or topic {name!r}", self.remedy(name))

    def remedy(self, name: str) -> str:
        topics = self.all["topic"].slice(0, SIMILAR_AMONG).unique().to_pylist()
        flows = self.all["flow"].slice(0, SIMILAR_AMONG).to_pylist()
        return similar(name, [*topics, *flows]) or "Use a flow of the plan's table flows"


def matches(flows: pa.Table, name: str) -> Longs:
    """Where a table of flows has that flow, or else that topic."""
    for column in ("flow", "topic"):
        found = np.flatnonzero(pc.equal(flows[column], name).to_numpy())
        if len(found):
            return found
    return found
