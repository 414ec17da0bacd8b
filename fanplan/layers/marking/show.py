"""How a person is told of a marking."""

from __future__ import annotations

from typing import Any

from fanplan.plan.made import Answer, Facts, Grid, Shown, in_words

WORDS = {
    "publishers": "nodes that publish",
    "subscribers": "nodes that subscribe",
    "published": "descriptors of publishers",
    "subscribed": "descriptors of subscribers",
    "links": "directed links in trees",
    "p_links": "p-links",
    "s_links": "s-links",
    "entangled": "links in entangled parts",
    "parts": "entangled parts",
    "largest_part": "links of the largest",
}
ELSEWHERE = ("params", "pub_everywhere", "sub_everywhere", "merged")
"""Figures that a person is told in other words."""
COMPARED = {
    "marking": "marking",
    "cost": "cost",
    "merged": "merged",
    "per_link": "per link",
    "largest_link": "most on a link",
}


def show_marking(answer: Answer) -> Shown:
    """The marking, and beside it both ways of broadcasting, dearest first."""
    yield Facts("Marking, checked", told_of_marking(dict(answer.facts)))
    names = [name for name in COMPARED if name in answer.compared[0]]
    rows = [[row[name] for name in names] for row in answer.compared]
    yield Grid("Compared", tuple(COMPARED[name] for name in names), rows)


def told_of_marking(facts: dict[str, Any]) -> dict[str, Any]:
    params, merged = facts["params"], facts["merged"]
    first = {
        "trees": params["trees"],
        "descriptors": "all regions" if params["raw"] else "uncovered regions",
        "price of sending": params["control_by"],
        "price of storing": params["prices"]["stored"],
    }
    own = {name: value for name, value in facts.items() if name not in ELSEWHERE}
    return first | ({"cost, merged": merged["cost"]} if merged else {}) | in_words(own, WORDS)


SHOWS = {"mark": show_marking}
