"""The table of changes: one row for each thing to do, in the order in which to do it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from fanplan.core.tables import Column, Table, arrow_schema

CHANGES = Table(
    "changes",
    "what to do, in this order; columns that do not concern an action are null",
    (
        Column("step", "integer", "number of the step, from 1", required=True),
        Column("layer", "string", "the layer of the plan that changes", required=True),
        Column("action", "string", "what is done", required=True),
        Column("channel", "integer", "number of the channel as it runs"),
        Column("flow", "string", "a flow"),
        Column("subscriber", "string", "a subscriber"),
        Column("client", "string", "a publisher or a subscriber"),
        Column("role", "string", "publisher or subscriber"),
        Column("broker", "string", "one that starts, stops, or sends by another tree or group"),
        Column("from_broker", "string", "one end of a link, or where a client is"),
        Column("to_broker", "string", "the other end, or where a client goes"),
        Column("tree", "integer", "number of the tree as it runs"),
        Column("mark", "string", "p or s: the new mark of a link"),
        Column("group", "integer", "number of the group as it runs"),
    ),
)

Row = dict[str, Any]


def of_rows(rows: list[Row]) -> pa.Table:
    """Changes that are not in steps yet, as columns."""
    return pa.Table.from_pylist(rows, schema=unstaged())


def unstaged() -> pa.Schema:
    """The columns but for step and layer."""
    return pa.schema(list(arrow_schema(CHANGES))[2:])


def staged(changes: pa.Table, step: pa.Array, layers: Mapping[str, str]) -> pa.Table:
    """Changes with their steps, and with the layers that their actions belong to."""
    names = [layers[action] for action in changes["action"].to_pylist()]
    columns = [step.cast(pa.int32()), pa.array(names, pa.string()), *changes.columns]
    return pa.table(columns, schema=arrow_schema(CHANGES))
