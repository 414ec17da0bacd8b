"""How a person is told of a design."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fanplan.layers.delivery.record import told_domain
from fanplan.plan.made import Answer, Facts, Grid, Lines, Note, Shown

DOMAINS = 20
"""Multicast domains that are shown one by one; `--json` has all."""


def show_design(answer: Answer) -> Shown:
    """What was decided, the way there, and what the cost consists of."""
    facts = answer.facts
    naive, total = facts["steps"][0]["cost"], facts["total"]
    told = {
        "layers": ", ".join(facts["layers"]),
        "multicast domains": len(facts["domains"]),
        "audience classes": facts["classes"],
        "of these sent directly": facts["direct"],
        "total cost": total,
        **({"of it delivery": facts["cost"]} if total != facts["cost"] else {}),
        "delivery, layer by layer": facts["layered"],
        f"lower bound of {facts['bound_name']}": facts["bound"],
        "unicast %": 100 * facts["unicast_fraction"],
        **limit_shown(facts),
        "saved of the naive system %": 100 * (1 - total / naive) if naive else 0.0,
        "seconds": facts["seconds"],
        "plan": facts["plan"],
    }
    yield Facts("Design, checked", told)
    yield domain_grid(facts["multicast"])
    yield Lines((f"Assumed: {facts['assumed']}.",))
    yield waterfall_grid(facts["steps"])
    parts = [[part.replace("_", " "), cost] for part, cost in facts["total_parts"].items()]
    yield Grid("What it costs", ("part", "cost"), [*parts, ["total", total]])
    for note in facts["warnings"]:
        yield Note(note)


def limit_shown(facts: Mapping[str, Any]) -> dict[str, float]:
    """What a limit on unicast is on, if there is one."""
    if facts["params"]["unicast_limit"] is None:
        return {}
    return {"unicast that several want %": 100 * facts["unicast_counted"]}


def domain_grid(domains: list[dict[str, Any]]) -> Grid:
    """The multicast domains with most subscribers, and how many the others have."""
    order = sorted(domains, key=lambda row: -row["subscribers"])
    rows = [[told_domain(row["domain"]), row["brokers"], row["subscribers"]] for row in order]
    if len(rows) > DOMAINS:
        rest = [sum(row[column] for row in rows[DOMAINS:]) for column in (1, 2)]
        rows = [*rows[:DOMAINS], [f"{len(rows) - DOMAINS} others", *rest]]
    return Grid("Multicast domains", ("domain", "brokers", "subscribers"), rows)


def waterfall_grid(steps: list[dict[str, Any]]) -> Grid:
    """From the naive system to the plan, step by step."""
    rows = [[step["step"], step["cost"], step["saved"], step["percent"]] for step in steps]
    return Grid("From the naive system to the plan", ("step", "cost", "saved", "saved %"), rows)


SHOWS = {"design": show_design}
