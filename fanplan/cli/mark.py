"""`fanplan mark`: decide where advertisements and subscriptions travel."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from fanplan.cli import options
from fanplan.cli.run import engine, named_by_flag
from fanplan.cli.show import show_facts, show_json, show_table
from fanplan.core.folder import PLAN, require_free

Trees = Annotated[
    str,
    typer.Option(
        metavar="TREES",
        help="shared:CORE, per-source (shortest paths by latency), given or given-shared "
        "(the table trees).",
    ),
]
Raw = Annotated[
    bool, typer.Option("--raw", help="Count regions that others at their broker cover, too.")
]
Sending = Annotated[
    str, typer.Option(help="Price of a descriptor on a link: one, latency or cost.")
]
Storing = Annotated[float, typer.Option(help="Price of a descriptor where it is kept.")]
Merge = Annotated[
    bool,
    typer.Option(
        "--merge", help="A descriptor covered by another on a link does not travel there."
    ),
]

FLAGS = {name: f"--{name}" for name in ("sending", "storing", "merge")}
FLAGS |= {"kind of trees": "--trees", "core": "--trees"}
WORDS = {
    "sending": "price of sending",
    "storing": "price of storing",
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
"""How a person reads the figures of a marking."""

ELSEWHERE = ("raw", "pub_everywhere", "sub_everywhere", "merged")
"""Figures that a person is told in other words."""


def mark(
    workload: options.Workload,
    trees: Trees,
    out: options.Out,
    raw: Raw = False,
    sending: Sending = "one",
    storing: Storing = 0.0,
    merge: Merge = False,
    replace: options.Replace = False,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
) -> None:
    """Mark links so that the fewest descriptors are sent and stored."""
    from fanplan import api
    from fanplan.layers.marking.params import MarkingWishes

    require_free(out, PLAN, replace)
    run = engine(master, remote, json)
    wishes: dict[str, Any] = {"raw": raw, "sending": sending, "storing": storing, "merge": merge}
    with named_by_flag(FLAGS):
        MarkingWishes(trees, **wishes)  # Refused before a workload is ingested.
    with named_by_flag(FLAGS), api.as_dataset(workload, run) as dataset:
        began = time.perf_counter()
        made = api.mark(dataset, trees, engine=run, **wishes)
        made.save(out, replace)
    facts = made.summary() | {"seconds": time.perf_counter() - began}
    if json:
        show_json(facts | {"compared": made.compared()})
        return
    show_facts("Marking, checked", told(facts) | {"plan": str(out)})
    show_markings(made.compared())


def told(facts: dict[str, Any]) -> dict[str, Any]:
    """Figures in words."""
    counted = "all regions" if facts["raw"] else "uncovered regions"
    own = {}
    for name in facts:
        if name == "merged" and facts[name]:
            own["cost, merged"] = facts[name]["cost"]
        elif name not in ELSEWHERE:
            own[WORDS.get(name, name)] = facts[name]
    return {"trees": own.pop("trees"), "descriptors": counted, **own}


def show_markings(rows: list[dict[str, Any]]) -> None:
    """The marking beside both ways of broadcasting, dearest first."""
    typer.echo()
    words = {"marking": "marking", "cost": "cost", "merged": "merged"}
    words |= {"per_link": "per link", "largest_link": "most on a link"}
    names = [name for name in words if name in rows[0]]
    header = [words[name] for name in names]
    show_table("Compared", header, [[row[name] for name in names] for row in rows])
