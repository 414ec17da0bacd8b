"""How a person is told of an overlay, and of an allocation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fanplan.plan.made import Answer, Caution, Facts, Grid, Shown, in_words

WORDS = {
    "method": "tree",
    "weight": "similarity of linked brokers",
    "link_messages": "messages on links",
    "bound": "no overlay is below",
    "over_bound_percent": "above that %",
    "messages_per_publication": "per publication",
    "messages_per_arrival": "per destination broker",
    "delay_mean": "mean delay of an arrival",
    "latency": "delays are in",
    "forwarded": "processed to forward only",
    "degree_max": "most links of a broker",
    "overloaded": "brokers over their capacity",
    "ended_early_by": "ended early by",
    "changed": "links that differ from the older plan",
    "moved": "clients that moved",
    "brokers_bound": "no allocation has fewer brokers than",
    "lcf": "share of capacity for clients",
    "load": "load is measured by",
    "cost": "cost of the brokers",
    "lone": "clients too big for any broker",
}
TREES = {
    "method": "tree",
    "link_messages": "messages on links",
    "messages_per_arrival": "per arrival",
    "delay_mean": "mean delay",
    "degree_max": "most links",
    "diameter": "diameter",
}
RANKED = {
    "ranking": "ranking",
    "brokers": "brokers",
    "link_messages": "messages on links",
    "messages_per_publication": "per publication",
    "delay_mean": "mean delay",
}


def show_overlay(answer: Answer) -> Shown:
    """The tree, and beside it others, dearest first."""
    yield from overload(answer.facts, "Give them more capacity, or fewer clients")
    yield Facts("Overlay, checked", told_of_overlay(answer.facts))
    if answer.compared:
        rows = sorted([*answer.compared, answer.facts], key=lambda row: -row["link_messages"])
        yield Grid("Compared", tuple(TREES.values()), [[row[n] for n in TREES] for row in rows])


def show_allocation(answer: Answer) -> Shown:
    """The allocation, and beside it others, most brokers first."""
    facts = answer.facts
    if facts["lone"]:
        what = "clients too big for any broker, each alone at one"
        yield Caution(f"{what} ({listed_value(facts['lone'])}). Give them larger brokers")
    yield from overload(facts, "Use --stable, a lower --lcf or larger brokers")
    yield Facts("Allocation, checked", told_of_overlay(facts))
    if answer.compared:
        both = [*answer.compared, facts]
        rows = sorted(both, key=lambda row: (-row["brokers"], -row["link_messages"]))
        yield Grid("Compared", tuple(RANKED.values()), [[row[n] for n in RANKED] for row in rows])


def overload(facts: Mapping[str, Any], remedy: str) -> Shown:
    if facts["overloaded"]:
        what = "brokers process more than their capacity, forwarding included"
        yield Caution(f"{what} ({listed_value(facts['overloaded'])}). {remedy}")


def told_of_overlay(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Figures in words; lists as their length and their first names."""
    return in_words({name: listed_value(value) for name, value in facts.items()}, WORDS)


def listed_value(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    few = ", ".join(map(str, value[:5]))
    return f"{len(value)}: {few}{' …' if len(value) > 5 else ''}" if value else 0


SHOWS = {"overlay": show_overlay, "allocate": show_allocation}
