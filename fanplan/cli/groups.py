"""`fanplan groups`: decide which messages are matched once, and which hops they skip."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fanplan.cli import options
from fanplan.cli.run import engine, named_by_flag
from fanplan.cli.show import number, show_facts, show_json, show_table
from fanplan.core.errors import InputError, Problem
from fanplan.core.folder import PLAN, require_free

if TYPE_CHECKING:
    from fanplan.api import GroupsPlan

Select = Annotated[
    str,
    typer.Option(metavar="RULE", help="top:10%, threshold:X or budget:N (forwarding entries)."),
]
Rank = Annotated[str, typer.Option(help="What groups are ranked by: saving, nc or fc.")]
Trees = Annotated[
    str | None,
    typer.Option(
        metavar="TREES",
        help="links (one tree), per-publisher (shortest paths by latency) or given (the table "
        "trees).",
        show_default="links",
    ),
]
Overlay = Annotated[
    Path | None, typer.Option(metavar="PLAN", help="Use the trees of this overlay plan.")
]
Cells = Annotated[
    int | None,
    typer.Option(help="Groups of a grid with so many cells per axis.", show_default="exact groups"),
]
Mark = Annotated[str, typer.Option(help="Mark cells by full cover, or by any overlap.")]
Least = Annotated[
    float, typer.Option(metavar="M", help="Leave what has so few messages to default routing.")
]
NoShortcuts = Annotated[
    bool, typer.Option("--no-shortcuts", help="Follow the trees, link by link.")
]
Prices = Annotated[
    str | None,
    typer.Option(help="Prices such as match=1,forward=1,entry=1,control=1.", show_default="all 1"),
]

FLAGS = {name: f"--{name}" for name in ("select", "rank", "prices", "mark", "cells", "least")}
FLAGS |= {"kind of trees": "--trees", "match": "--prices", "forward": "--prices"}
FLAGS |= {"entry": "--prices", "control": "--prices"}

NAMED = 3
"""Silent roots that are named."""


def groups(
    workload: options.Workload,
    out: options.Out,
    select: Select = "top:10%",
    rank: Rank = "saving",
    trees: Trees = None,
    overlay: Overlay = None,
    cells: Cells = None,
    mark: Mark = "cover",
    least: Least = 0.0,
    no_shortcuts: NoShortcuts = False,
    prices: Prices = None,
    replace: options.Replace = False,
    json: options.Json = False,
    master: options.Master = None,
    remote: options.Remote = None,
) -> None:
    """Match once at entry what goes to the same brokers, and skip hops that only forward."""
    from fanplan import api

    require_free(out, PLAN, replace)
    run = engine(master, remote, json)
    with named_by_flag(FLAGS):
        wishes: dict[str, Any] = {
            "rank": rank,
            **which_trees(trees, overlay),
            "cells": cells,
            "mark": mark,
            "least": least,
            "shortcuts": not no_shortcuts,
            "prices": priced(prices),
        }
        api.require_groups(select, **wishes)
        with api.as_dataset(workload, run) as dataset:
            began = time.perf_counter()
            made = api.groups(dataset, select, engine=run, **wishes)
            made.save(out, replace)
    facts = made.summary() | {"seconds": time.perf_counter() - began}
    if json:
        show_json(facts | {"compared": made.compared(), "best": made.best()})
        return
    show(made, select, facts | {"plan": str(out)})


def which_trees(trees: str | None, overlay: Path | None) -> dict[str, Any]:
    if trees is not None and overlay is not None:
        what = "trees come from there"
        raise InputError(Problem("--overlay", what, "Leave out --trees, or --overlay"))
    return {"trees": trees or "links", "overlay": overlay}


def priced(text: str | None) -> dict[str, float]:
    """Prices by name from NAME=PRICE,…"""
    found: dict[str, float] = {}
    for word in text.split(",") if text else ():
        name, _, amount = word.partition("=")
        try:
            found[name.strip()] = float(amount)
        except ValueError:
            what = f"{word!r} is not understood"
            raise InputError(Problem("prices", what, "Use such as match=1,entry=0.5")) from None
    return found


def show(made: GroupsPlan, select: str, facts: dict[str, Any]) -> None:
    """For a person: what was chosen, what it saves, and the best groups."""
    show_facts("Groups, checked", told(select, facts))
    typer.echo()
    header = ("", "default routing", "with groups", "saved", "saved %")
    names = ("figure", "default", "groups", "saved", "saved_percent")
    rows = [[cell(row[name]) for name in names] for row in made.compared()]
    show_table("Compared", header, rows)
    best = made.best()
    if best:
        typer.echo()
        own = ("group", "root", "members", "messages", "entries", "control", "benefit")
        show_table("Best groups", own, [[row[name] for name in own] for row in best])
    if made.silent:
        few = ", ".join(map(repr, made.silent[:NAMED]))
        more = " …" if len(made.silent) > NAMED else ""
        what = f"nothing is published at {few}{more}; such trees are not used"
        typer.echo(f"Note: {what}", err=True)


def cell(value: Any) -> Any:
    return "" if value is None else value


def told(select: str, facts: dict[str, Any]) -> dict[str, Any]:
    """Figures in words."""
    grouping, prices = facts["grouping"], facts["prices"]
    cells = f"{grouping['cells']} cells per axis, marked by {grouping['mark']}"
    bound = {"no choice exceeds": facts["bound"]} if facts["select"]["rule"] == "budget" else {}
    return {
        "trees": facts["trees"],
        "brokers": facts["brokers"],
        "brokers where messages enter": facts["roots"],
        "groups come from": cells if grouping["cells"] else "exact destinations",
        "groups": facts["groups"],
        "chosen by": f"{select}, ranked by {facts['rank']}",
        "set up": facts["selected"],
        "messages they carry, %": 100 * facts["covered"],
        "their benefit": facts["value"],
        **bound,
        "brokers bypassed × messages": facts["saving"],
        "prices": ", ".join(f"{name} {number(price)}" for name, price in prices.items()),
        "seconds": facts["seconds"],
        "plan": facts["plan"],
    }
