"""The tables that a simulation leaves."""

from __future__ import annotations

from fanplan.core.tables import Column, Table

RUN_BROKERS = Table(
    "brokers",
    "what each broker did",
    (
        Column("broker", "string", "its name"),
        Column("degree", "long", "how many links it has"),
        Column("processed", "long", "publications that visited it", unit="messages"),
        Column("arrived", "long", "those that a subscriber there wants", unit="messages"),
        Column("forwarded", "long", "the others", unit="messages"),
        Column("peak", "long", "most in one window, control included", unit="messages"),
        Column("waited_ms", "number", "time spent there for congestion, in all", unit="ms"),
        Column("capacity", "number", "what it can process; null if not limited", unit="messages/s"),
    ),
    key=("broker",),
)
RUN_LINKS = Table(
    "links",
    "what crossed each link",
    (
        Column("a", "string", "a broker"),
        Column("b", "string", "another one"),
        Column("a_to_b", "long", "publications from a to b", unit="messages"),
        Column("b_to_a", "long", "publications from b to a", unit="messages"),
        Column("control_a_to_b", "long", "control messages from a to b", unit="messages"),
        Column("control_b_to_a", "long", "control messages from b to a", unit="messages"),
    ),
    key=("a", "b"),
)
