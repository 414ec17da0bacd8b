"""The figures of a groups plan, as a person or a program asks for them."""

from __future__ import annotations

from typing import Any

from fanplan.plan.groups.record import GroupsRecord
from fanplan.plan.groups.types import GroupsLayer

COMPARED = {
    "delay": "mean delay (hops and matches)",
    "messages": "share of messages at inner brokers",
    "matches": "share matched at inner brokers",
    "link_messages": "messages on links",
    "matches_total": "matches",
    "entries": "forwarding entries",
    "overhead": "control messages",
    "unwanted": "unwanted messages",
}
"""Figures of the ledger that are shown beside default routing."""


def figures(layer: GroupsLayer) -> dict[str, Any]:
    """What was decided and what it saves; figures of the ledger by their own names."""
    record = layer.record.model_dump()
    return record | layer.record.ledger


def compared(record: GroupsRecord) -> list[dict[str, Any]]:
    """Each figure by default routing, with groups, and the difference."""
    rows = []
    for name, words in COMPARED.items():
        before, after = record.default[name], record.ledger[name]
        percent = 100 * (before - after) / before if before else None
        row = {"figure": words, "default": before, "groups": after, "saved": before - after}
        rows.append(row | {"saved_percent": percent})
    return rows
