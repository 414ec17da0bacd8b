"""The figures of a groups plan, as a person or a program asks for them."""

from __future__ import annotations

from typing import Any

from fanplan.layers.groups.record import GroupsRecord
from fanplan.layers.groups.types import GroupsLayer

COMPARED = {
    "delay": "mean delay (hops and matches)",
    "messages": "inner brokers receive, share",
    "matches": "inner brokers match, share",
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
    """Each figure by default routing, with groups, and the difference; the total cost last."""
    names = {name: (record.default[name], record.ledger[name]) for name in COMPARED}
    rows = [row(COMPARED[name], *pair) for name, pair in names.items()]
    both = (total_cost(record, ledger) for ledger in (record.default, record.ledger))
    return [*rows, row("total cost at the prices", *both)]


def row(figure: str, default: float, groups: float) -> dict[str, Any]:
    saved = default - groups
    percent = 100 * saved / default if default else None
    return {
        "figure": figure,
        "default": default,
        "groups": groups,
        "saved": saved,
        "saved_percent": percent,
    }


def total_cost(record: GroupsRecord, ledger: dict[str, float]) -> float:
    """Matches, messages on links, entries and control messages at their prices."""
    prices = record.prices
    sent = prices.match * ledger["matches_total"] + prices.forward * ledger["link_messages"]
    return sent + prices.entry * ledger["entries"] + prices.control * ledger["overhead"]
