"""The tables of a plan folder: one description feeds the Parquet schemas and the documentation."""

from __future__ import annotations

import pyarrow as pa

from fanplan.workload.tables import Column, Table

PLAN_FLOWS = Table(
    "flows",
    "the flows that somebody wants",
    (
        Column("flow", "string", "the topic, or topic[i,j,…] for a cell", required=True),
        Column("topic", "string", "its topic", required=True),
        Column("cell", "integers", "cell number on each axis; null for a whole topic"),
        Column("rate", "number", "how much is sent", unit="messages/s", required=True),
        Column("bytes_rate", "number", "how much is sent", unit="bytes/s", required=True),
        Column("audience_class", "integer", "flows with this number have one audience", True),
    ),
    key=("flow",),
)

CHANNEL_FLOWS = Table(
    "channel_flows",
    "which channels carry a flow",
    (
        Column("channel", "integer", "number of the channel, from 0", required=True),
        Column("flow", "string", "a flow of the plan", required=True),
    ),
    key=("channel", "flow"),
)

CHANNEL_SUBSCRIBERS = Table(
    "channel_subscribers",
    "who joins a channel",
    (
        Column("channel", "integer", "number of the channel, from 0", required=True),
        Column("subscriber", "string", "who joins it", required=True),
    ),
    key=("channel", "subscriber"),
)

UNICAST = Table(
    "unicast",
    "what is sent point to point",
    (
        Column("flow", "string", "a flow of the plan", required=True),
        Column("subscriber", "string", "who gets it", required=True),
    ),
    key=("flow", "subscriber"),
)

CHANNEL_TABLES = (PLAN_FLOWS, CHANNEL_FLOWS, CHANNEL_SUBSCRIBERS, UNICAST)

ARROW_TYPES = {
    "string": pa.string(),
    "number": pa.float64(),
    "integer": pa.int32(),
    "integers": pa.list_(pa.int32()),
}


def arrow_schema(table: Table) -> pa.Schema:
    """The Parquet schema of a plan table."""
    return pa.schema([pa.field(c.name, ARROW_TYPES[c.type], not c.required) for c in table.columns])
