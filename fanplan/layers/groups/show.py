"""How a person is told of groups."""

from __future__ import annotations

from typing import Any

from fanplan.core.result import plain_number
from fanplan.plan.made import Answer, Facts, Grid, Note, Shown

COMPARED = {
    "figure": "",
    "default": "default routing",
    "groups": "with groups",
    "saved": "saved",
    "saved_percent": "saved %",
}
BEST = ("group", "root", "members", "messages", "entries", "control", "benefit")
NAMED_ROOTS = 3
"""Silent roots that are named."""


def show_groups(answer: Answer) -> Shown:
    """What was chosen, what it saves, and the best groups."""
    yield Facts("Groups, checked", told_of_groups(dict(answer.facts)))
    rows = [["" if row[n] is None else row[n] for n in COMPARED] for row in answer.compared]
    yield Grid("Compared", tuple(COMPARED.values()), rows)
    best = answer.beside["best"]
    if best:
        yield Grid("Best groups", BEST, [[row[name] for name in BEST] for row in best])
    silent = answer.facts["silent"]
    if silent:
        few = ", ".join(map(repr, silent[:NAMED_ROOTS]))
        more = " …" if len(silent) > NAMED_ROOTS else ""
        yield Note(f"nothing is published at {few}{more}; such trees are not used")


def told_of_groups(facts: dict[str, Any]) -> dict[str, Any]:
    params = facts["params"]
    cells = f"{params['cells']} cells per axis, marked by {params['mark']}"
    budget = params["select"].startswith("budget")
    return {
        "trees": params["trees"],
        "brokers": facts["brokers"],
        "brokers where messages enter": facts["roots"],
        "groups come from": cells if params["cells"] else "exact destinations",
        "groups": facts["groups"],
        "chosen by": f"{params['select']}, ranked by {params['rank']}",
        "set up": facts["selected"],
        "messages they carry, %": 100 * facts["covered"],
        "their benefit": facts["value"],
        **({"no choice exceeds": facts["bound"]} if budget else {}),
        "brokers bypassed × messages": facts["saving"],
        "prices": ", ".join(f"{name} {plain_number(p)}" for name, p in params["prices"].items()),
        "seconds": facts["seconds"],
        "plan": facts["plan"],
    }


SHOWS = {"groups": show_groups}
